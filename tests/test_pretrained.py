"""The model in the repository."""

import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parents[1] / "pretrained" / "tatoeba-en-de"


def test_it_translates_everyday_sentences():
    """By the command of the README."""
    sources = "I am tired.\nWhere is the train station?\nMy brother lives in Germany.\n"
    command = [sys.executable, "translate.py", "--run_dir", str(FOLDER)]
    done = subprocess.run(
        command, cwd=FOLDER.parents[1], input=sources, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "Ich bin müde.",
        "Wo ist der Bahnhof?",
        "Mein Bruder lebt in Deutschland.",
    ]


def test_it_is_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 5e6
