"""The translation task: its scores against sacreBLEU called directly, and its examples."""

import os
import pathlib

import pytest
import sacrebleu

from tf_transformer import tasks
from tf_transformer.config import Config, Corpus, DataConfig, TrainConfig
from tf_transformer.config.task import TranslationOptions
from tf_transformer.data.examples import Examples
from tf_transformer.data.readers.generated import TEST_PAIRS, generated_splits
from tf_transformer.errors import InputError
from tf_transformer.inference.predictor import Prediction
from tf_transformer.tasks.translation import TRANSLATION
from tf_transformer.text.codec import Codec


def score(predictions, references, **options):
    """The scores against one reference each."""
    task = TRANSLATION.with_options(TranslationOptions(**options))
    return task.score([], predictions, [references])


REFERENCES = ["Ein Haus am See.", "Zwei Hunde laufen über die Wiese.", "Drei Äpfel liegen da."]
HYPOTHESES = ["Ein Haus am See.", "zwei Hunde laufen auf der Wiese.", "Drei Birnen lagen dort."]


def test_perfect_translation():
    perfect = score(REFERENCES, REFERENCES)
    assert perfect["bleu"] == pytest.approx(100.0)
    assert perfect["chrf"] == pytest.approx(100.0)
    assert perfect["exact_match"] == 100.0
    assert perfect["sentences"] == 3


def test_scores_are_those_of_sacrebleu():
    found = score(HYPOTHESES, REFERENCES)
    assert 0 < found["bleu"] < 100
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="13a", lowercase=False)
    assert found["bleu"] == pytest.approx(expected.score)
    assert found["chrf"] == pytest.approx(sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score)
    assert found["exact_match"] == pytest.approx(100 / 3)


def test_bleu_by_hand():
    """Precisions 4/5, 3/4, 2/3, 1/2 of 1- to 4-grams, equal lengths: (1/5)^(1/4) = 66.87."""
    assert score(["a b c d x"], ["a b c d e"])["bleu"] == pytest.approx(100 * 0.2**0.25)


def test_bleu_heeds_case_and_splits_off_punctuation():
    """By hand: the comma is a token of its own under 13a, so only "Haus" differs in case."""
    assert score(["das , was da ist"], ["das, was da ist"])["bleu"] == pytest.approx(100.0)
    assert score(["das haus da ist alt"], ["das Haus da ist alt"])["bleu"] < 100.0


def test_chrf_is_the_metric_where_most_references_are_too_short_for_bleu():
    short, long = "drei kurze Wörter", "ein Satz aus fünf Wörtern"
    assert TRANSLATION.default_metric([short, short, long]) == "chrf"
    assert TRANSLATION.default_metric([short, long]) == "bleu"
    assert TRANSLATION.default_metric(["我喜欢猫。"]) == "chrf"
    chinese = TRANSLATION.with_options(TranslationOptions(bleu_tokenize="zh"))
    assert chinese.default_metric(["我喜欢猫。"]) == "bleu"
    assert chinese.default_metric(["我。"]) == "chrf"


def test_the_signature_is_the_recipe():
    fields = score(HYPOTHESES, REFERENCES)["signature"].split("|")
    expected = {"nrefs:1", "case:mixed", "eff:no", "tok:13a", "smooth:exp"}
    assert expected <= set(fields)
    assert f"version:{sacrebleu.__version__}" in fields


def test_exact_match_compares_what_a_reader_sees():
    assert score(["a ", "b"], ["a", "c"])["exact_match"] == 50.0
    assert score(["e\u0301"], ["\u00e9"])["exact_match"] == 100.0
    raw = score(["a ", "e\u0301"], ["a", "\u00e9"], normalize=False)
    assert raw["exact_match"] == 0.0


def test_empty_translations_score_nothing():
    found = score(["", ""], REFERENCES[:2])
    assert (found["bleu"], found["exact_match"]) == (0.0, 0.0)


@pytest.mark.parametrize(("hypotheses", "references"), [(2, 3), (3, 2), (1, 0)])
def test_numbers_of_lines_that_differ(hypotheses, references):
    with pytest.raises(InputError) as error:
        score(HYPOTHESES[:hypotheses], REFERENCES[:references])
    assert str(error.value) == (
        f"expected a reference for each of {hypotheses} translations, got {references}."
    )


def test_nothing_to_score():
    with pytest.raises(InputError, match="at least one translation and its reference, got none"):
        score([], [])


def published_scores():
    """(translation file, BLEU) of systems scored with mteval-v13a, cased."""
    folder = pathlib.Path(os.environ["TF_TRANSFORMER_DATA"], "bleu_check", "wmt17_en_de")
    lines = (folder / "scores.tsv").read_text(encoding="utf-8").split("\n")
    header, *rows = [line.split("\t") for line in lines if line]
    file, bleu = header.index("file"), header.index("mteval_v13a_bleu")
    return folder, [(row[file], float(row[bleu])) for row in rows]


