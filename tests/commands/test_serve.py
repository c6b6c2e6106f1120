"""The command `tf-transformer serve`: errors, and the process from start to Ctrl-C."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.request

import pytest
from rest_server import RestServer

from tf_transformer.commands import serve
from tf_transformer.config import Config
from tf_transformer.config.task import ParsingOptions
from tf_transformer.errors import InputError
from tf_transformer.run.directions import Direction
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run

ROOT = pathlib.Path(__file__).parents[2]
SERVER = {"server": "localhost:1", "source_language": "en", "target_language": "de"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give --run_dir, --saved_model or --server"),
        ({"run_dir": "x", "saved_model": "y"}, "only one of --run_dir, --saved_model and --server"),
        ({**SERVER, "beam_size": 2}, "an export has its own search. Leave out --beam_size."),
        ({**SERVER, "max_texts": 0}, "--max_texts must be at least 1, got 0."),
        ({**SERVER, "api_keys": "missing"}, "missing is not a file"),
        ({**SERVER, "target_language": ""}, "Give --source_language and --target_language"),
        ({**SERVER, "port": 0}, "no answer from http://localhost:1/v1/models/translator"),
    ],
)
def test_wrong_options_are_errors(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        serve.main(**options)


def test_a_file_without_keys_is_an_error(tmp_path):
    (tmp_path / "keys").write_text("\n  \n")
    with pytest.raises(InputError, match=r"keys has no key\. Write one per line"):
        serve.main(**SERVER, api_keys=str(tmp_path / "keys"))


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    expected = "starlette, uvicorn, prometheus_client and babel: pip install 'tf_transformer[serve]"
    with pytest.raises(InputError, match=re.escape(expected)):
        serve.main(run_dir="x")


def test_the_run_of_another_task_is_an_error():
    run = Run(RunFolder("x"), Config(task=ParsingOptions()))
    with pytest.raises(InputError, match="expected the run of a translator, got one for parsing"):
        serve.directions_in([run])


def test_given_languages_choose_among_the_directions_of_a_model():
    known = [Direction("en", "de", ">>de<<"), Direction("en", "fr", ">>fr<<")]
    assert serve.chosen(("", ""), known) == known
    assert serve.chosen(("", "fr"), known) == known[1:]
    assert serve.chosen(("", "fr"), known[:1]) == [Direction("en", "fr", ">>de<<")]
    listed = serve.chosen(("en", "de,fr"), ())
    assert listed == known
    with pytest.raises(InputError, match="from any language to it; it translates en to de, en to"):
        serve.chosen(("", "it"), known)


@pytest.fixture
def started():
    """A process of the command with options, and the address that it prints."""
    processes = []

    def start(*words):
        process = subprocess.Popen(
            [sys.executable, "-m", "tf_transformer.commands.main", "serve", "--port", "0", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        processes.append(process)
        line = process.stdout.readline().decode()
        return process, line, re.search(r"http://127\.0\.0\.1:\d+", line)[0]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def translate(url, **given):
    request = urllib.request.Request(
        f"{url}/translate", json.dumps(given).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())["translatedText"]


def test_a_process_serves_a_model_of_another_server_until_ctrl_c(started, tmp_path):
    (tmp_path / "keys").write_text("a secret\n")
    with RestServer() as server:
        process, line, url = started(
            *("--server", server.address, "--source_language", "en", "--target_language", "de"),
            *("--api_keys", str(tmp_path / "keys")),
        )
        assert line.startswith(f"translator on {server.address}, en to de: ")
        answer = translate(url, q="one\ntwo", source="en", target="de", api_key="a secret")
        assert answer == "ONE\nTWO"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"Traceback" not in errors


def test_a_run_that_keeps_spans_translates_html(started, run):
    _, _, url = started("--run_dir", str(run), "--keep", "common")
    page = '<p class="x">one <b>two</b>\n three <img src="x"></p>'
    answer = translate(url, q=page, format="html", source="en", target="de")
    for tag in ('<p class="x">', "<b>", "</b>", '<img src="x">', "</p>"):
        assert answer.count(tag) == 1


@pytest.mark.slow
def test_a_run_and_its_export_translate_as_the_commands_do(started, run, readers_folder):
    from tf_transformer.inference.translator import Translator

    texts = ["twenty-one", "two hundred and two"]
    expected = [row.text for row in Translator.from_run(run)(texts)]
    for option in (
        ["--run_dir", str(run)],
        [
            *("--saved_model", str(readers_folder / "served" / "mine" / "1")),
            *("--source_language", "en", "--target_language", "de"),
        ],
    ):
        _, line, url = started(*option)
        assert ", en to de: " in line
        assert translate(url, q=texts, source="en", target="de") == expected
