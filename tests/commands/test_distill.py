"""tf-transformer synthesize and distill: from a teacher to a table of it and its student."""

import dataclasses
import json
import pathlib
import shutil
import types

import pytest
from conftest import small_config

from tf_transformer.commands import command_line, distill, synthesize
from tf_transformer.config import Config, Corpus, DecodeConfig, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run

pytestmark = pytest.mark.usefixtures("loaded_once")

ANY = ("--min_score", "-100", "--max_ratio", "100")  # the teacher has learned little
SHORT = {"train.steps": 2, "train.validate_every": 2, "train.valid_score_examples": 0}


@pytest.fixture(scope="module")
def teacher(made_once):
    """A run that ends its translations."""
    from tf_transformer.training import trainer

    config = small_config(steps=200, validate_every=200, warmup_steps=50)
    text = (Corpus(format="generated", pairs=2000),)
    options = {"data.corpora": text, "data.batch_tokens": 2000, "decode.max_extra_length": 80}
    config = config.with_options(options)
    return made_once("teacher", lambda folder: trainer.train(Run.at(folder, config)))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "mono.en"
    path.write_text("".join(f"{word}-one\n" for word in ("twenty", "thirty", "forty", "fifty")))
    return path


def run(main, *words):
    command_line.run(main, [str(word) for word in words])


def fails(capfd, main, *words) -> str:
    with pytest.raises(SystemExit) as end:
        run(main, *words)
    assert end.value.code not in (0, None)
    return f"{end.value.code} {capfd.readouterr().err}"


def options(**given):
    """The words of options by name, those of a short training included."""
    return [f"--{name}={value}" for name, value in (SHORT | given).items()]


@pytest.mark.slow
def test_a_student_is_trained_on_the_text_of_its_teacher_and_compared(teacher, tmp_path, capfd):
    small, words = tmp_path / "small", ["--teacher", teacher, "--run_dir", tmp_path / "small", *ANY]
    words += options(**{"model.num_decoder_layers": 2, "decode.beam_size": 1})
    run(distill.main, *words)
    title, *rows = capfd.readouterr().out.split("\n")[-4:-1]
    assert title.split() == ["run", "search", "BLEU", "chrF", "sentences/s", "MB"]
    assert [row.split()[0] for row in rows] == [str(teacher), str(small)]
    assert [" ".join(row.split()[1:-4]) for row in rows] == ["beam 2", "greedy"]
    numbers = [[float(text.replace(",", "")) for text in row.split()[-4:]] for row in rows]
    assert all(speed > 0 and size > 1 for _, _, speed, size in numbers)

    large, config = RunFolder(teacher).load_config(), RunFolder(small).load_config()
    assert (config.model.d_model, config.model.decoder.num_layers) == (16, 2)
    assert config.decode.max_extra_length == large.decode.max_extra_length
    assert Run.load(small).codec.identity == Run.load(teacher).codec.identity
    (pairs,), (valid,) = config.data.corpora, config.data.valid_corpora
    card = json.loads((small / "distillation" / "card.json").read_text("utf-8"))
    lines = {
        path: pathlib.Path(path).read_text("utf-8").count("\n") for path in (pairs.path, valid.path)
    }
    assert lines == {pairs.path: card["kept"], valid.path: 20}
    sources = (small / "distillation" / "source.txt").read_text("utf-8").splitlines()
    assert card["kept"] + sum(card["dropped"].values()) == len(sources) == len(set(sources))

    before = (small / "distillation" / "translations.jsonl").stat()
    run(distill.main, *words)  # nothing is left but the comparison
    assert (small / "distillation" / "translations.jsonl").stat() == before
    assert len(RunFolder(small).load_metrics()) == 1


