"""The wheel, installed into a fresh environment: all four commands run there in an empty folder."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv

import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
MODEL = ("--model.num_layers", "1", "--model.d_model", "16", "--model.d_ff", "32")
DATA = ("--data.generated_pairs", "60", "--data.held_out", "20", "--data.vocabulary_size", "320")
TRAIN = ("--train.steps", "2", "--train.validate_every", "2", "--train.threads", "1")
DECODE = ("--decode.beam_size", "1", "--decode.max_extra_length", "5")
SMALL = (*MODEL, *DATA, *TRAIN, *DECODE, "--data.max_length", "100")
SENTENCES = "one\n\ntwenty-one\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A fresh environment with the wheel, and with the dependencies of the running environment."""
    folder = tmp_path_factory.mktemp("wheel")
    # From a copy: a build writes into its source folder and includes files of earlier builds.
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        (folder / "source").mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / "source")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tf_transformer", folder / "source" / "tf_transformer", ignore=ignored)
    build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, folder / "source")
    pip(*build)
    (wheel,) = folder.glob("*.whl")
    python = folder / "env" / "bin" / "python"
    venv.create(folder / "env")
    pip("--python", python, "install", "--no-deps", "--no-index", wheel)
    # Only the packages: .pth files in that folder, such as an editable install's, are not read.
    (site_packages,) = (folder / "env").glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "env"


def pip(*words):
    process = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)],
        capture_output=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr.decode()


@pytest.fixture(scope="module")
def command(environment, tmp_path_factory):
    """Runs a program of the environment in a folder that was empty at first."""
    folder = tmp_path_factory.mktemp("empty")
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(program, *words, stdin=""):
        process = subprocess.run(
            [environment / "bin" / program, *words],
            input=stdin.encode(),
            capture_output=True,
            cwd=folder,
            env=variables,
            check=False,
        )
        assert process.returncode == 0, process.stderr.decode()
        return process.stdout.decode("utf-8")

    run.folder = folder
    return run


def test_the_wheel_has_the_pages(environment):
    (package,) = environment.glob("lib/python*/site-packages/tf_transformer")
    pages = {page.name for page in package.glob("*/*.html")}
    assert pages == {page.name for page in (ROOT / "tf_transformer").glob("*/*.html")}
    assert {"page.html", "attention_page.html"} <= pages


def test_all_commands_of_the_wheel_run_in_an_empty_folder(environment, command):
    find = "import importlib.util as u; print(u.find_spec('tf_transformer').origin)"
    assert command("python", "-c", find).startswith(str(environment))

    trained = command("tf-transformer", "train", "--run_dir", "runs/small", *SMALL)
    assert "trained 2 updates" in trained
    assert "run: runs/small" in trained

    (command.folder / "test.en").write_text(SENTENCES)
    (command.folder / "test.de").write_text("eins\n\neinundzwanzig\n")
    files = ("--source", "test.en", "--reference", "test.de")
    evaluated = command("tf-transformer", "evaluate", "--run_dir", "runs/small", *files)
    scores = json.loads(evaluated.split("\n")[-2])
    assert scores.keys() >= {"bleu", "signature", "chrf"}
    assert scores["sentences"] == 3

    translated = command("tf-transformer", "translate", "--run_dir", "runs/small", stdin=SENTENCES)
    assert translated.count("\n") == 3
    assert translated.split("\n")[1] == ""

    to = ("--to", "served/small/1")
    exported = command("tf-transformer", "export", "--run_dir", "runs/small", *to)
    assert exported.startswith("exported served/small/1: ")
    assert "runs in TF Serving" in exported
    saved_model = command.folder / "served" / "small" / "1"
    assert (saved_model / "saved_model.pb").is_file()
    assert (saved_model / "assets.extra" / "metadata.json").is_file()
    assert [path.name for path in saved_model.parent.iterdir()] == ["1"]
    assert {path.name for path in command.folder.iterdir()} == {
        *("runs", "served", "test.en", "test.de")
    }
