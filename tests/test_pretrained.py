"""The models in the repository."""

import pathlib
import subprocess
import sys

import pytest

from tf_transformer.commands import command_line, train
from tf_transformer.commands.pipeline_file import read_steps
from tf_transformer.config import Config
from tf_transformer.run.folder import RunFolder

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


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "tatoeba-en-de" else pytest.mark.slow)
        for name in TRANSLATIONS
    ],
)
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


# The files that the first steps read, and those of the other direction.
TEXTS = [
    *(f"multi30k/{name}.{end}" for name in ("train", "val") for end in ("en", "de", "fr")),
    *(f"multi30k/test_2016_flickr.{end}" for end in ("en", "de", "fr")),
    *(f"tatoeba_en_de/all.{end}" for end in ("en", "de")),
    *(f"europarl_v7_de_en_20k/train.{end}" for end in ("en", "de")),
    *(f"runs/tatoeba/text/{name}" for name in ("train.en", "train.de", "valid.en", "valid.de")),
    *(f"runs/tatoeba/{name}" for name in ("text/test.en", "text/test.de")),
    *(f"runs/tatoeba/{name}" for name in ("words.tsv", "short.tsv", "unusual_3/weights")),
]
# Paths; what training and the export of averaged weights write; an option of later versions.
OTHER = {"data.corpora", "data.valid_corpora", "train.init_from"}
OTHER |= {"decode.average", "decode.trained_source_length", "data.held_out_by"}


@pytest.mark.parametrize("name", TRANSLATIONS)
def test_the_last_training_of_its_pipeline_has_its_options(name, tmp_path, monkeypatch):
    for folder in ("configs", "benchmarks", "pretrained"):
        (tmp_path / folder).symlink_to(FOLDER.parent / folder)
    for text in TEXTS:
        (tmp_path / text).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / text).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TF_TRANSFORMER_DATA", str(tmp_path))
    own = FOLDER / name / "pipeline.yaml"
    steps = read_steps(str(own) if own.exists() else "configs/multi30k_best.yaml")
    assert [step.command for step in steps[-2:]] == ["export", "evaluate"]
    last = [step for step in steps if step.command == "train"][-1]
    groups = command_line.read_options(train.main, last.words)
    config = Config(*(groups[name] for name in ("model", "data", "train", "decode", "task")))
    assert RunFolder(FOLDER / name).load_config().differences(config).keys() <= OTHER