@pytest.mark.slow
def test_a_student_of_another_width_has_the_vocabulary_of_its_teacher(teacher, text, tmp_path):
    sides = [tmp_path / "valid.en", tmp_path / "valid.de"]
    for path, line in zip(sides, ("twenty-one", "einundzwanzig"), strict=True):
        path.write_text(f"{line}\n" * 3)
    small = tmp_path / "small"
    valid = {"valid.source": sides[0], "valid.target": sides[1]}
    words = options(**{"model.d_model": 8, "model.d_ff": 8}, **valid)
    run(distill.main, "--teacher", teacher, "--run_dir", small, "--text", text, *ANY, *words)
    assert Run.load(small).codec["target"].vocabulary_size == 320
    assert Run.load(small).codec["target"].encode("x") == Run.load(teacher).codec["target"].encode(
        "x"
    )
    assert RunFolder(small).load_config().model.num_heads == 2
    assert not (small / "distillation" / "source.txt").exists()


def test_options_that_are_not_given_are_those_of_the_teacher():
    there = small_config()
    teacher = types.SimpleNamespace(
        config=there,
        codec=types.SimpleNamespace(kind="joint"),
        folder=types.SimpleNamespace(path="runs/large"),
    )
    own = Config(ModelConfig(num_decoder_layers=1, d_model=8), decode=DecodeConfig(beam_size=1))
    config, fixed = distill.student(teacher, own, {"model.num_decoder_layers", "decode.beam_size"})
    assert config.model == dataclasses.replace(there.model, num_decoder_layers=1)
    assert config.decode == dataclasses.replace(there.decode, beam_size=1)
    assert (config.train.init_from, config.train.learning_rate) == ("runs/large", 0.5)
    assert {"model.d_model", "decode.beam_size", "train.learning_rate"} <= fixed
    assert distill.student(teacher, own, {"train.learning_rate"})[0].train.learning_rate == 1.0
    with pytest.raises(InputError, match=r"cannot be shared .* Leave out model\.d_model\."):
        distill.student(teacher, own, {"model.d_model"})


def test_an_interrupted_translation_continues(teacher, text, tmp_path, monkeypatch):
    words = ["--run_dir", teacher, "--text", text, "--window", "1", *ANY, "--to"]
    run(synthesize.main, *words, tmp_path / "whole")
    translate, windows = synthesize.ScoredTranslations.__call__, []

    def interrupted(step, texts, progress):
        windows.append(texts)
        if len(windows) == 3:
            raise KeyboardInterrupt
        return translate(step, texts, progress)

    monkeypatch.setattr(synthesize.ScoredTranslations, "__call__", interrupted)
    with pytest.raises(SystemExit, match="interrupted"):
        run(synthesize.main, *words, tmp_path / "part")
    run(synthesize.main, *words, tmp_path / "part")
    assert [len(texts) for texts in windows] == [1] * 5  # the third window twice
    for name in ("translations.jsonl", "pairs.jsonl", "card.json"):
        parts = [(tmp_path / folder / name).read_bytes() for folder in ("whole", "part")]
        assert parts[0] == parts[1]


def test_translations_of_another_search_are_an_error(teacher, text, tmp_path, capfd):
    words = ["--run_dir", teacher, "--text", text, "--to", tmp_path / "corpus", *ANY]
    run(synthesize.main, *words)
    message = fails(capfd, synthesize.main, *words, "--beam_size", "1")
    assert "of another text, model or search: other values of --beam_size" in message


def test_text_and_folders_are_checked_first(teacher, text, tmp_path, capfd):
    own = shutil.copytree(teacher, tmp_path / "own")
    words = ["--teacher", teacher, "--run_dir"]
    assert "holds a run that is not a student" in fails(capfd, distill.main, *words, own)
    missing = ["--text", tmp_path / "no.en"]
    assert "no.en" in fails(capfd, distill.main, *words, tmp_path / "small", *missing)
    message = fails(capfd, distill.main, *words, tmp_path / "small", "--test.path", "no.tsv")
    assert "no.tsv" in message
    assert not (tmp_path / "small").exists()
