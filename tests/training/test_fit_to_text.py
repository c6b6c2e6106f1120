"""Training with two files and nothing else: options are chosen, saved, and kept by a resume."""

import dataclasses
import shutil

import pytest
import yaml

from tf_transformer.commands import command_line, train
from tf_transformer.config import PRESETS, Config, DataConfig, ModelConfig
from tf_transformer.data.readers.generated import generate
from tf_transformer.run.folder import RunFolder
from tf_transformer.training import defaults


@pytest.fixture
def two_files(tmp_path):
    """The options that name two small files."""
    for side, texts in generate(80, "en", "de", seed=1).texts.items():
        (tmp_path / side).write_text("".join(f"{text}\n" for text in texts))
    return [f"--data.train_{side}={tmp_path / side}" for side in ("source", "target")]


NARROW = ModelConfig(num_layers=1, d_model=16, d_ff=24, num_heads=2)


@pytest.fixture
def short(monkeypatch):
    """Training runs of three updates of a narrow model."""
    monkeypatch.setitem(PRESETS, "tiny", NARROW)
    monkeypatch.setattr(defaults, "MOST_PASSES", 3)


def trained(folder, *words):
    """The configuration of a run after training it by the command."""
    command_line.run(train.main, ["--run_dir", str(folder), *words])
    return RunFolder(folder).load_config()


def completed(monkeypatch, folder, *words):
    """The configuration that a command would train, without training."""
    configs = []

    class StopError(Exception):
        """Ends the command."""

    def stop(run, on_best):
        configs.append(run.config)
        raise StopError

    monkeypatch.setattr("tf_transformer.training.trainer.train", stop)
    with pytest.raises(StopError):
        command_line.run(train.main, ["--run_dir", str(folder), *words])
    return configs[0]


@pytest.mark.parametrize(
    ("change", "option", "usual", "learned"),
    [("copy", "keep_as", "text", "emoji"), ("terms", "terms_as", "constraint", "text")],
)
def test_a_model_reads_what_it_learns_unless_an_option_says_another(
    tmp_path, two_files, monkeypatch, capsys, change, option, usual, learned
):
    learns, option_name = [*two_files, f"--data.augment.{change}", "0.1"], f"--decode.{option}"
    for words, value in (
        *((two_files, usual), (learns, learned)),
        *(([*learns, option_name, usual], usual), ([*two_files, option_name, learned], learned)),
    ):
        config = completed(monkeypatch, tmp_path / "run", *words)
        assert getattr(config.decode, option) == value
        is_told = f"{option_name} {learned}, which" in capsys.readouterr().out
        assert is_told == (words == learns)


def test_a_language_model_has_no_scores_unless_they_are_given(tmp_path, monkeypatch, capsys):
    (tmp_path / "text").write_text("Tom is here.\n" * 9)
    words = ["--task", "language_modeling", "--data.train_file", str(tmp_path / "text")]
    option = "train.valid_score_examples"
    for given, count in ([], 0), ([f"--{option}", "200"], 200), ([f"--{option}", "9"], 9):
        config = completed(monkeypatch, tmp_path / "run", *words, *given)
        assert config.train.valid_score_examples == count
        is_told = f"chosen for language_modeling: --{option} 0" in capsys.readouterr().out
        assert is_told == (not given)


def test_two_files_and_nothing_else(tmp_path, two_files, short, monkeypatch, capsys):
    run = tmp_path / "run"
    config = trained(run, *two_files)
    lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("chosen")]
    assert len(lines) == 3
    assert "--data.vocabulary_size 2000, because" in lines[0]
    assert config.data.vocabulary_size == 2000
    assert config.model == dataclasses.replace(NARROW, num_layers=2, dropout_rate=0.3)
    assert (config.data.batch_tokens, config.train.steps, config.train.warmup_steps) == (
        1024,
        3,
        1000,
    )
    assert yaml.safe_load((run / "config.yaml").read_text())["train"]["steps"] == 3

    assert config.decode.trained_source_length > 0  # a training run stores it
    # A rule of another version does not change a run that has started.
    monkeypatch.setattr(defaults, "DROPOUT", ((0, 0.4),))
    (tmp_path / "x.yaml").write_text("train: {seed: 1}")
    for words in ([], two_files, [*two_files, "--config", str(tmp_path / "x.yaml")]):
        kept = completed(monkeypatch, run, *words)
        length = config.decode.trained_source_length  # which training stores again
        decode = dataclasses.replace(kept.decode, trained_source_length=length)
        assert dataclasses.replace(kept, decode=decode) == config
    assert "chosen" not in capsys.readouterr().out
    other = tmp_path / "other"
    assert completed(monkeypatch, other, *two_files).model.dropout_rate == 0.4