@pytest.mark.slow
def test_scores_of_published_translations():
    data = os.environ.get("TF_TRANSFORMER_DATA")
    if not data or not pathlib.Path(data, "bleu_check", "wmt17_en_de").is_dir():
        pytest.skip("TF_TRANSFORMER_DATA names no folder that holds bleu_check/wmt17_en_de")
    folder, published = published_scores()

    def lines(name):
        return (folder / name).read_bytes().decode().removesuffix("\n").split("\n")

    for name, bleu in published:
        found = score(lines(name), lines("ref.de"), normalize=False)["bleu"]
        assert found == pytest.approx(bleu, abs=0.01), name


def test_the_tokenizer_of_a_run_divides_text_without_spaces(capsys):
    """By hand: of five characters four are right, as are three of four pairs and so on."""
    predictions, references = ["我喜欢猫吧"], ["我喜欢猫呢"]
    assert score(predictions, references)["bleu"] == 0
    assert "most references have no spaces" in capsys.readouterr().err
    found = score(predictions, references, bleu_tokenize="zh")
    assert found["bleu"] == pytest.approx(100 * 0.2**0.25)
    assert "tok:zh" in found["signature"]
    config = Config(task=TranslationOptions(bleu_tokenize="zh"))
    assert "tok:zh" in TRANSLATION.metadata(config)["training"]["bleu_signature"]
    assert capsys.readouterr().err == ""


def test_a_run_is_scored_against_all_its_references(tmp_path):
    for name, text in (("in", "one\ntwo\n"), ("a", "eins\nzwei\n"), ("b", "ein\n\n")):
        (tmp_path / name).write_text(text)
    test = TRANSLATION.load_test(
        Config(), str(tmp_path / "in"), f"{tmp_path / 'a'},{tmp_path / 'b'}"
    )

    def predictor(texts, progress):
        return [Prediction("ein", 0.0), Prediction("zwei", 0.0)]

    found = TRANSLATION.evaluate(predictor, test).scores
    assert found["exact_match"] == 100
    assert found["signature"].startswith("nrefs:var|")


def test_validation_leaves_out_pairs_without_a_reference():
    examples = Examples({"source": ["a", "c", "d"], "target": ["b", " ", ""]})
    assert TRANSLATION.test_set(examples) == tasks.TestSet(["a"], ["b"])


def test_a_line_for_people():
    scores = score(REFERENCES, REFERENCES)
    assert TRANSLATION.describe(scores) == (
        "3 sentences: exact match 100.0%, chrF 100.00, BLEU 100.00 (" + scores["signature"] + ")"
    )


# --- examples --------------------------------------------------------------------------------


def load(data, seed=1):
    return TRANSLATION.load_splits(Config(data=data, train=TrainConfig(seed=seed)))


@pytest.fixture
def files(tmp_path):
    """Paths of an English and a German file with one line per number, by name of the split."""

    def write(split: str, numbers: range) -> dict[str, str]:
        paths = {}
        for side, word in (("source", "line"), ("target", "Zeile")):
            path = tmp_path / f"{split}.{side}"
            path.write_text("".join(f"{word} {n}\n" for n in numbers), encoding="utf-8")
            paths[f"{split}_{side}"] = str(path)
        return paths

    return write


def test_pairs_of_given_files(files):
    config = DataConfig(**files("train", range(20)), **files("valid", range(30, 33)))
    train, valid = load(config)
    assert train.read() == Examples(
        {
            "source": [f"line {n}" for n in range(20)],
            "target": [f"Zeile {n}" for n in range(20)],
        }
    )
    assert valid["target"] == ["Zeile 30", "Zeile 31", "Zeile 32"]


@pytest.mark.parametrize("missing", ["train_target", "valid_source"])
def test_a_missing_file_of_a_known_text_names_the_place_to_get_it(files, missing):
    paths = files("train", range(2)) | files("valid", range(2)) | {missing: "not/here"}
    with pytest.raises(InputError, match=r"not/here is not a file.*https://example\.org"):
        load(DataConfig(**paths, origin="https://example.org/text"))


def test_a_missing_file_of_a_list_of_corpora_names_the_place_to_get_it(files):
    corpora = (Corpus(*files("train", range(2)).values()), Corpus(path="not/here.tmx"))
    with pytest.raises(InputError, match=r"not/here.tmx is not a file.*https://example\.org"):
        load(DataConfig(corpora=corpora, origin="https://example.org/text"))


