"""A run's folder has one owner, knows its text, and works again after a hard kill."""

import dataclasses
import gzip
import shutil
import subprocess
import sys

import pytest
from conftest import scored_config, small_config, without_trained_length

from tf_transformer import tasks
from tf_transformer.errors import InputError
from tf_transformer.files.locks import FileLock
from tf_transformer.run import folder as run_folder
from tf_transformer.run.folder import RunFolder, owned
from tf_transformer.run.run import Run
from tf_transformer.training import preparation, trainer
from tf_transformer.training.checkpoint import Checkpoints
from tf_transformer.training.divergence import DivergenceCheck

LINES = [f"the number {n}" for n in range(60)]


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    program = "import os, sys; from tf_transformer.files.locks import FileLock\n"
    program += "lock = FileLock(sys.argv[1]); os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "lock"], check=False)
    assert done.returncode == -9
    lock = FileLock(tmp_path / "lock")
    with pytest.raises(BlockingIOError):
        FileLock(tmp_path / "lock")
    lock.release()
    assert names(tmp_path) == set()


def test_a_file_system_without_locks_is_no_obstacle(tmp_path, monkeypatch):
    def flock(*arguments):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", flock)
    with owned(RunFolder(tmp_path / "run")):
        pass
    assert names(tmp_path) == set()


