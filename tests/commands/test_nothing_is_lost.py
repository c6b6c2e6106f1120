"""For any command, any wrong argument and any state of the folder: every file stays as it is."""

import os
import pathlib
import shutil
import tempfile

import pytest
from conftest import small_config

from tf_transformer.commands import command_line, evaluate, export, plot, train, translate
from tf_transformer.errors import InputError
from tf_transformer.files.locks import FileLock
from tf_transformer.files.outputs import require_free
from tf_transformer.run.folder import RunFolder

pytestmark = pytest.mark.usefixtures("loaded_once")


def snapshot(folder: pathlib.Path) -> dict:
    """The content of all files below a folder, and the targets of links."""
    return {
        path.relative_to(folder): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def fails(main, *words) -> str:
    """Runs a command that must fail; returns its error."""
    with pytest.raises(SystemExit) as error:
        command_line.run(main, [str(word) for word in words])
    assert error.value.code not in (0, None)
    return str(error.value.code)


# --- training runs ---------------------------------------------------------------------------


def foreign(folder, run):
    """Somebody else's files under the names that a run has."""
    for name in ("config.yaml", "tokenizer.model", "config.yaml.partial", "notes.txt"):
        (folder / name).write_text(f"my own {name}")


def one_file(name):
    def make(folder, run):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("my own")

    return make


def finished(folder, run):
    """A model without the state of its training, like pretrained/tatoeba-en-de."""
    shutil.copytree(run, folder, dirs_exist_ok=True)
    shutil.rmtree(folder / "checkpoints" / "resume")


def complete(folder, run):
    shutil.copytree(run, folder, dirs_exist_ok=True)


def half_started(folder, run):
    """A start was killed before its first checkpoint."""
    RunFolder(folder).mark_start()
    RunFolder(folder).save_config(small_config())
    (folder / "tokenizer.model").write_text("of that start")


OTHERS = [
    one_file(name)
    for name in (
        *("config.yaml", "tokenizer.model", "execution.json", "metrics.jsonl", "samples.txt"),
        *("text.json", "checkpoints/a", "tokens/a", "export/a", "logs/events.out.tfevents.1"),
    )
]
STATES = [foreign, finished, complete, half_started, *OTHERS]
WRONG = [
    ("--data.train_source", "typo.en", "--data.train_target", "typo.de"),
    ("--data.tfds", "no_such_corpus"),
    ("--train.init_from", "missing"),
    ("--train.init_from", "{run_dir}", "--train.seed", "9"),
    ("--data.train_file", "{run_dir}", "--task", "language_modeling"),
    ("--train.metric", "nonsense"),
    ("--train.strategy", "multi_worker"),
    ("--data.bpe_dropout", "0.1", "--task", "classification", "--data.train_file", "typo"),
]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_training_that_cannot_start_changes_nothing(run, tmp_path, monkeypatch, state, wrong):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    (tmp_path / "p").mkdir()
    state(tmp_path / "p", run)
    before = snapshot(tmp_path)
    words = [word.format(run_dir=tmp_path / "p") for word in wrong]
    fails(train.main, "--run_dir", tmp_path / "p", *words)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("state", [foreign, finished, *OTHERS])
@pytest.mark.parametrize("options", [(), ("--train.init_from", "{run}")])
def test_nothing_is_trained_over_other_files(run, tmp_path, monkeypatch, state, options):
    """Also in the current folder."""
    state(tmp_path, run)
    before = snapshot(tmp_path)
    monkeypatch.chdir(tmp_path)
    error = fails(train.main, "--run_dir", ".", *(word.format(run=run) for word in options))
    assert "Give another --run_dir" in error
    assert "--train.init_from" in error
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("state", STATES)
def test_a_folder_has_one_training_at_a_time(run, tmp_path, state):
    state(tmp_path, run)
    lock = FileLock(RunFolder(tmp_path).lock)
    before = snapshot(tmp_path)
    assert "another training run is active" in fails(train.main, "--run_dir", tmp_path)
    assert snapshot(tmp_path) == before
    lock.release()


@pytest.mark.parametrize("wrong", WRONG)
def test_a_failed_first_start_leaves_no_files(tmp_path, monkeypatch, wrong):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    fails(train.main, "--run_dir", tmp_path / "a" / "b", *wrong)
    assert list(tmp_path.iterdir()) == []


# --- outputs ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(run, tmp_path_factory):
    """A folder with a run and texts, for commands that must not change it."""
    folder = tmp_path_factory.mktemp("outputs")
    shutil.copytree(run, folder / "run")
    for name in ("a.en", "a.de", "other", "picture.png", "page.html"):
        (folder / name).write_text(f"one\ntwo {name}\n")
    (folder / "linked").symlink_to("other")
    os.link(folder / "a.de", folder / "hard")
    (folder / "soft").symlink_to("a.en")
    (folder / "served").mkdir()
    (folder / "served" / "1").symlink_to("nowhere")
    (folder / "b.partial").write_text("mine\n")
    (folder / "c.partial.json").write_text("mine\n")
    return folder


EVALUATE = (evaluate.main, "--run_dir", "run", "--source", "a.en", "--reference", "a.de")
TRANSLATE = (translate.main, "--run_dir", "run", "--input", "a.en")
RUN_FILES = ("run/config.yaml", "run/tokenizer.model", "run/checkpoints/checkpoint")
INPUTS = ("a.en", "hard", "soft", *RUN_FILES)
TAKEN = ("a.en", "a.de", "hard", "soft", "other", "linked", "run", *RUN_FILES)


@pytest.mark.parametrize(
    "command",
    [
        *((*EVALUATE, "--output", name) for name in TAKEN),
        *((*EVALUATE, "--output", name, "--overwrite") for name in (*INPUTS, "a.de")),
        *((*TRANSLATE, "--output", name) for name in TAKEN),
        *((*TRANSLATE, "--output", name, "--resume") for name in TAKEN),
        *((*TRANSLATE, "--output", name, "--overwrite") for name in INPUTS if name != "hard"),
        *((*TRANSLATE, "--output", "new", f"--{kind}_output", name)
          for name in ("other", "a.en", "new", "new.partial", "./new")
          for kind in ("n_best", "scores", "alignments")),
        (*TRANSLATE, "--output", "new.html", "--attention_output", "new.html"),
        (*TRANSLATE, "--output", "new", "--attention_output", "page.html"),
        *((*TRANSLATE, "--output", "b", *more) for more in ((), ("--resume",), ("--overwrite",))),
        (*TRANSLATE, "--output", "c"),
        (*TRANSLATE, "--output", "no/../a.en"),
        (*TRANSLATE, "--output", "new", "--prefixes", "other", "--scores_output", "linked",
         "--overwrite"),
        (plot.main, "run", "--output", "picture.png"),
        (export.main, "--run_dir", "run", "--to", "run"),
        (export.main, "--run_dir", "run", "--to", "served/1"),
        (export.main, "--run_dir", "run", "--to", "a.en", "--format", "run"),
        (export.main, "--run_dir", "run", "--to", "other", "--format", "ctranslate2"),
    ],
    ids=lambda command: " ".join(command[1:]),
)  # fmt: skip
def test_no_command_writes_over_a_file_that_it_did_not_make(small, monkeypatch, command):
    before = snapshot(small)
    monkeypatch.chdir(small)
    fails(*command)
    assert snapshot(small) == before


def test_an_output_may_be_empty_and_is_replaced_on_request(small, tmp_path, monkeypatch):
    """Through a link, the file is replaced and the link stays."""
    shutil.copytree(small, tmp_path / "here", symlinks=True)
    monkeypatch.chdir(tmp_path / "here")
    pathlib.Path("empty").touch()
    command_line.run(TRANSLATE[0], [*TRANSLATE[1:], "--output", "empty"])
    expected = pathlib.Path("empty").read_bytes()
    assert expected.count(b"\n") == 2
    words = [*TRANSLATE[1:], "--output", "linked", "--overwrite"]
    command_line.run(TRANSLATE[0], words)
    assert pathlib.Path("other").read_bytes() == expected
    assert pathlib.Path("linked").is_symlink()
    command_line.run(EVALUATE[0], [*EVALUATE[1:], "--output", "other", "--overwrite"])
    assert pathlib.Path("other").read_bytes() == expected
    command_line.run(EVALUATE[0], [*EVALUATE[1:], "--output", os.devnull])
    assert not pathlib.Path(os.devnull).is_file()
    command_line.run(plot.main, ["run", "--output", "picture.png", "--overwrite"])
    assert pathlib.Path("picture.png").read_bytes().startswith(b"\x89PNG")
    assert not [path for path in pathlib.Path().glob("*.partial*") if path.read_text() != "mine\n"]


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="needs /dev/shm")
def test_a_file_in_shared_memory_is_no_device():
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(b"mine\n")
        file.flush()
        with pytest.raises(InputError, match="exists already"):
            require_free([file.name])
    require_free(["/dev/null", "/dev/stdout", "/dev/fd/1"])