def test_validation_pairs_are_held_out_when_none_are_given(files):
    config = DataConfig(**files("train", range(50)), held_out=4)
    stream, valid = load(config)
    train = stream.read()
    assert (len(train), len(valid)) == (46, 4)
    for part in (train, valid):
        pairs = zip(part["source"], part["target"], strict=True)
        assert all(source.split()[1] == target.split()[1] for source, target in pairs)
    assert load(config, seed=1).valid == valid != load(config, seed=2).valid


def test_generated_pairs_are_the_same_for_every_seed():
    config = DataConfig(generated_pairs=50, held_out=5)
    for seed in (1, 2):
        train, valid = load(config, seed)
        assert (train.read(), valid) == generated_splits(config)[:2]


@pytest.fixture
def tfds_config(tmp_path):
    """Makes configurations for wmt14_translate/de-en, mocked: pair n of a split is "split n"."""
    tf = pytest.importorskip("tensorflow")
    tfds = pytest.importorskip("tensorflow_datasets")

    def pairs(builder, split, **kwargs):
        sides = {side: [f"{side} {split} {n}" for n in range(20)] for side in ("de", "en")}
        return tf.data.Dataset.from_tensor_slices(sides)

    with tfds.testing.mock_data(as_dataset_fn=pairs):
        yield lambda **options: DataConfig(
            tfds="wmt14_translate/de-en", tfds_dir=str(tmp_path), held_out=2, **options
        )


@pytest.mark.parametrize("reverse", [False, True])
def test_tfds_pairs(tfds_config, reverse):
    stream, valid = load(tfds_config(tfds_reverse=reverse))
    train = stream.read()
    source, target = ("en", "de") if reverse else ("de", "en")
    lines = [f"train {n}" for n in range(20)]
    assert sorted(train["source"] + valid["source"]) == sorted(f"{source} {n}" for n in lines)
    assert sorted(train["target"] + valid["target"]) == sorted(f"{target} {n}" for n in lines)
    assert len(valid) == 2


def test_tfds_validation_split(tfds_config):
    train, valid = load(tfds_config(tfds_valid_split="test"))
    assert train.read()["source"] == [f"de train {n}" for n in range(20)]
    assert valid["target"] == [f"en test {n}" for n in range(20)]


def test_pairs_are_encoded_side_by_side():
    class Words:
        def encode_batch(self, texts):
            return [[len(word) for word in text.split()] for text in texts]

    texts = {"source": ["a bb"], "target": ["ccc"]}
    assert TRANSLATION.encode(texts, Codec(Words())) == {"source": [[1, 2]], "target": [[3]]}


# --- test sets -------------------------------------------------------------------------------


def test_a_test_set_of_two_files_keeps_every_line(tmp_path, capsys):
    """Nothing is skipped, or line n out would not be line n in."""
    source, reference = tmp_path / "t.en", tmp_path / "t.de"
    source.write_bytes("one\u2028\n\n\xfcber".encode() + b"\xff\n")
    reference.write_bytes(b"eins\nzwei\n\n")
    test = TRANSLATION.load_test(Config(), str(source), str(reference))
    assert test == tasks.TestSet(["one\u2028", "", "\xfcber\ufffd"], ["eins", "zwei", ""])
    assert f"warning: {source} is not UTF-8: line 3 has the byte 0xff" in capsys.readouterr().err


def test_an_empty_test_set_is_an_error(tmp_path):
    source, reference = tmp_path / "t.en", tmp_path / "t.de"
    source.touch()
    reference.touch()
    message = f"expected at least one line, but nothing is in {source} and {reference}"
    with pytest.raises(InputError, match=message):
        TRANSLATION.load_test(Config(), str(source), str(reference))


def test_test_files_of_unequal_length(files):
    paths = [files("short", range(2))["short_source"], files("long", range(3))["long_target"]]
    with pytest.raises(InputError, match=r"short.source ends after line 2, but .*long.target has"):
        TRANSLATION.load_test(Config(), *paths)


def test_a_run_on_the_generated_corpus_has_a_test_set_of_its_own():
    data = DataConfig(generated_pairs=50, held_out=5)
    test = TRANSLATION.load_test(Config(data=data), "", "")
    assert len(test.inputs) == len(test.references) == TEST_PAIRS
    train, valid = load(data)
    assert not set(test.inputs) & set(train.read()["source"] + valid["source"])


@pytest.mark.parametrize("given", [(), ("source",), ("reference",)])
def test_a_run_on_files_needs_both_test_files(files, given):
    config = Config(data=DataConfig(**files("train", range(3))))
    with pytest.raises(InputError) as error:
        TRANSLATION.load_test(
            config, *("t" if name in given else "" for name in ("source", "reference"))
        )
    assert str(error.value) == (
        "give --source and --reference, the test set and its translation, or --corpus."
    )
