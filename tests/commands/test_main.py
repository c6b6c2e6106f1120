"""The installed command: help, and errors for a missing or unknown command."""

import inspect

import pytest

from tf_transformer.commands import main


def run_main(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["/usr/bin/tf-transformer", *words])
    main.main()


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_lists_the_commands(monkeypatch, capsys, word):
    run_main(monkeypatch, word)
    shown = capsys.readouterr().out
    assert shown.startswith("usage: tf-transformer COMMAND [options]\n")
    assert [name for name in main.COMMANDS if f"\n  {name} " not in shown] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "error: expected a command; choose from train, evaluate, translate, export, import, "),
        (["served", "--x"], "error: unknown command 'served'; choose from train, evaluate, "),
    ],
)
def test_a_missing_or_unknown_command_is_an_error(monkeypatch, capsys, words, message):
    with pytest.raises(SystemExit) as exit_info:
        run_main(monkeypatch, *words)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", main.COMMANDS)
def test_each_command_has_its_own_help(monkeypatch, capsys, name):
    with pytest.raises(SystemExit) as exit_info:
        run_main(monkeypatch, name, "--help")
    assert exit_info.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith(f"usage: tf-transformer {name} ")
    command = main.command(name)
    assert inspect.getdoc(command).split("\n")[0] in shown
