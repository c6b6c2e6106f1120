"""Whether pre-training helps a classifier with few labels.

    python -m benchmarks.pretraining --texts "[news=a.en, captions=b.en]" \
        --output results/pretraining.json

The task: of which text are these eight consecutive words? Each text is a file with a sentence per
line. Excerpts are lower-cased and without punctuation. Labels are right by construction, and no
excerpt for training or testing is from a line, or the same as a line, of pre-training.
"""

import pathlib
import random
import re
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace

from tqdm import tqdm

from benchmarks.harness import results
from benchmarks.harness.results import Row
from benchmarks.harness.tables import of_rows
from tf_transformer import tasks
from tf_transformer.commands import command_line
from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.data.examples import ExampleStream
from tf_transformer.errors import InputError
from tf_transformer.files import decode, read_lines
from tf_transformer.run_folder import RunFolder
from tf_transformer.tasks import TestSet
from tf_transformer.tasks.classification import Classification
from tf_transformer.tokenizer import Tokenizer
from tf_transformer.training import trainer

WORDS = 8  # of an excerpt
VALID = 100  # excerpts of validation, whose loss is logged; it chooses nothing
TASK = "classification_with_the_same_tokenizer"


def main(
    texts: Sequence[str],
    lines: int = 15_000,
    pretraining_updates: int = 4500,
    labels: tuple[int, ...] = (50, 200, 1000),
    seeds: int = 5,
    test: int = 2000,
    d_model: int = 64,
    num_layers: int = 2,
    run_dir: str = "",
    output: str = "",
) -> None:
    """Pre-trains once, and fine-tunes with and without for each number of labels and each seed.

    Args:
        texts: name=file of each text, at least two; a name may have several files.
        lines: most lines of each text.
        pretraining_updates: of the masked language model.
        labels: numbers of labelled excerpts.
        seeds: of the choice of excerpts, the weights and the order of batches.
        test: number of excerpts to test with.
        d_model: size of the model.
        num_layers: of the encoder.
        run_dir: folder for the prepared files and the runs; a temporary one when empty.
        output: result file to write, for example results/pretraining.json.
    """
    model = ModelConfig(num_layers=num_layers, d_model=d_model, d_ff=4 * d_model, num_heads=4)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(run_dir or temporary)
        rows = prepare(folder, texts, lines, test + VALID + max(labels))
        _write(folder / "valid.tsv", rows[test : test + VALID])
        pretrained = _pretrain(folder, model, pretraining_updates)
        tasks.register(TASK, SameTokenizer(folder / "mlm"))
        found: list[Row] = []
        settings = [(count, start) for count in labels for start in ("", str(folder / "mlm"))]
        for count, start in tqdm(settings, unit="setting"):
            scores = [
                _fine_tune(folder, model, rows[:test], rows[test + VALID :], count, seed, start)
                for seed in range(1, seeds + 1)
            ]
            found.append(_summary(count, "yes" if start else "no", scores))
    print(of_rows(found))
    results.save(output, found, ("tensorflow", "keras"), summary=pretrained)


class SameTokenizer(Classification):
    """Classification with the tokenizer of another run, also when its weights are not taken."""

    def __init__(self, run: pathlib.Path):
        self.run = run

    def train_tokenizer(self, stream: ExampleStream, config: Config) -> Tokenizer:
        return RunFolder(self.run).load_tokenizer()


def prepare(
    folder: pathlib.Path, texts: Sequence[str], lines: int, count: int
) -> list[tuple[str, str]]:
    """Writes the text of pre-training; returns `count` excerpts with labels, in random order.

    Raises:
        InputError: for fewer than two texts, or a text with too few lines.
    """
    files: dict[str, list[str]] = {}
    for text in texts:
        name, _, path = text.partition("=")
        files.setdefault(name, []).append(path)
    if len(files) < 2:
        raise InputError('give at least two texts, like --texts "[news=a.en, captions=b.en]".')
    order = random.Random(1)
    rest: list[str] = []
    rows: list[tuple[str, str]] = []
    for number, (name, paths) in enumerate(files.items()):
        all_lines = sorted(
            {_plain(line) for path in paths for line in decode(read_lines(path), path)}
        )
        order.shuffle(all_lines)
        of_text = all_lines[:lines]
        share = count // len(files) + (number < count % len(files))
        long = [line for line in of_text if len(line.split()) >= WORDS]
        if len(long) < 2 * share:
            raise InputError(
                f"{name} has {len(long)} different lines of {WORDS} words; expected at least "
                f"{2 * share}. Give fewer labels, or more text."
            )
        rows += [(_excerpt(line, order), name) for line in long[:share]]
        rest += set(of_text) - set(long[:share])
    rest.sort()
    order.shuffle(rest)
    order.shuffle(rows)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text").write_text("".join(line + "\n" for line in rest if line), "utf-8")
    return rows


