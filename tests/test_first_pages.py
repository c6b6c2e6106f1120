"""The pages that a newcomer reads first: all their commands run, in order, in a fresh clone.

Each page has a shell of its own, in which no environment is active until the page activates one.
"""

import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys

import pytest
from test_docs import PAGES, blocks

from tf_transformer.commands import train
from tf_transformer.commands.command_line import read_options
from tf_transformer.config import Config
from tf_transformer.data.corpora import load_examples

ROOT = pathlib.Path(__file__).parents[1]
SHELF = [  # in the order in which their pages lead to each other
    *("docs/start/install.md", "docs/start/first_model.md", "docs/start/two_files.md"),
    *("docs/start/serve.md", "docs/start/fine_tune.md"),
]
BUDGET = "--train.steps 2 --train.validate_every 2 --train.valid_score_examples 2"
FEW_PAIRS = "--data.held_out 20"  # of the generated corpus, which are the test set
SENTENCES = 300  # in each file of the reader
FILES = (  # of the reader
    *("a.en", "b.de", "a.de", "a.fr", "test.en", "test.de", "valid.en", "valid.de", "general.en"),
    *("general.de", "in.txt", "lines.txt", "multi30k/train.en", "multi30k/train.de"),
    *("multi30k/val.en", "multi30k/val.de"),
)
# All that differs from the pages: (pattern of a command, replacement). The first match counts.
CHANGES = [
    (r"git clone <this repository>", r"git clone {origin}"),
    # Short training runs, and a small vocabulary for a small text.
    (r"(python train\.py .*configs/demo\.yaml.*)", rf"\1 {BUDGET} {FEW_PAIRS}"),
    (r"(python train\.py .*configs/multi30k\.yaml.*)", rf"\1 {BUDGET} --data.vocabulary_size 300"),
    (r"(python train\.py .*)", rf"\1 {BUDGET}"),
    # A stand-in for TensorFlow Serving, on a free port. It runs beside the next commands.
    (r"(tensorflow_model_server .*--rest_api_port=)8501(.*)", r"\g<1>{port}\2 &"),
    (r"curl (.*)localhost:8501(.*)", r"curl --fail --silent --retry 300 --retry-delay 1 "
     r"--retry-connrefused \1localhost:{port}\2"),
    (r"(python export/serving/health\.py .*)", r"\1 --server localhost:{port}"),
    (r"docker compose .*", r"true"),  # the image is large, and there may be no Docker
    # A second fresh environment, with the Python that certainly exists.
    (r"python3\.11 (.*)", r"rm -rf .venv; {python} \1"),
    (r"pip install 'tensorflow\[and-cuda\]'", r"true"),  # several GB
    # The page in the browser, until the time is over. 124: it did not end before.
    (r"(tf-transformer demo .*)", r"timeout 90 \1 --port 0 || test $? = 124"),
]  # fmt: skip


def commands(page):
    """The lines of the shell in the blocks of a page, without recorded outputs."""
    recorded = "".join(re.findall(r"<!-- figures:.*?<!-- /figures -->", PAGES[page], re.DOTALL))
    texts = [text for language, text in blocks(page) if not language and text not in recorded]
    return "".join(texts).replace("\\\n", " ").splitlines()


def changed(command, values):
    """A command with the first change that matches, and with values in the change."""
    for pattern, new in CHANGES:
        if re.fullmatch(pattern, command):
            command = re.sub(pattern, new, command)
            return re.sub(r"\{(origin|port|python)\}", lambda name: str(values[name[1]]), command)
    return command