def test_a_fine_tuning_that_fails_after_its_start_was_validated_leaves_no_files(
    run, tmp_path, monkeypatch
):
    config = scored_config(init_from=str(run), validate_every=4)
    monkeypatch.setattr(DivergenceCheck, "start_interval", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trainer.train(Run.at(tmp_path / "tuned", config))
    assert not (tmp_path / "tuned").exists()


def test_the_second_training_ends_at_once_and_the_first_is_whole(tmp_path):
    def second(update):
        with pytest.raises(InputError, match="another training run is active in"):
            trainer.train(Run.at(tmp_path, small_config(steps=9, seed=5)))

    result = trainer.train(Run.at(tmp_path, small_config(steps=2)), on_best=second)
    assert result.updates == 2
    assert without_trained_length(RunFolder(tmp_path).load_config()) == small_config(steps=2)
    assert Run.load(tmp_path).codec
    assert not [name for name in names(tmp_path) if name.startswith(".")]


def test_a_failure_removes_only_files_of_the_run(tmp_path, monkeypatch):
    """Another program may write in the folder meanwhile."""

    def fail(*arguments, **options):
        (tmp_path / "log.txt").write_text("of another program")
        raise RuntimeError("later")

    monkeypatch.setattr(trainer, "make_updater", fail)
    with pytest.raises(RuntimeError, match="later"):
        trainer.train(Run.at(tmp_path, small_config()))
    assert names(tmp_path) == {"log.txt"}


@pytest.mark.parametrize("half_started", [False, True])
def test_a_failure_after_the_first_checkpoint_keeps_the_run(tmp_path, half_started):
    run = RunFolder(tmp_path)
    if half_started:
        run.mark_start()

    def fail_later():
        run.mark_start()
        run.save_config(small_config())
        run.resume.mkdir(parents=True)
        (run.resume / "checkpoint").touch()
        run.starting.unlink()
        raise RuntimeError

    with pytest.raises(RuntimeError), owned(RunFolder(tmp_path)):
        fail_later()
    assert run.has_checkpoint
    assert run.load_config() == small_config()


@pytest.mark.parametrize("moment", ["make_updater", "interval"])
def test_after_a_hard_kill_before_the_first_checkpoint_the_command_works_again(
    tmp_path, monkeypatch, moment
):
    """Also another one, and with the weights of the first interval on disk."""
    killed = tmp_path / "killed"

    def kill(*arguments, **options):
        shutil.copytree(tmp_path / "run", killed)
        raise InputError("killed")

    if moment == "interval":
        monkeypatch.setattr(Checkpoints, "save", kill)
    else:
        monkeypatch.setattr(trainer, moment, kill)
    with pytest.raises(InputError, match="killed"):
        trainer.train(Run.at(tmp_path / "run", small_config(steps=2)))
    monkeypatch.undo()
    assert bool(list(killed.glob("checkpoints/*.index"))) == (moment == "interval")
    assert (killed / "metrics.jsonl").exists() == (moment == "interval")
    start(small_config(seed=7), killed)
    assert RunFolder(killed).load_config().train.seed == 7
    assert not (killed / "metrics.jsonl").exists()
    assert names(killed / "checkpoints") == {"resume"}


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    def fail(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(run_folder, "FileLock", fail)
    with pytest.raises(InputError, match=r"--run_dir .*run cannot be made or written"):
        trainer.train(Run.at(tmp_path / "run", small_config()))


# --- the text of a run -----------------------------------------------------------------------


@pytest.fixture
def text(tmp_path):
    """A configuration that trains on two files, and its run, which has a checkpoint."""
    paths = {"train_source": tmp_path / "a.en", "train_target": tmp_path / "a.de"}
    for path in paths.values():
        path.write_text("".join(f"{line}\n" for line in LINES))
    config = with_files(small_config(), **paths)
    start(config, tmp_path / "run")
    return config


def start(config, run_dir):
    """All of a start that comes before the first update, and a checkpoint after it."""
    preparation.prepare(Run.at(run_dir, config), tasks.for_run(config))
    run = RunFolder(run_dir)
    run.resume.mkdir(parents=True, exist_ok=True)
    (run.resume / "checkpoint").touch()


def with_files(config, **paths):
    """The configuration with other files of its pairs, by the short forms of corpora."""
    lists = {"train": config.data.corpora, "valid": config.data.valid_corpora}
    files = {
        f"{part}_{side}": getattr(corpora[0], side)
        for part, corpora in lists.items()
        for side in ("source", "target")
        if corpora
    } | {name: str(path) for name, path in paths.items()}
    data = dataclasses.replace(config.data, corpora=(), valid_corpora=(), **files)
    return dataclasses.replace(config, data=data)


def test_a_run_goes_on_with_its_text_only(text, tmp_path):
    """Wherever it is now, in whatever compression."""
    for name in ("a.en", "a.de"):
        with (tmp_path / name).open("a") as file:
            file.write("one more line\n")
    message = "the training.* text of .*run has changed since the run began.*--train.init_from"
    with pytest.raises(InputError, match=message):
        start(text, tmp_path / "run")
    content = "".join(f"{line}\n" for line in LINES).encode()
    (tmp_path / "b.en.gz").write_bytes(gzip.compress(content))
    (tmp_path / "b.de").write_bytes(content)
    moved = {"train_source": tmp_path / "b.en.gz", "train_target": tmp_path / "b.de"}
    start(with_files(text, **moved), tmp_path / "run")


def test_changed_validation_text_is_refused(text, tmp_path):
    for name in ("v.en", "v.de"):
        (tmp_path / name).write_text("one\ntwo\n")
    config = with_files(text, valid_source=tmp_path / "v.en", valid_target=tmp_path / "v.de")
    start(config, tmp_path / "other")
    (tmp_path / "v.de").write_text("one\nTwo\n")
    with pytest.raises(InputError, match=r"the validation text of .* has changed"):
        start(config, tmp_path / "other")


def test_a_run_of_an_earlier_version_goes_on_and_then_knows_its_text(text, tmp_path):
    run = RunFolder(tmp_path / "run")
    stored = run.load_text()
    run.text.unlink()
    with pytest.raises(InputError, match=r"data\.corpora was \(Corpus\(source="):
        start(with_files(text, train_source=tmp_path / "a.de"), run.path)
    start(text, run.path)
    assert run.load_text() == {name: stored[name] for name in ("training", "validation")}


@pytest.mark.slow
def test_a_run_keeps_the_normalisation_of_its_vocabulary(tmp_path):
    """An earlier version had another default, so the same command gives another one now."""
    config = small_config(steps=1, validate_every=1)
    data = dataclasses.replace(config.data, normalization="identity")
    first, second = tmp_path / "first", tmp_path / "second"
    trainer.train(Run.at(first, dataclasses.replace(config, data=data)))
    trainer.train(Run.at(first, small_config(steps=2, validate_every=1)))
    trainer.train(Run.at(second, small_config(steps=1, init_from=str(first))))
    for folder in (first, second):
        assert RunFolder(folder).load_config().data.normalization == "identity"


def test_tokenised_text_is_found_by_its_content(text, tmp_path):
    """By another run, on files of other names."""
    data = dataclasses.replace(text.data, cache_dir=str(tmp_path / "cache"))
    config = dataclasses.replace(text, data=data)
    start(config, tmp_path / "one")
    stores = names(tmp_path / "cache")
    shutil.copy(tmp_path / "a.en", tmp_path / "b.en")
    start(with_files(config, train_source=tmp_path / "b.en"), tmp_path / "two")
    assert names(tmp_path / "cache") == stores


def test_a_run_that_an_earlier_version_trained_in_the_other_direction_is_refused(tmp_path):
    """It took the languages of a corpus in the order of the alphabet, and stored en and de."""
    tf, tfds = pytest.importorskip("tensorflow"), pytest.importorskip("tensorflow_datasets")

    def pairs(builder, *arguments, **options):
        return tf.data.Dataset.from_tensor_slices({"en": LINES, "fr": LINES})

    data = {"tfds": "wmt14_translate/fr-en", "tfds_dir": str(tmp_path), "source_language": "fr"}
    data = dataclasses.replace(small_config().data, target_language="en", **data)
    config = dataclasses.replace(small_config(), data=data)
    run = RunFolder(tmp_path / "run")
    with tfds.testing.mock_data(as_dataset_fn=pairs):
        assert tasks.get("translation").complete(config) == config
        start(config, run.path)
        start(config, run.path)
        run.text.unlink()
        with pytest.raises(InputError, match="trained from en to fr, because an earlier version"):
            start(config, run.path)