def _plain(line: str) -> str:
    """Lower-cased words with one blank between them."""
    return " ".join(re.findall(r"\w+", line.lower()))


def _excerpt(line: str, order: random.Random) -> str:
    words = line.split()
    start = order.randrange(len(words) - WORDS + 1)
    return " ".join(words[start : start + WORDS])


def _pretrain(folder: pathlib.Path, model: ModelConfig, updates: int) -> dict[str, float]:
    """Pre-trains the run `mlm`, unless it is there; returns its last metrics."""
    config = Config(
        replace(model, dropout_rate=0.1),
        DataConfig(train_file=str(folder / "text"), vocabulary_size=4000, max_length=100),
        TrainConfig(
            **{"steps": updates, "validate_every": max(1, updates // 4), "warmup_steps": 500},
            **{"label_smoothing": 0.0, "valid_score_examples": 0, "learning_rate": 1.0},
        ),
        DecodeConfig(average=1),
        task="masked_language_model",
    )
    result = trainer.train(config, folder / "mlm")
    row = RunFolder(folder / "mlm").load_metrics(result.updates)[-1]
    return {
        "masked_perplexity": round(row["val_perplexity"], 2),
        "masked_accuracy": round(row["val_accuracy"], 3),
        "pretraining_updates": updates,
    }


def _fine_tune(
    folder: pathlib.Path,
    model: ModelConfig,
    test: Sequence[tuple[str, str]],
    pool: Sequence[tuple[str, str]],
    count: int,
    seed: int,
    init_from: str,
) -> dict[str, float]:
    """Scores on the test set of a classifier that learned from `count` excerpts of the pool."""
    chosen = random.Random(seed).sample(list(pool), count)
    table, run = folder / "rows.tsv", folder / f"run_{count}_{seed}_{bool(init_from):d}"
    _write(table, chosen)
    updates = 100 + count // 4
    config = Config(
        model,
        DataConfig(
            **{"train_file": str(table), "valid_file": str(folder / "valid.tsv")},
            **{"vocabulary_size": 4000, "batch_tokens": 512, "max_length": 100},
        ),
        TrainConfig(
            **{"steps": updates, "validate_every": updates, "warmup_steps": 50, "seed": seed},
            **{"label_smoothing": 0.0, "valid_score_examples": 0, "learning_rate": 0.1},
            threads=1,  # a graph of one micro-batch is made in half the time
            init_from=init_from,
        ),
        DecodeConfig(average=1),
        task=TASK,
    )
    trainer.train(config, run)
    inputs, references = map(list, zip(*test, strict=True))
    task = tasks.get(config.task)
    scores = task.evaluate(tasks.load_predictor(run), TestSet(inputs, references)).scores
    return {name: float(scores[name]) for name in ("accuracy", "f1_macro")}


def _write(table: pathlib.Path, rows: Sequence[tuple[str, str]]) -> None:
    lines = ("text", "label"), *rows
    table.write_text("".join("\t".join(row) + "\n" for row in lines), "utf-8")


def _summary(count: int, pretrained: str, scores: Sequence[dict[str, float]]) -> Row:
    """Mean and standard deviation over the seeds."""
    row: Row = {"labels": count, "pretrained": pretrained, "seeds": len(scores)}
    for name in scores[0]:
        values = [score[name] for score in scores]
        row[name] = round(statistics.mean(values), 3)
        row[f"{name}_deviation"] = round(statistics.stdev(values), 3) if len(values) > 1 else 0.0
        row[f"{name}_of_seeds"] = [round(value, 3) for value in values]
    return row


if __name__ == "__main__":
    command_line.run(main)