def run_page(page, folder, machine, values):
    """What the commands of a page print, in a new shell; the first that fails ends them."""
    script = ["set -e -o pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for line in (changed(command, values) for command in commands(page)):
        script += [f"echo {shlex.quote('+ ' + line)} >&2", line]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=machine,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, f"{page}\n{done.stderr.decode()[-5000:]}"
    return done.stdout.decode()


@pytest.fixture
def machine(tmp_path):
    """The environment of a shell on a machine without `python`, without an active environment."""
    programs = tmp_path / "programs"
    programs.mkdir()
    server = ROOT / "tests" / "stand_in_server.py"
    scripts = dict.fromkeys(("python", "pip", "tf-transformer"), "echo no $0 here >&2; exit 127")
    scripts["tensorflow_model_server"] = f'exec {sys.executable} {server} "$@"'
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    theirs = ("VIRTUAL_ENV", "PYTHON", "PYTEST", "TF_", "KERAS_", "XLA_", "JAX_", "MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    return kept | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "TRAIN_OPTIONS": f"{BUDGET} {FEW_PAIRS}",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


@pytest.fixture
def origin(tmp_path):
    """A repository to clone, with the files of this working tree."""
    folder = tmp_path / "origin" / "tf_transformer"
    ignored = (ROOT / ".gitignore").read_text().replace("/", "").split()
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", *ignored))
    git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "a"]):
        subprocess.run([*git, *words], check=True)
    return folder


def write_files(folder):
    """The files of the reader: numbered lines, and the lines of `in.txt` and `lines.txt`."""
    for name in FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        count = SENTENCES if name.startswith(("a.", "b.", "general", "multi30k/train")) else 5
        (folder / name).write_text("".join(f"{name} has line {i}\n" for i in range(count)))
    shutil.copytree(ROOT / "tests" / "fixtures" / "marian" / "shared", folder / "opus-mt-en-de")
    for model in (ROOT / "tests" / "fixtures" / "marian").glob("*.spm"):
        shutil.copy(model, folder / "opus-mt-en-de")


@pytest.mark.slow
@pytest.mark.parametrize("pages", [["README.md"], SHELF], ids=["readme", "shelf"])
def test_commands_run_in_order_in_a_fresh_clone(pages, origin, machine, tmp_path):
    clone = tmp_path / "tf_transformer"
    if not any("git clone" in line for line in commands(pages[0])):
        subprocess.run(["git", "clone", "--quiet", origin, clone], check=True)
    try:
        for page in pages:
            if clone.exists() and not (clone / "a.en").exists():
                write_files(clone)
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            folder = clone if clone.exists() else tmp_path
            values = {"origin": origin, "port": port, "python": sys.executable}
            printed = run_page(page, folder, machine, values)
            if "train station" in PAGES[page]:
                assert "\nWo ist der Bahnhof?" in printed, page
    finally:
        shutil.rmtree(clone / ".venv", ignore_errors=True)


def test_all_pages_of_the_shelf_run():
    assert {page for page in PAGES if page.startswith("docs/start/")} <= set(SHELF)


def test_each_change_of_a_command_is_needed():
    lines = [line for page in ("README.md", *SHELF) for line in commands(page)]
    for pattern, _ in CHANGES:
        assert any(re.fullmatch(pattern, line) for line in lines), pattern


def test_training_reads_the_corpora_of_the_readme(tmp_path, monkeypatch):
    """Oracle: the pairs of the files, the first ones twice as often."""
    (words,) = re.findall(r"`(--data\.corpora .*?)`", PAGES["README.md"])
    monkeypatch.chdir(tmp_path)
    for name in ("a.en", "b.de"):
        (tmp_path / name).write_text("".join(f"{name} has line {i}\n" for i in range(30)))
    sides = "".join(f'<tuv xml:lang="{x}"><seg>word in {x}</seg></tuv>' for x in ("en", "de"))
    (tmp_path / "c.tmx").write_text(f'<tmx version="1.4"><body><tu>{sides}</tu></body></tmx>')
    options = read_options(train.main, ["--run_dir", "r", *shlex.split(words)])
    data = options["data"]
    stream, _ = load_examples(Config(data=data), ("source", "target"))
    assert ("word in en", "word in de") in list(stream)
    assert [part.weight for part in stream.parts] == [2, 1]
