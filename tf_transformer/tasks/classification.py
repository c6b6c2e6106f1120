"""Classification of texts or of pairs of texts, with one or several labels."""

import copy
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, cast

import keras
import numpy as np
from keras import KerasTensor

from tf_transformer.config import Config, DataConfig, DecodeConfig
from tf_transformer.data.examples import Examples, ExampleStream, Texts
from tf_transformer.data.folder import in_folder
from tf_transformer.data.readers.tables import stream_table
from tf_transformer.errors import InputError
from tf_transformer.inference.label_predictor import LabelPredictor, names_in, targets_of
from tf_transformer.inference.predictor import Predictor, Progress, no_progress
from tf_transformer.losses.consistency import CrossEntropy, require_cross_entropy
from tf_transformer.losses.cross_entropy import TokenLosses, decision_losses, label_losses
from tf_transformer.models.encoder_only import Classifier
from tf_transformer.tasks.task import Evaluation, Splits, Task, TestSet
from tf_transformer.tasks.translation_scores import ScoreOptions
from tf_transformer.text.codec import Codec
from tf_transformer.text.normalization import comparable
from tf_transformer.text.tokenizer import Tokenizer


class Classification(Task):
    """Learns the label of a text, or of a pair of texts, from the rows of a table.

    Attributes:
        fields: the text, or two texts with a tab between them; its label as in the file; the
            label as numbers.
        labels: the numbers, see `label_losses` and `decision_losses`.
        metrics: means of F1 over the labels and over all decisions, accuracy; 0 to 1.
        separator: of the labels of given outputs; empty: each text has exactly one.
    """

    fields: tuple[str, ...] = ("text", "label", "numbers")
    labels: str = "labels"
    metrics: tuple[str, ...] = ("f1_macro", "f1_micro", "accuracy")
    separator: str = ""

    def complete(self, config: Config) -> Config:
        """Fills `data.labels` with the labels of the training file, in alphabetical order.

        Raises:
            InputError: when there is no training file, or it has fewer than two labels;
                for `train.consistency`.
        """
        require_cross_entropy(config.train)
        data = config.data
        if not data.train_file:
            raise InputError(
                "give data.train_file, a file of tab-separated columns; data.text_columns and "
                "data.label_column name those of texts and labels."
            )
        if data.labels:
            if len({*map(comparable, data.labels)}) < len(data.labels):
                raise InputError(f"data.labels must be different, got {', '.join(data.labels)}.")
            return config
        found: set[str] = set()
        path = in_folder(data).train_file
        for (label,) in stream_table(path, [data.label_column], ["label"], tuple):
            found.update(names_in(label, data.label_separator))
        if len(found) < 2:
            raise InputError(
                f"{path} has {len(found)} label in column {data.label_column!r}; "
                "expected at least two different labels."
            )
        return replace(config, data=replace(data, labels=tuple(sorted(found))))

    def load_splits(self, config: Config) -> Splits:
        """The rows of `data.train_file` and `data.valid_file`."""
        data = in_folder(config.data)
        train = _rows(data.train_file, data)
        if data.valid_file:
            return Splits(train, _rows(data.valid_file, data).read())
        return Splits(*train.hold_out(data.held_out, config.train.seed))

    def load_test(self, config: Config, source: str, reference: str) -> TestSet:
        """The rows of `reference`, with the columns of the training file."""
        if source or not reference:
            raise InputError(
                "give --reference, a file with the columns of the training file, and no --source."
            )
        return self.test_set(_rows(reference, config.data).read())

    def test_set(self, examples: Examples) -> TestSet:
        return TestSet(examples["text"], examples["label"])

    def train_codec(self, stream: ExampleStream, config: Config) -> Codec:
        """Learned from the texts alone."""
        lines = (text for example in stream for text in example[0].split("\t"))
        return Codec(Tokenizer.train(lines, **config.data.tokenizer_options))

    def encode(
        self, texts: Mapping[str, Sequence[str]], codec: Codec
    ) -> dict[str, list[list[int]]]:
        """Numbers of labels, and ids; each text of a pair ends with the end-of-sentence id."""
        columns = zip(*(text.split("\t") for text in texts["text"]), strict=True)
        parts = zip(*map(codec["text"].encode_batch, columns), strict=True)
        return {
            "labels": [list(map(int, numbers.split())) for numbers in texts["numbers"]],
            "text": [list(itertools.chain.from_iterable(rows)) for rows in parts],
        }

    def build_model(self, config: Config, codec: Codec, dtype: str) -> keras.Model:
        data = config.data
        model = Classifier(
            *(codec.size("text"), data.labels, config.model, data.label_separator),
            texts=len(data.text_columns),
            dtype=dtype,
        )
        model.build()
        return model

    def losses(
        self,
        model: keras.Model,
        batch: Mapping[str, KerasTensor],
        objective: CrossEntropy,
        training: bool,
    ) -> TokenLosses:
        """Cross-entropy of the label, or of the decisions for each label."""
        losses = decision_losses if model.separator else label_losses
        logits = model.logits(batch["text"], training=training)
        return losses(batch["labels"], logits, objective.label_smoothing)

    def predictor(self, model: keras.Model, codec: Codec, decode: DecodeConfig) -> LabelPredictor:
        return LabelPredictor(model, codec, decode)

    def with_options(self, options: ScoreOptions) -> Self:
        """This task with a separator of labels.

        Raises:
            InputError: for other options.
        """
        super().with_options(replace(options, label_separator=""))
        task = copy.copy(self)
        task.separator = options.label_separator
        return task

    def evaluate(
        self, predictor: Predictor, test: TestSet, progress: Progress = no_progress
    ) -> Evaluation:
        """Scores predictions with the labels and the separator of the model; see `score`."""
        predictor = cast(LabelPredictor, predictor)
        predictions = [found.text for found in predictor(test.inputs, progress=progress)]
        names, separator = predictor.model.labels, predictor.model.separator
        return Evaluation(predictions, _scores(predictions, test.references, names, separator))

    def score(
        self, predictions: Sequence[str], references: Sequence[str]
    ) -> dict[str, float | str]:
        """Scores the labels of texts.

        Returns:
            accuracy: share of right labels; with several per text, of right decisions, one for each
            text and label. f1_macro: mean of the F1 of labels that a prediction or a reference has;
            f1_micro: F1 of all decisions. Both are 1 where neither has any. examples: the number of
            texts.
        """
        labels = [*predictions, *references]
        names = sorted({name for label in labels for name in names_in(label, self.separator)})
        return _scores(predictions, references, names, self.separator)

    def default_metric(self, references: Sequence[str]) -> str:
        return "f1_macro"

    def metadata(self, config: Config) -> dict[str, dict[str, Any]]:
        """The labels, in the order of the probabilities."""
        data = config.data
        labels = {"labels": list(data.labels), "separator": data.label_separator}
        return {"classification": labels | {"texts": len(data.text_columns)}}

    def describe(self, scores: Mapping[str, Any]) -> str:
        return (
            "{examples:,} examples: accuracy {accuracy:.3f}, F1 {f1_macro:.3f} (macro), "
            "{f1_micro:.3f} (micro)"
        ).format(**scores)


