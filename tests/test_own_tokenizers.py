"""Translations with SentencePiece models of the user, from training to every export."""

import dataclasses

import pytest
import sentencepiece
from conftest import small_config

from tf_transformer.commands import evaluate, export, translate
from tf_transformer.config import DataConfig
from tf_transformer.data.readers.generated import generate
from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator
from tf_transformer.run.run import Run
from tf_transformer.training import trainer

TEXTS = ["<2de> twenty-one", "", "<ph> June twelfth"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The files of two models: one of byte pairs, one of unigrams."""
    folder = tmp_path_factory.mktemp("own")
    for side, kind in (("source", "bpe"), ("target", "unigram")):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(generate(100, "en", "de", seed=1)[side]),
            model_prefix=str(folder / side),
            model_type=kind,
            vocab_size=150,
            hard_vocab_limit=False,
            user_defined_symbols=["<2de>", "<ph>"],
            minloglevel=2,
        )
    return folder


def config_of(models, kind, steps):
    """A configuration that trains in seconds with the models of the user."""
    config = small_config(steps=steps)
    sides = ("source",) if kind == "shared" else ("source", "target")
    names = ",".join(f"{side}.model" for side in sides)
    data = {"tokenizer": names, "folder": str(models), "vocabularies": kind}
    tying = "all" if kind == "shared" else "target"
    return dataclasses.replace(
        config,
        model=dataclasses.replace(config.model, tie_embeddings=tying),
        data=dataclasses.replace(config.data, **data),
    )


def trained(models, kind, folder):
    """The folder of a run."""
    trainer.train(Run.at(folder, config_of(models, kind, steps=2)))
    return folder


@pytest.mark.slow
def test_a_model_for_each_side_trains_translates_and_is_saved(models, tmp_path):
    run = Run.load(trained(models, "separate", tmp_path / "run"))
    assert run.config.data.vocabulary_size == max(run.codec.sizes) < 310
    for side in ("source", "target"):
        piece = run.codec[side].piece_to_id("<2de>")
        assert run.codec.decode(side, [piece, piece]) == "<2de><2de>"
    translator = Translator.from_run(tmp_path / "run")
    translator.save(tmp_path / "1")
    saved = Translator.load(tmp_path / "1")
    assert [x.text for x in saved(TEXTS)] == [x.text for x in translator(TEXTS)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_each_command_takes_such_a_run(models, kind, tmp_path, capsys):
    run = str(trained(models, kind, tmp_path / "run"))
    assert trainer.train(Run.at(run, config_of(models, kind, steps=4))).updates == 4
    (tmp_path / "in.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    translate.main(run, str(tmp_path / "in.txt"), str(tmp_path / "out.txt"))
    assert (tmp_path / "out.txt").read_text("utf-8").count("\n") == len(TEXTS)
    evaluate.main(run, str(tmp_path / "in.txt"), str(tmp_path / "in.txt"))
    assert '"sentences": 3' in capsys.readouterr().out
    for format in ("saved_model", "ctranslate2"):
        export.main(run, str(tmp_path / format / "1"), format=format)


def test_one_file_is_for_a_shared_vocabulary_and_two_for_separate_ones():
    for names, kind in (("a.model", "separate"), ("a.model,b.model", "shared")):
        with pytest.raises(InputError, match=f"got {names} with {kind}"):
            DataConfig(tokenizer=names, vocabularies=kind)


def test_a_file_that_is_missing_leaves_no_run(models, tmp_path):
    config = config_of(models, "shared", 2)
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, tokenizer="x"))
    with pytest.raises(InputError, match=r"data.tokenizer: .*x is missing"):
        trainer.train(Run.at(tmp_path / "run", config))
    assert not (tmp_path / "run").exists()
