"""The installed command: tf-transformer train | evaluate | translate | export [--options]."""

import importlib
import sys

from tf_transformer.commands import command_line

COMMANDS = ("train", "evaluate", "translate", "export")


def main() -> None:
    """Runs the command that the first argument names, with the arguments after it."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in COMMANDS:
        usage = f"usage: tf-transformer {{{','.join(COMMANDS)}}} [--help] [options]"
        sys.exit(usage if name in ("-h", "--help") else f"{usage}\nerror: unknown command {name!r}")
    del sys.argv[1]
    sys.argv[0] = f"tf-transformer {name}"
    command_line.run(importlib.import_module(f"tf_transformer.commands.{name}").main)


if __name__ == "__main__":
    main()