CLASSIFICATION = Classification()


def _rows(path: str, data: DataConfig) -> ExampleStream:
    """The examples of a table."""

    def convert(row: Texts) -> Texts:
        *texts, label = row
        for text, column in zip(texts, data.text_columns, strict=True):
            if not text.strip():
                raise InputError(f"column {column!r} has no text. Fill it, or remove the line.")
        if not comparable(label) and not data.label_separator:
            raise InputError(f"column {data.label_column!r} has no label.")
        targets = targets_of(label, data.labels, data.label_separator)
        if data.label_separator:
            numbers = " ".join(str(target + 1) for target in targets)
        else:
            numbers = str(targets.index(1) + 1)
        return "\t".join(texts), label, numbers

    columns = (*data.text_columns, data.label_column)
    stream = stream_table(path, columns, CLASSIFICATION.fields, convert)
    labels = f"{data.labels} {data.label_separator!r}"
    return replace(stream, identify=lambda: f"{stream.identity} {labels}")


def _scores(
    predictions: Sequence[str], references: Sequence[str], names: Sequence[str], separator: str
) -> dict[str, Any]:
    if not predictions or len(predictions) != len(references):
        raise InputError(
            "expected at least one prediction and a reference for each, got "
            f"{len(predictions)} and {len(references)}."
        )
    found, right = (
        np.array([targets_of(label, names, separator) for label in labels], bool)
        for labels in (predictions, references)
    )
    is_right = found == right if separator and names else (found == right).all(axis=1)
    twice_hits = 2.0 * (found & right).sum(axis=0)
    counts = found.sum(axis=0) + right.sum(axis=0, dtype=float)
    occurs = counts > 0
    return {
        "accuracy": float(is_right.mean()),
        "f1_macro": float(np.mean(twice_hits[occurs] / counts[occurs])) if occurs.any() else 1.0,
        "f1_micro": float(twice_hits.sum() / counts.sum()) if occurs.any() else 1.0,
        "examples": len(references),
    }
