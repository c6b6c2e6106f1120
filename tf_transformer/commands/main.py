"""The installed command, `tf-transformer`: one program for all commands."""

import os
import sys
from collections.abc import Callable

from tf_transformer.commands import command_line
from tf_transformer.commands.standard_streams import standard_streams
from tf_transformer.registry import Registry

COMMANDS = {
    "train": "train a model, or resume an interrupted training run",
    "evaluate": "score a model on a test set",
    "translate": "translate lines of text, or a document",
    "export": "export a model for TensorFlow Serving or CTranslate2",
    "import": "make a run from the model of another program",
    "plot": "draw the curves of training runs",
    "synthesize": "translate a text into a corpus of training pairs",
    "distill": "train a small, fast model on the translations of a large one",
    "pipeline": "run a chain of commands from a file, and continue where it stopped",
    "inspect": "show what corpora hold, their faults, and the overlap of training and test",
    "align": "link the words of parallel text",
    "prepare": "prepare a training text that is larger than a machine, on Apache Beam",
    "words": "write the words of parallel text with their translations",
    "demo": "open a page that translates while you type",
    "serve": "translate for programs that speak LibreTranslate's, DeepL's or OpenAI's API",
}
# `import` is a word of Python, and `inspect` a module of its library.
MODULES = {"import": "import_model", "inspect": "inspect_corpora"}
USAGE = """\
usage: tf-transformer COMMAND [options]

commands:
{commands}

`tf-transformer COMMAND --help` lists the options of a command."""


def main() -> None:
    """Runs the command in the first argument, with the remaining arguments."""
    lines = [f"  {name:<10} {summary}" for name, summary in COMMANDS.items()]
    usage = USAGE.format(commands="\n".join(lines))
    name, *arguments = sys.argv[1:] or [""]
    with standard_streams():
        if name in ("-h", "--help"):
            print(usage)
        elif name in COMMANDS or ":" in name:
            command_line.run(command(name), arguments, program=f"tf-transformer {name}")
        else:
            error = f"unknown command {name!r}" if name else "expected a command"
            choices = ", ".join(COMMANDS)
            print(f"{usage}\n\nerror: {error}; choose from {choices}.", file=sys.stderr)
            sys.exit(2)


def command(name: str) -> Callable[..., None]:
    """The function of a command in `COMMANDS`, or of module:attribute in the working folder."""
    if ":" in name and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    modules = {known: f"tf_transformer.commands.{MODULES.get(known, known)}" for known in COMMANDS}
    return Registry("command", {known: f"{modules[known]}:main" for known in modules}).get(name)


if __name__ == "__main__":
    main()
