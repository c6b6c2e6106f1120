"""One model for several directions beside a model for each, with equal updates for a direction.

    python -m research.directions --runs runs/directions \
        --output research/results/directions.json

The models are trained on Multi30k (`research/configs/directions.yaml`). A model of n directions has
a tag before each source and n times as many updates, so each direction gets as many pairs as in a
model of its own. All have the same size and the same search. The same command again continues runs
that were interrupted, and measures those that are complete.
"""

import json
import pathlib
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from research import equal_budgets
from tf_transformer.commands import command_line
from tf_transformer.data import corpora
from tf_transformer.run.folder import RunFolder

CONFIG = "research/configs/directions.yaml"
MODELS = {
    **{x: (x,) for x in ("en-de", "en-fr", "en-cs", "de-en")},
    "en-de, en-fr, en-cs": ("en-de", "en-fr", "en-cs"),
    "en-de, de-en": ("en-de", "de-en"),
}


def main(runs: str, updates: int = 1200, output: str = "") -> None:
    """Prints BLEU and chrF of each model and direction on test_2016_flickr.

    Args:
        runs: folder for the runs, one for each model.
        updates: updates of a model for each of its directions.
        output: result file to write, for example research/results/directions.json.
    """
    rows = []
    for name, directions in MODELS.items():
        run = pathlib.Path(runs) / name.replace(", ", "+")
        steps = updates * len(directions)
        if not any(row["step"] == steps for row in RunFolder(run).load_metrics(steps)):
            equal_budgets.train(run, model_of(name, directions, updates), {})
        rows += [measured(run, name, direction) for direction in directions]
    rows.sort(key=lambda row: row["direction"])
    print(of_rows(rows, left=2))
    summary = {"updates_per_direction": updates}
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"), summary=summary)


def model_of(name: str, directions: tuple[str, ...], updates: int) -> equal_budgets.Model:
    """The model of some directions, such as en-de."""
    lists = {
        f"data.{option}": json.dumps([corpus_of(text, x, len(directions) > 1) for x in directions])
        for option, text in (("corpora", "train"), ("valid_corpora", "val"))
    }
    return equal_budgets.Model(name, CONFIG, {**lists, "train.steps": updates * len(directions)})


def corpus_of(text: str, direction: str, has_tag: bool) -> dict[str, str]:
    """A text of Multi30k in a direction, as an option."""
    source, target = direction.split("-")
    files = {"source": f"multi30k/{text}.{source}", "target": f"multi30k/{text}.{target}"}
    return files | ({"tag": corpora.OWN_LANGUAGE} if has_tag else {})


def measured(run: pathlib.Path, name: str, direction: str) -> dict[str, Any]:
    """The scores of a model in one of its directions."""
    import sacrebleu

    from tf_transformer.inference.translator import Translator

    translator = Translator.from_run(run)
    files = corpus_of("test_2016_flickr", direction, has_tag=False).values()
    texts, references = (first_lines(corpora.located(file, ""), 10**9) for file in files)
    tag = f">>{direction.split('-')[1]}<< " * bool(translator.codec["source"].tags)
    outputs = [output.text for output in translator([f"{tag}{text}" for text in texts])]
    scores = [
        metric.corpus_score(outputs, [references])
        for metric in (sacrebleu.BLEU(), sacrebleu.CHRF())
    ]
    bleu, chrf = (round(score.score, 2) for score in scores)
    return {"direction": direction, "model": name, "bleu": bleu, "chrf": chrf}


if __name__ == "__main__":
    command_line.run(main)
