"""What docs/ says can be done: files it names exist, its commands and requests are taken."""

import importlib
import json
import pathlib
import re
import shlex

import pytest

from export.serving import client_grpc, client_rest, health
from tf_transformer.commands import command_line

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "serving.md").read_text("utf-8")
PARSERS = {
    "export/serving/client_rest.py": client_rest.parser,
    "export/serving/client_grpc.py": client_grpc.parser,
    "export/serving/health.py": health.parser,
}


def commands(program: str) -> list[list[str]]:
    """The words of each command of the page that begins with `program`."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    lines = (
        "".join(block for language, block in blocks if not language)
        .replace("\\\n", " ")
        .split("\n")
    )
    inline = re.findall(r"`([^`\n]+)`", PAGE)
    return [shlex.split(line) for line in lines + inline if line.startswith(f"{program} ")]


def test_files_that_are_named_exist():
    named = set(re.findall(r"(?:export|tests|docs)/[\w/]+\.\w+", PAGE))
    named |= {f"export/serving/{name}" for name in re.findall(r"^\| `(\w+\.\w+)`", PAGE, re.M)}
    assert len(named) > 6
    assert not [name for name in named if not (ROOT / name).is_file()]


def test_python_commands_are_taken():
    found = commands("python")
    assert len(found) > 6
    for _python, program, *words in found:
        words = words[: words.index("<")] if "<" in words else words
        if program in PARSERS:
            PARSERS[program]().parse_args(words)
        elif program == "-m":
            assert words[0] == "export"
            main = importlib.import_module("tf_transformer.commands.export").main
            command_line.parser_of(main).parse_args(words[1:])
        else:
            assert (ROOT / program).is_file()


def test_the_server_is_started_with_files_that_exist():
    (words,) = commands("tensorflow_model_server")
    options = dict(word.removeprefix("--").split("=") for word in words[1:])
    assert (ROOT / options["batching_parameters_file"].removeprefix("$PWD/")).is_file()
    assert options["model_base_path"] == "$PWD/served/" + options["model_name"]


@pytest.mark.parametrize("body", [w[w.index("-d") + 1] for w in commands("curl") if "-d" in w])
def test_requests_of_curl_are_json_with_instances(body):
    request = json.loads(body)
    assert request.keys() <= {"signature_name", "instances"}
    assert request["instances"]
