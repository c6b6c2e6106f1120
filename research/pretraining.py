"""Whether pre-training helps a classifier with few labels.

    python -m research.pretraining --texts "[news=a.en, captions=b.en]" \
        --output research/results/pretraining.json

The task: of which text are these eight consecutive words? Each text is a file with a sentence per
line. Excerpts are lower-cased and without punctuation. Labels are right by construction, and no
excerpt for training or testing is from a line, or the same as a line, of pre-training.
"""

import itertools
import pathlib
import random
import re
import statistics
import tempfile
from collections.abc import Iterator, Sequence

import keras
from tqdm import tqdm

from benchmarks.harness import results
from benchmarks.harness.results import Row
from benchmarks.harness.tables import of_rows
from tf_transformer.commands import command_line
from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.data.shard_sampler import ShardSampler
from tf_transformer.data.tokens import Batch, IdRows, TokenExamples
from tf_transformer.errors import InputError
from tf_transformer.files.reading import decode, read_lines
from tf_transformer.run.run import Run
from tf_transformer.tasks.classification import CLASSIFICATION
from tf_transformer.training import trainer
from tf_transformer.training.setup import Execution, initialize, make_updater
from tf_transformer.training.strategy import make_strategy, replica_batches

WORDS = 8  # of an excerpt
VOCABULARY = 4000
BATCH_TOKENS = 512  # of fine-tuning


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
        output: result file to write, for example research/results/pretraining.json.
    """
    model = ModelConfig(num_layers=num_layers, d_model=d_model, d_ff=4 * d_model, num_heads=4)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(run_dir or temporary)
        pool = max(labels) * 11 // 10  # seeds choose different examples, also the most
        excerpts = prepare(folder, texts, lines, test + pool)
        summary = _pretrain(folder, model, pretraining_updates)
        fine_tuning = FineTuning(folder, model, excerpts[:test], excerpts[test:])
        rows = []
        for count, is_pretrained in tqdm([*itertools.product(labels, (False, True))]):
            scores = [
                fine_tuning.scores(count, seed, is_pretrained) for seed in range(1, seeds + 1)
            ]
            rows.append(_summary(count, "yes" if is_pretrained else "no", scores))
    print(of_rows(rows))
    results.save(output, rows, ("tensorflow", "keras"), summary=summary)


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
        model,
        DataConfig(train_file=str(folder / "text"), vocabulary_size=VOCABULARY, max_length=100),
        TrainConfig(
            **{"steps": updates, "validate_every": max(1, updates // 4), "warmup_steps": 500},
            **{"label_smoothing": 0.0, "valid_score_examples": 0, "learning_rate": 1.0},
        ),
        DecodeConfig(average=1),
        task="masked_language_modeling",
    )
    run = Run.at(folder / "mlm", config)
    result = trainer.train(run)
    row = run.folder.load_metrics(result.updates)[-1]
    return {
        "masked_perplexity": round(row["val_perplexity"], 2),
        "masked_accuracy": round(row["val_accuracy"], 3),
        "pretraining_updates": updates,
    }


class FineTuning:
    """Trains a classifier again and again with one graph, which takes longer to make than to run.

    Args:
        folder: with the run `mlm`, whose tokenizer is used.
        model: sizes of the model.
        test: excerpts to test with, and their labels.
        pool: those to choose training examples from.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        model: ModelConfig,
        test: Sequence[tuple[str, str]],
        pool: Sequence[tuple[str, str]],
    ):
        for name, rows in (("pool", pool), ("test", test)):
            lines = "".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *rows])
            (folder / f"{name}.tsv").write_text(lines, "utf-8")
        data = DataConfig(
            **{"train_file": str(folder / "pool.tsv"), "valid_file": str(folder / "test.tsv")},
            vocabulary_size=VOCABULARY,
        )
        train = TrainConfig(
            **{"warmup_steps": 50, "learning_rate": 0.1, "label_smoothing": 0.0},
            init_from=str(folder / "mlm"),
        )
        self.config = CLASSIFICATION.complete(Config(model, data, train, task="classification"))
        self.pool, valid = CLASSIFICATION.load_splits(self.config)
        self.test = CLASSIFICATION.test_set(valid)
        self.pretrained = Run.load(folder / "mlm")
        self.codec = self.pretrained.codec
        self.strategy = make_strategy("one")
        with self.strategy.scope():
            self.updater = make_updater(self.config, CLASSIFICATION, self.codec, Execution())
        self.optimizer = [variable.numpy() for variable in self.updater.optimizer.variables]
        decode = DecodeConfig(batch_size=500)
        self.predictor = CLASSIFICATION.predictor(self.updater.model, self.codec, decode)

    def scores(self, count: int, seed: int, is_pretrained: bool) -> dict[str, float]:
        """Scores on the test set after training on `count` excerpts of the pool."""
        self._start(seed, is_pretrained)
        examples = self.pool.read()
        chosen = random.Random(seed).sample(range(len(examples)), count)
        rows = CLASSIFICATION.encode(examples.take(chosen).texts, self.codec)
        ids = TokenExamples({name: IdRows.from_lists(lists) for name, lists in rows.items()})
        sampler = ShardSampler(ids, BATCH_TOKENS, bucket_width=2)

        def batches() -> Iterator[Batch]:
            for epoch in itertools.count():
                yield from (batch.padded() for batch in sampler.epoch((seed, epoch)))

        with replica_batches(self.strategy, tuple(rows), batches) as elements:
            for _ in range(100 + count // 4):
                self.updater.update(elements)
        found = CLASSIFICATION.evaluate(self.predictor, self.test).scores
        return {name: float(found[name]) for name in ("accuracy", "f1_macro")}

    def _start(self, seed: int, is_pretrained: bool) -> None:
        """New weights, those of the encoder from pre-training if that is asked for."""
        keras.utils.set_random_seed(seed)
        new = CLASSIFICATION.build_model(self.config, self.codec, "float32")
        if is_pretrained:
            initialize(new, self.config, self.pretrained)
        for variable, start in zip(self.updater.model.variables, new.variables, strict=True):
            variable.assign(start.numpy())
        for variable, value in zip(self.updater.optimizer.variables, self.optimizer, strict=True):
            variable.assign(value)


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
