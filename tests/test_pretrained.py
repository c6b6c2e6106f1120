"""The models in the repository."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "pretrained"
TRANSLATIONS = {
    "tatoeba-en-de": {
        "I am tired.": "Ich bin müde.",
        "Where is the train station?": "Wo ist der Bahnhof?",
        "My brother lives in Germany.": "Mein Bruder lebt in Deutschland.",
        "house": "Haus",
        "You can see it here: https://example.org/map?id=7. It is 5 km from here.": (
            "Du kannst es hier sehen: https://example.org/map?id=7. Es ist 5 km von hier."
        ),
    },
    "tatoeba-de-en": {
        "Ich bin müde.": "I'm tired.",
        "WO IST DER BAHNHOF?": "WHERE IS THE STATION?",
        "Wie spät ist es?": "What time is it?",
        "guten morgen": "good morning",
        "Mein Name ist Frank.": "My name is Frank.",
    },
    "multi30k-en-fr": {
        "Two dogs run on the beach.": "Deux chiens courent sur la plage.",
    },
    "multi30k-en-de-lc": {
        "two dogs run on the beach .": "zwei hunde rennen am strand .",
    },
    "multi30k-en-de": {
        "Two dogs run on the beach.": "Zwei Hunde rennen am Strand.",
    },
}


@pytest.mark.parametrize("name", TRANSLATIONS)
def test_it_translates_sentences_of_its_kind(name):
    """By the command of its card."""
    command = [sys.executable, "translate.py", "--run_dir", f"pretrained/{name}"]
    sources = "".join(f"{source}\n" for source in TRANSLATIONS[name])
    done = subprocess.run(
        command, cwd=FOLDER.parent, input=sources, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == list(TRANSLATIONS[name].values())


@pytest.mark.parametrize("folder", sorted(FOLDER.iterdir()), ids=lambda folder: folder.name)
def test_each_is_small_and_has_a_card(folder):
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 5e6
    card = (folder / "README.md").read_text("utf-8")
    assert {"## Scores", "## Model", "## Data", "## Limits"} <= set(card.splitlines())
