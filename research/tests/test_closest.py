"""research/closest: the hypothesis of each line that is closest to its reference."""

import pytest

from research import closest
from tf_transformer.errors import InputError


@pytest.fixture
def choose(tmp_path):
    """The chosen lines, for hypotheses and references."""

    def run(hypotheses: str, references: str) -> list[str]:
        (tmp_path / "n_best").write_text(hypotheses)
        (tmp_path / "reference").write_text(references)
        files = (str(tmp_path / name) for name in ("n_best", "reference", "to"))
        closest.main(*files, tokenize="none")
        return (tmp_path / "to").read_text().split("\n")[:-1]

    return run


def test_the_closest_hypothesis_of_each_line_is_chosen(choose, capsys):
    """The reference itself, else shared n-grams; of equals, the first. A text may have bars."""
    hypotheses = (
        "0 ||| a dog sees a cat here ||| -0.1\n"
        "0 ||| the dog sees the cat ||| -0.2\n"
        "1 ||| cat the sees dog the small ||| -0.1\n"
        "1 ||| one dog sees the small bird ||| -0.2\n"
        "2 |||  ||| -0.1\n"
        "3 ||| x ||| -0.1\n"
        "3 ||| y ||| -0.2\n"
        "10 ||| a ||| b ||| -0.1\n"
    )
    references = "the dog sees the cat\nthe dog sees the small cat\nno\nz\na ||| b\n"
    assert choose(hypotheses, references) == [
        *("the dog sees the cat", "one dog sees the small bird"),
        *("", "x", "a ||| b"),
    ]
    printed = dict(line.split(": BLEU ") for line in capsys.readouterr().out.splitlines())
    assert float(printed["best"]) < float(printed["closest"])


@pytest.mark.parametrize(
    ("hypotheses", "message"),
    [
        ("0 ||| a ||| -1\n", "has 2 lines, but .* has hypotheses for 1:"),
        ("0 ||| a ||| -1\nno bars\n", "expected `line .* got: no bars"),
    ],
)
def test_other_files_are_errors(choose, tmp_path, hypotheses, message):
    with pytest.raises(InputError, match=message):
        choose(hypotheses, "a\nb\n")
    assert not (tmp_path / "to").exists()
