"""tf-transformer align: by a translator, resumed, and by eflomal."""

import pytest

from tf_transformer.commands import align
from tf_transformer.data.readers.generated import generate
from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.fixture
def files(tmp_path):
    """The two sides of a corpus, and an output."""
    pairs = generate(50, "en", "de", seed=1)
    names = {side: str(tmp_path / side) for side in ("source", "target")}
    for side in names:
        texts = [*pairs[side][:20], "", *pairs[side][20:]]
        (tmp_path / side).write_text("".join(f"{text}\n" for text in texts))
    return names | {"output": str(tmp_path / "links")}


def test_an_interrupted_alignment_resumes(files, run, tmp_path, monkeypatch):
    options = {"run_dir": str(run), "window": 20}
    align.main(**files, **options)
    whole, links = (tmp_path / "links").read_text(), Translator.align
    (tmp_path / "links").unlink()
    sizes = []

    def interrupted(self, texts, translations):
        sizes.append(len(texts))
        if len(sizes) == 2:
            raise KeyboardInterrupt
        return links(self, texts, translations)

    monkeypatch.setattr(Translator, "align", interrupted)
    with pytest.raises(KeyboardInterrupt):
        align.main(**files, **options)
    assert (tmp_path / "links.partial").read_text().count("\n") == 20
    with pytest.raises(InputError, match="Add --resume to continue it"):
        align.main(**files, **options)
    with pytest.raises(InputError, match="unit"):
        align.main(**files, **options, unit="pieces", resume=True)
    align.main(**files, **options, resume=True)
    assert (tmp_path / "links").read_text() == whole
    assert sizes == [20, 20, 20, 11]
    assert whole.split("\n")[20] == ""  # the empty pair


def test_eflomal_links_words_that_occur_together(tmp_path):
    pytest.importorskip("eflomal")
    sides = "Red Green blue. one two three", "rot grün blau eins zwei drei"
    source, target = map(str.split, sides)
    texts = [[], []]
    for n in range(200):
        places = [n % 6, (n // 2) % 6, (n // 5) % 6]
        texts[0].append(" ".join(source[place] for place in places))
        texts[1].append(" ".join(target[place] for place in reversed(places)))
    texts[0][7] = ""
    for name, lines in zip(("a", "b"), texts, strict=True):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    align.main(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "links"))
    lines = (tmp_path / "links").read_text().split("\n")[:-1]
    assert len(lines) == 200
    assert lines[7] == ""
    expected = {"0-2", "1-1", "2-0"}
    distinct = [n for n in range(200) if n != 7 and len({n % 6, (n // 2) % 6, (n // 5) % 6}) == 3]
    right = sum(set(lines[n].split()) == expected for n in distinct)
    assert right > 0.9 * len(distinct)


def test_without_eflomal_or_a_translator_the_error_says_what_to_install(files, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "eflomal", None)
    with pytest.raises(InputError, match=r"pip install 'tf_transformer\[align\]'\. Or give --run"):
        align.main(**files)


def test_options_of_a_translator_need_one(files):
    with pytest.raises(InputError, match="--unit and the options of a search need --run_dir"):
        align.main(**files, unit="pieces")
    with pytest.raises(InputError, match="need --run_dir"):
        align.main(**files, alignment_layer=0)
