"""Options come from signatures and from `DecodeConfig`; errors set the exit status."""

import dataclasses
import importlib
import typing

import pytest

from tf_transformer.commands import command_line, evaluate, translate
from tf_transformer.commands.command_line import parser_of
from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError

FIELDS = [field.name for field in dataclasses.fields(DecodeConfig)]


def mains():
    export = importlib.import_module("tf_transformer.commands.export")
    return [translate.main, evaluate.main, export.main]


def required(main):
    return ["--run_dir", "x", *(["--to", "y"] if "to" in main.__annotations__ else [])]


@pytest.mark.parametrize("main", mains(), ids=lambda main: main.__module__)
def test_every_field_of_decode_config_is_an_option_with_default_none(main):
    options = vars(parser_of(main).parse_args(required(main)))
    assert {name: options[name] for name in FIELDS} == dict.fromkeys(FIELDS)
    assert options["dtype"] == "float32"


@pytest.mark.parametrize("name", FIELDS)
def test_an_option_is_typed_and_documented_as_its_field(name):
    parser = parser_of(translate.main)
    default = getattr(DecodeConfig(), name)
    value, word = {
        bool: (True, "true"),
        int: (7, "7"),
        float: (0.5, "0.5"),
        tuple: (("▁foo", "a"), '["▁foo", "a"]'),
    }[type(default)]
    assert parser.parse_args(["--run_dir", "x", f"--{name}", word])[name] == value
    documented = typing.cast(str, DecodeConfig.__doc__).split(f" {name}: ")[1].split()[:2]
    assert f" {' '.join(documented)}" in " ".join(parser.format_help().split())


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["--resume"], True), (["--resume", "true"], True), (["--resume=false"], False), ([], False)],
)
def test_a_switch_needs_no_value(words, expected):
    options = parser_of(translate.main).parse_args(["--run_dir", "x", *words, "--sampling"])
    assert options["resume"] is expected
    assert options["sampling"] is True


@pytest.mark.parametrize(
    "words", [["--beam_siz", "3"], ["--beam_size", "many"], ["--dtype", "float16"], ["x"]]
)
def test_bad_options_exit_with_two(monkeypatch, capsys, words):
    monkeypatch.setattr("sys.argv", ["translate.py", "--run_dir", "x", *words])
    with pytest.raises(SystemExit) as exit_info:
        command_line.run(translate.main)
    assert exit_info.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_main_gets_the_options_of_the_command_line_and_the_file(monkeypatch, tmp_path):
    (tmp_path / "options.yaml").write_text("length_penalty: 1.0\nexcluded_tokens: [a]\n")
    got = {}

    def main(run_dir: str, count: int = 3, **decode_options: object) -> None:
        """Takes options."""
        got.update(run_dir=run_dir, count=count, **decode_options)

    words = ["--config", str(tmp_path / "options.yaml"), "--run_dir", "x", "--beam_size", "2"]
    command_line.run(main, words)
    given = {name: value for name, value in got.items() if value is not None}
    assert given == {
        **{"run_dir": "x", "count": 3, "beam_size": 2},
        **{"length_penalty": 1.0, "excluded_tokens": ("a",)},
    }


@pytest.mark.parametrize(
    ("error", "code"), [(InputError("no"), "error: no"), (KeyboardInterrupt(), "interrupted")]
)
def test_input_errors_and_interruptions_have_no_traceback(monkeypatch, error, code):
    def main(run_dir: str = "") -> None:
        """Fails."""
        raise error

    monkeypatch.setattr("sys.argv", ["x.py"])
    with pytest.raises(SystemExit) as exit_info:
        command_line.run(main)
    assert exit_info.value.code == code
