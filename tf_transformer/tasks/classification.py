"""Classification of texts or pairs of texts, with one or several labels."""

import itertools
from dataclasses import dataclass, replace
from typing import Any, cast

import keras
import numpy as np

from tf_transformer.config import Config, DecodeConfig
from tf_transformer.config.task import ClassificationOptions
from tf_transformer.data.corpora import in_folder, own_file
from tf_transformer.data.examples import ExampleStream, Texts
from tf_transformer.data.readers.tables import stream_table
from tf_transformer.errors import InputError
from tf_transformer.inference.label_predictor import LabelPredictor, names_in, targets_of
from tf_transformer.inference.predictor import Predictor, Progress, no_progress
from tf_transformer.losses import cross_entropy
from tf_transformer.losses.choice import require_cross_entropy
from tf_transformer.models.encoder_only import Classifier
from tf_transformer.tasks.metrics import Metric, References, Scores, Strings
from tf_transformer.tasks.task import Batch, Evaluation, FieldTexts, Rows, Splits, Task, TestSet
from tf_transformer.text.codec import Codec
from tf_transformer.text.normalization import comparable
from tf_transformer.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class LabelScore:
    """A score of labels. `score` computes all scores of labels at once."""

    name: str  # f1_macro, f1_micro or accuracy
    separator: str = ""  # between the labels of an example; empty: each has exactly one label
    labels: tuple[str, ...] = ()  # all labels for which a model decides; empty: those in the texts

    lower_is_better = False

    def score(self, inputs: Strings, predictions: Strings, references: References) -> Scores:
        """Scores the predicted label of each text against the first list of references.

        Returns:
            accuracy: share of right labels, 0 to 1. With several labels per text: share of right
            decisions, one for each text and label. f1_macro: mean F1 over the labels that a
            prediction or a reference has. f1_micro: F1 of all decisions. Both F1 are 1 if no text
            has a label. examples: the number of texts.
        """
        (right, *_), names, separator = references, self.labels, self.separator
        if not names:
            labels = [*predictions, *right]
            names = tuple(sorted({x for label in labels for x in names_in(label, separator)}))
        if not predictions or len(predictions) != len(right):
            raise InputError(
                "expected at least one prediction and a reference for each prediction, got "
                f"{len(predictions)} predictions and {len(right)} references."
            )
        predicted, given = (
            np.array([targets_of(label, names, separator) for label in labels], bool)
            for labels in (predictions, right)
        )
        is_right = predicted == given if separator and names else (predicted == given).all(axis=1)
        twice_hits = 2.0 * (predicted & given).sum(axis=0)
        counts = predicted.sum(axis=0) + given.sum(axis=0, dtype=float)
        occurs, any_occurs = counts > 0, (counts > 0).any()
        return {
            "accuracy": float(is_right.mean()),
            "f1_macro": float(np.mean(twice_hits[occurs] / counts[occurs])) if any_occurs else 1.0,
            "f1_micro": float(twice_hits.sum() / counts.sum()) if any_occurs else 1.0,
            "examples": len(right),
        }


