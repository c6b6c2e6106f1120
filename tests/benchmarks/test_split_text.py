"""benchmarks/translations/split_text: held-out sentences that the training text does not have."""

import pytest

from benchmarks.translations import split_text
from tf_transformer.errors import InputError


@pytest.fixture
def text(tmp_path):
    """Two texts: 90 sources with two translations each, and one of the sources in capitals."""
    pairs = [(f"Number {n}!", f"{way} {n}") for n in range(90) for way in ("Zahl", "Nummer")]
    more = [(f"NUMBER {n}", f"andere {n}") for n in range(90)]
    more += [(f"another {n}", f"zahl {n}.") for n in range(90)]
    for name, rows in {"all": pairs, "more": more}.items():
        for side, ending in enumerate(("en", "de")):
            (tmp_path / f"{name}.{ending}").write_text("".join(f"{row[side]}\n" for row in rows))
    files = [",".join(str(tmp_path / f"{n}.{e}") for n in ("all", "more")) for e in ("en", "de")]
    return files, tmp_path / "split"


def test_no_held_out_sentence_is_in_the_training_text(text):
    files, folder = text
    split_text.main(*files, str(folder), valid=3, test=5)
    parts = {
        name: list(
            zip(
                *(
                    (folder / f"{name}.{ending}").read_text().split("\n")[:-1]
                    for ending in ("en", "de")
                ),
                strict=True,
            )
        )
        for name in ("train", "valid", "test")
    }
    held_out = parts["valid"] + parts["test"]
    assert (len(parts["valid"]), len(parts["test"])) == (3, 5)
    assert len({source for source, _ in held_out}) == 8
    numbers = {"".join(filter(str.isdigit, source)) for source, _ in held_out}
    expected = [n for n in map(str, range(90)) if n not in numbers]
    in_order = sorted(int("".join(filter(str.isdigit, source))) for source, _ in held_out)
    assert [int(source.strip("Number !")) for source, _ in held_out] != in_order
    assert len(parts["train"]) == 4 * len(expected)
    assert not numbers & {"".join(filter(str.isdigit, source)) for source, _ in parts["train"]}


def test_a_small_text_is_an_error(text):
    with pytest.raises(InputError, match="more than 900 distinct sentences"):
        split_text.main(*text[0], str(text[1]), valid=40, test=50)
