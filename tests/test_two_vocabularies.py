"""A translation whose source and target have a vocabulary each, from training to every export."""

import dataclasses
import functools
import itertools
import json

import numpy as np
import pytest
from conftest import small_config, stored_weights

from tf_transformer import tasks
from tf_transformer.commands import evaluate, export, translate
from tf_transformer.config import Config, DataConfig, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.export import to_ctranslate2
from tf_transformer.inference.attention_record import read_json
from tf_transformer.inference.saved_translator import METADATA
from tf_transformer.inference.translator import Translator
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.run.weights import checkpoints_in
from tf_transformer.tasks.encoder_decoder import build_model
from tf_transformer.text.codec import Codec
from tf_transformer.text.normalization import normalize
from tf_transformer.training import trainer
from tf_transformer.training.preparation import prepare

pytestmark = pytest.mark.usefixtures("loaded_once")

TEXTS = ["twenty-one", "a house", "", "Straße 猫"]
FILES = {"tokenizer.source.model", "tokenizer.target.model"}


def config_of(model=None, data=None, **train):
    """A configuration that trains in seconds, on English and Ukrainian."""
    config = small_config(**train)
    data = {"vocabularies": "separate", "target_language": "uk", "vocabulary_size": 310} | (
        data or {}
    )
    model = {"tie_embeddings": "target"} | (model or {})
    return dataclasses.replace(
        config,
        model=dataclasses.replace(config.model, **model),
        data=dataclasses.replace(config.data, **data),
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was interrupted after half of its updates."""
    folder = tmp_path_factory.mktemp("runs") / "separate"
    trainer.train(Run.at(folder, config_of(steps=2)))
    trainer.train(Run.at(folder, config_of(steps=4)))
    return folder


@pytest.fixture(scope="module")
def translator(run):
    return Translator.from_run(run, num_hypotheses=2, max_source_length=64)


@pytest.mark.slow
def test_a_resumed_training_equals_one_without_an_interruption(run, tmp_path):
    trainer.train(Run.at(tmp_path / "run", config_of(steps=4)))
    latest = (
        checkpoints_in(RunFolder(folder).checkpoints)[-1] for folder in (run, tmp_path / "run")
    )
    for one, other in zip(*map(stored_weights, latest), strict=True):
        np.testing.assert_array_equal(one, other)


def test_each_side_learns_from_its_own_text(run):
    assert {path.name for path in run.glob("tokenizer*")} == FILES
    assert {path.name for path in RunFolder(run).files()} > FILES
    codec = Run.load(run).codec
    pieces = {
        field: {piece for i in range(codec.size(field)) if (piece := codec[field].piece(i))}
        for field in ("source", "target")
    }
    assert "▁д" in pieces["target"] - pieces["source"]
    assert "▁t" in pieces["source"] - pieces["target"]


def test_attention_has_the_pieces_of_each_side(translator):
    codec, text, translation = translator.codec, "twenty-one", "двадцять один"
    source, target = (
        [codec[field].piece(i) for i in codec.encode(field, line)]
        for field, line in (("source", text), ("target", translation))
    )
    (record,) = translator.attention([text], [translation])
    found = {each.kind: (each.queries.pieces, each.keys.pieces) for each in record.maps}
    read = ["<s>", *target[:-1]]
    assert found == {
        "encoder": (source, source),
        "decoder": (target, read),
        "cross": (target, source),
    }
    (alignment,) = translator.align([text], [translation])
    assert (alignment.source.pieces, alignment.target.pieces) == (source, target)
    assert alignment.target.words == [*translation.split(), "</s>"]


def test_constraints_and_prefixes_are_of_the_target(translator):
    prefix = "двадцять"
    (found,) = translator(["twenty-one"], [prefix])
    assert found.text.startswith(prefix)
    excluded = Translator(
        translator.model,
        translator.codec,
        dataclasses.replace(translator.config, excluded_tokens=("▁д",)),
    )
    assert excluded.excluded_ids == (translator.codec["target"].piece_to_id("▁д"),)


def test_its_translations_are_aligned_and_shown(run, tmp_path):
    """Pieces of each side number the links, and label the attention."""
    source, output, links, attention = (
        tmp_path / name for name in ("in.txt", "out.txt", "links.txt", "attention.json")
    )
    source.write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    files = {"output": output, "alignments_output": links, "attention_output": attention}
    translate.main(
        *(str(run), str(source)),
        **{name: str(path) for name, path in files.items()},
        **{"alignment_unit": "pieces", "max_length": 5},
    )
    codec = Run.load(run).codec
    lines = [path.read_text("utf-8").split("\n")[:-1] for path in (output, links)]
    records = read_json(attention.read_text("utf-8"))
    for text, translation, row, record in zip(TEXTS, *lines, records, strict=True):
        (cross,) = (each for each in record.maps if each.kind == "cross")
        sides = (("source", text, cross.keys), ("target", translation, cross.queries))
        for field, line, tokens in sides:
            assert tokens.pieces == list(map(codec[field].piece, codec.encode(field, line)))
        count = len(cross.queries.pieces) - 1 if text else 0
        assert [int(link.split("-")[1]) for link in row.split()] == list(range(count))


def test_it_is_evaluated(run, tmp_path, capsys):
    (tmp_path / "source").write_text("twenty-one\n", "utf-8")
    (tmp_path / "target").write_text("двадцять один\n", "utf-8")
    evaluate.main(str(run), str(tmp_path / "source"), str(tmp_path / "target"))
    assert '"bleu"' in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.slow
def test_a_saved_model_gives_the_runs_answers_in_a_session(run, tmp_path, capsys):
    """The export compares all signatures in a fresh process; a wrong tokenizer fails it."""
    export.main(str(run), str(tmp_path / "1"), num_hypotheses=2, max_source_length=64)
    assert "sentences checked in a session" in capsys.readouterr().out
    facts = json.loads((tmp_path / "1" / METADATA).read_text("utf-8"))["tokenizer"]
    codec = Run.load(run).codec
    sizes = {field: facts[field]["vocabulary_size"] for field in codec.tokenizers}
    assert sizes == {field: codec.size(field) for field in ("source", "target")}


def test_ctranslate2_scores_as_the_run(translator, tmp_path):
    pytest.importorskip("ctranslate2")
    from tf_transformer.export.run_in_ctranslate2 import Model

    to_ctranslate2.write(translator, tmp_path, "float32")
    assert {path.name for path in tmp_path.iterdir()} >= FILES
    model, given = Model(str(tmp_path), threads=1), ["двадцять один", "дім", "", "Straße 猫"]
    expected = [(pair.score, pair.log_probability) for pair in translator.score(TEXTS, given)]
    np.testing.assert_allclose(model.score(TEXTS, given), expected, atol=1e-4, rtol=1e-5)
    target = translator.codec["target"]
    for text in given:
        assert model.text(list(map(target.piece, target.encode(text)))) == text


def test_a_training_starts_with_it(run, tmp_path):
    export.main(str(run), str(tmp_path / "small"), format="run")
    config = config_of(steps=1, init_from=str(tmp_path / "small"), learning_rate=1e-9)
    trainer.train(Run.at(tmp_path / "tuned", config))
    assert Codec.load(tmp_path / "tuned").identity == Codec.load(run).identity
    shared = small_config(steps=1, init_from=str(run))
    with pytest.raises(InputError, match=r"data\.vocabularies is 'separate' there, 'shared' he"):
        trainer.train(Run.at(tmp_path / "other", shared))
    assert not (tmp_path / "other").exists()


def test_bpe_dropout_divides_each_side_by_its_own_merges(tmp_path):
    config = config_of(data={"bpe_dropout": 0.9, "vocabulary_size": 330})
    data = prepare(Run.at(tmp_path, config), tasks.for_run(config))
    splits = tasks.for_run(config).load_splits(config)
    known = {
        field: set(map(normalize, texts)) for field, texts in splits.train.read().texts.items()
    }
    for batch in itertools.islice(data.train.batches(), 3):
        for field, rows in batch.items():
            decode = functools.partial(data.codec.decode, field)
            texts = [decode(row[row > 0]) for row in rows]
            assert set(texts) <= known[field]
            assert (rows > 0).sum() > sum(map(len, data.codec.encode_batch(field, texts)))


@pytest.mark.parametrize("architecture", ["transformer", "luong"])
def test_the_model_of_any_architecture_has_both_sizes(architecture, translator):
    codec = translator.codec
    model = build_model(config_of({"architecture": architecture}), codec, "float32")
    assert model.source_embedding.vocabulary_size == codec.size("source")
    assert model.output_embedding.vocabulary_size == codec.size("target")


def test_one_matrix_for_both_sides_is_refused():
    with pytest.raises(InputError, match=r"Give --model.tie_embeddings target \(or none\), or"):
        config_of({"tie_embeddings": "all"})


def test_a_task_with_one_text_refuses_it(tmp_path):
    (tmp_path / "text").write_text("a house\n" * 9, "utf-8")
    data = DataConfig(train_file=str(tmp_path / "text"), vocabularies="separate")
    config = Config(ModelConfig(tie_embeddings="none"), data, task="language_modeling")
    with pytest.raises(InputError, match=r"Expected shared for language_modeling, which has one"):
        prepare(Run.at(tmp_path / "run", config), tasks.for_run(config))
    assert not (tmp_path / "run").exists()