class Classification(Task):
    """Learns the label of a text or of a pair of texts, from the rows of a table.

    Attributes:
        fields: the text, or two texts with a tab between them; the label as in the file; the label
            as numbers.
        labels: the numbers; see `label_losses` and `decision_losses`.
        metrics: mean F1 over the labels, F1 of all decisions, and accuracy; 0 to 1.
        model_labels: the labels of the tested model; empty for given outputs.
    """

    Options = ClassificationOptions
    fields: tuple[str, ...] = ("text", "label", "numbers")
    labels: str = "labels"
    model_labels: tuple[str, ...] = ()
    summary = (
        "{examples:,} examples: accuracy {accuracy:.3f}, F1 {f1_macro:.3f} (macro), "
        "{f1_micro:.3f} (micro)"
    )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        names, separator = ("f1_macro", "f1_micro", "accuracy"), self.options.label_separator
        return tuple(LabelScore(name, separator, self.model_labels) for name in names)

    def complete(self, config: Config) -> Config:
        """Fills `task.labels` with the labels of the training file, in alphabetical order."""
        require_cross_entropy(config.train)
        path, options = own_file(in_folder(config.data).corpora), _options(config)
        if not path:
            raise InputError(
                "give data.train_file, a file of tab-separated columns. task.text_columns and "
                "task.label_column name the columns with texts and labels."
            )
        if options.labels:
            if len({*map(comparable, options.labels)}) < len(options.labels):
                raise InputError(f"task.labels must be different, got {', '.join(options.labels)}.")
            return config
        names: set[str] = set()
        for (label,) in stream_table(path, [options.label_column], ["label"], tuple):
            names.update(names_in(label, options.label_separator))
        if len(names) < 2:
            raise InputError(
                f"{path} has {len(names)} label in column {options.label_column!r}. "
                "Expected at least two different labels."
            )
        return replace(config, task=replace(options, labels=tuple(sorted(names))))

    def load_splits(self, config: Config) -> Splits:
        """The rows of `data.train_file` and `data.valid_file`."""
        data, options = in_folder(config.data), _options(config)
        train = _rows(own_file(data.corpora), options)
        if valid_file := own_file(data.valid_corpora):
            return Splits(train, _rows(valid_file, options).read())
        return Splits(*train.hold_out(data.held_out, config.train.seed))

    def load_test(self, config: Config, source: str, reference: str) -> TestSet:
        """The rows of `reference`, a file with the columns of the training file."""
        if source or not reference:
            raise InputError(
                "give --reference, a file with the columns of the training file, and no --source."
            )
        return self.test_set(_rows(reference, _options(config)).read())

    def train_codec(self, stream: ExampleStream, config: Config) -> Codec:
        """A codec that is learned from the texts, without the labels."""
        lines = (text for example in stream for text in example[0].split("\t"))
        return Codec(Tokenizer.train(lines, **config.data.tokenizer_options))

    def encode(self, texts: FieldTexts, codec: Codec) -> Rows:
        """The numbers of labels, and the ids of texts; each text of a pair ends with the end id."""
        columns = zip(*(text.split("\t") for text in texts["text"]), strict=True)
        parts = zip(*map(codec["text"].encode_batch, columns), strict=True)
        return {
            "labels": [list(map(int, numbers.split())) for numbers in texts["numbers"]],
            "text": [list(itertools.chain.from_iterable(rows)) for rows in parts],
        }

    def build_model(self, config: Config, codec: Codec, dtype: str) -> keras.Model:
        options = _options(config)
        model = Classifier(
            *(codec.size("text"), options.labels, config.model, options.label_separator),
            texts=len(options.text_columns),
            dtype=dtype,
        )
        model.build()
        return model

    def losses(
        self, model: keras.Model, batch: Batch, loss: cross_entropy.CrossEntropy, training: bool
    ) -> cross_entropy.TokenLosses:
        """Cross-entropy of the label; with several labels, of the decisions for each label."""
        losses = cross_entropy.decision_losses if model.separator else cross_entropy.label_losses
        logits = model.logits(batch["text"], training=training)
        return losses(batch["labels"], logits, loss.label_smoothing)

    def predictor(self, model: keras.Model, codec: Codec, decode: DecodeConfig) -> LabelPredictor:
        return LabelPredictor(model, codec, decode)

    def evaluate(
        self, predictor: Predictor, test: TestSet, progress: Progress = no_progress
    ) -> Evaluation:
        """Scores predictions with the labels and the separator of the model; see `LabelScore`."""
        model = cast(LabelPredictor, predictor).model
        task = self.with_options(replace(self.options, label_separator=model.separator))
        task.model_labels = tuple(model.labels)
        return super(Classification, task).evaluate(predictor, test, progress)

    def metadata(self, config: Config) -> dict[str, dict[str, Any]]:
        options = _options(config)
        labels = {"labels": list(options.labels), "separator": options.label_separator}
        return {"classification": labels | {"texts": len(options.text_columns)}}


CLASSIFICATION = Classification()


def _options(config: Config) -> ClassificationOptions:
    return cast(ClassificationOptions, config.task)


def _rows(path: str, options: ClassificationOptions) -> ExampleStream:
    """The examples of a table."""

    def convert(row: Texts) -> Texts:
        *texts, label = row
        for text, column in zip(texts, options.text_columns, strict=True):
            if not text.strip():
                raise InputError(f"column {column!r} has no text. Fill it, or remove the line.")
        if not comparable(label) and not options.label_separator:
            raise InputError(
                f"column {options.label_column!r} has no label. Fill it, or remove the line."
            )
        targets = targets_of(label, options.labels, options.label_separator)
        if options.label_separator:
            numbers = " ".join(str(target + 1) for target in targets)
        else:
            numbers = str(targets.index(1) + 1)
        return "\t".join(texts), label, numbers

    columns = (*options.text_columns, options.label_column)
    stream = stream_table(path, columns, CLASSIFICATION.fields, convert)
    labels = f"{options.labels} {options.label_separator!r}"
    return replace(stream, identify=lambda: f"{stream.identity} {labels}")
