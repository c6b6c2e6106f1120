"""make scores: stored scores of models in pretrained/ against the scores now."""

import pytest
import sacrebleu

from benchmarks.translations import repeated
from benchmarks.translations.repeated import Row
from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator

TEXTS = ["twenty-one", "one house", "June twelfth", "two thousand"]
REFERENCES = ["einundzwanzig", "ein Haus", "zwölfter Juni", "zweitausend"]


def test_the_rows_are_those_of_the_results_and_their_models_are_here():
    rows = {row.name: row for row in repeated.stored()}
    assert {"tatoeba_unusual", "tatoeba_newstest"} <= set(rows)
    for row in rows.values():
        assert (repeated.results.ROOT / row.run_dir / "config.yaml").is_file()
    assert rows["tatoeba_unusual"].source == "tatoeba_en_de/test.en"
    assert rows["multi30k_lc_pretrained"].tokenize == "none"


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data folder with a corpus of four pairs."""
    folder = tmp_path / "data" / "corpus"
    folder.mkdir(parents=True)
    for name, lines in (("test.en", TEXTS), ("test.de", REFERENCES)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    monkeypatch.setenv("TF_TRANSFORMER_DATA", str(folder.parent))
    monkeypatch.chdir(tmp_path)
    return folder


def row(run, bleu):
    return Row("mine", str(run), "corpus/test.en", "corpus/test.de", 2, bleu)


def test_a_score_that_differs_is_an_error(run, data, monkeypatch, capsys):
    texts = [each.text for each in Translator.from_run(run, beam_size=2, average=1)(TEXTS)]
    bleu = sacrebleu.corpus_bleu(texts, [REFERENCES]).score
    monkeypatch.setattr(repeated, "stored", lambda: [row(run, bleu + 0.05)])
    repeated.main()
    assert "| mine | 4 |" in capsys.readouterr().out
    monkeypatch.setattr(repeated, "stored", lambda: [row(run, bleu + 0.2)])
    with pytest.raises(InputError, match=r"changed by 0\.1 or more: mine"):
        repeated.main()


def test_a_test_set_is_divided_off_if_the_data_folder_lacks_it(data, monkeypatch):
    monkeypatch.setitem(repeated.MADE, "other", repeated.divide_off)
    (data.parent / "other").mkdir()
    for language in ("en", "de"):
        lines = "".join(f"{language} line {number}\n" for number in range(31_000))
        (data.parent / "other" / f"all.{language}").write_text(lines, "utf-8")
    found = repeated.test_file("other/test.de", data.parent)
    lines = found.read_text("utf-8").split("\n")[:-1]
    assert len(lines) == 2000
    assert set(lines) <= {f"de line {number}" for number in range(31_000)}
    assert repeated.test_file("corpus/test.de", data.parent) == data / "test.de"


def test_the_tokenised_test_set_is_made_from_the_raw_text(data):
    (data.parent / "multi30k").mkdir()
    for language, text in (("en", "Two MEN, running.\n"), ("de", "Zwei Männer.\n")):
        (data.parent / "multi30k" / f"test_2016_flickr.{language}").write_text(text, "utf-8")
    found = repeated.test_file("multi30k_lc/test_2016_flickr.en", data.parent)
    assert found.read_text("utf-8") == "two men , running .\n"


def test_without_the_data_folder_the_error_names_it(monkeypatch):
    monkeypatch.delenv("TF_TRANSFORMER_DATA", raising=False)
    with pytest.raises(InputError, match=r"\$TF_TRANSFORMER_DATA must be the folder"):
        repeated.main()