def test_given_options_win_wherever_they_are_given(tmp_path, two_files, monkeypatch):
    (tmp_path / "x.yaml").write_text("data: {vocabulary_size: 400}\ntrain: {epochs: 30}")
    words = [*two_files, "--config", str(tmp_path / "x.yaml"), "--model.dropout_rate", "0.1"]
    config = completed(monkeypatch, tmp_path / "run", *words, "--data.augment.upper", "0.2")
    assert (config.data.vocabulary_size, config.data.augment.upper) == (400, 0.2)
    assert (config.train.epochs, config.train.steps) == (30, 0)
    assert config.model.dropout_rate == 0.1  # the default, given
    assert config.data.batch_tokens == 1024  # chosen


def test_a_given_preset_wins(tmp_path, two_files, monkeypatch, capsys):
    config = completed(monkeypatch, tmp_path / "run", *two_files, "--model", "base")
    assert config.model == ModelConfig.preset("base")
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_run_that_starts_with_weights_has_their_vocabulary_and_sizes(
    tmp_path, two_files, run, monkeypatch
):
    """`run` is a small one."""
    origin = RunFolder(run).load_config()
    model = {"position": "marian", "output_bias": True, "zero_start": True, "dropout_rate": 0.2}
    origin = dataclasses.replace(
        origin,
        model=dataclasses.replace(origin.model, **model),
        data=dataclasses.replace(origin.data, segmentation="unigram", normalization="nmt_nfkc"),
        decode=dataclasses.replace(origin.decode, length_penalty=0.9, average=1),
    )
    other = RunFolder(shutil.copytree(run, tmp_path / "origin"))
    other.save_config(origin)
    words = [*two_files, f"--train.init_from={other.path}"]
    config = completed(monkeypatch, tmp_path / "run", *words)
    assert config.model == origin.model
    assert config.data.tokenizer_options == origin.data.tokenizer_options
    assert config.data.batch_tokens == 1024
    assert config.decode == dataclasses.replace(origin.decode, average=Config().decode.average)
    assert config.train.learning_rate == 0.1 < Config().train.learning_rate
    words += ["--model.dropout_rate=0.1", "--train.learning_rate=0.7", "--decode.beam_size=3"]
    config = completed(monkeypatch, tmp_path / "run", *words)
    assert config.model == dataclasses.replace(origin.model, dropout_rate=0.1)
    assert (config.train.learning_rate, config.decode.beam_size) == (0.7, 3)


def test_the_generated_corpus_other_models_other_tasks_and_python_keep_fixed_defaults(
    tmp_path, two_files, monkeypatch
):
    assert completed(monkeypatch, tmp_path / "run") == Config()
    config = completed(monkeypatch, tmp_path / "run", *two_files, "--model.architecture", "luong")
    assert config.data.vocabulary_size == 8000
    file = f"--data.train_file={tmp_path / 'source'}"
    config = completed(monkeypatch, tmp_path / "run", "--task", "language_modeling", file)
    of_task = dataclasses.replace(Config().train, valid_score_examples=0)
    assert (config.model, config.train) == (Config().model, of_task)
    source, target = (str(tmp_path / side) for side in ("source", "target"))
    data = DataConfig(train_source=source, train_target=target)
    configs = []
    monkeypatch.setattr("tf_transformer.training.trainer.train", lambda run, _: configs.append(run))
    with pytest.raises(AttributeError):  # there is no result to print
        train.main(str(tmp_path / "run"), data=data)
    assert configs[0].config == Config(data=data)
