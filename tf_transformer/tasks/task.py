"""The base class of tasks: all that training, evaluation and prediction need of one.

A task defines the examples, how their texts become ids, the model, its loss, and how predictions
are made and scored. `tasks/translation.py` is one; `tests/tasks/reversal.py` is a small one.
"""

import copy
import functools
import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import keras
from keras import KerasTensor

from tf_transformer.config import Config, Corpus, DecodeConfig, TaskOptions
from tf_transformer.data.examples import Examples, ExampleStream
from tf_transformer.data.text_size import TextSize
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts
from tf_transformer.inference.predictor import Prediction, Predictor, Progress, no_progress
from tf_transformer.losses.consistency import CrossEntropy
from tf_transformer.losses.cross_entropy import TokenLosses
from tf_transformer.tasks.metrics import LOSS, OF_VALIDATION, Metric, References, find, score_all
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import Tokenizer

__all__ = ["Evaluation", "Prediction", "Predictor", "Splits", "Task", "TestSet"]


class Splits(NamedTuple):
    """The examples of a training."""

    train: ExampleStream
    valid: Examples


class _TestTexts(NamedTuple):
    inputs: list[str]
    references: list[str]


class TestSet(_TestTexts):
    """Inputs of predictions, and the references that predictions are scored against.

    Attributes:
        inputs: texts.
        references: one for each.
        more_references: lists like `references`, for inputs with several. Not an item of the tuple,
            which has two.
    """

    more_references: Sequence[list[str]] = ()

    def __new__(
        cls,
        inputs: list[str],
        references: list[str],
        more_references: Sequence[list[str]] = (),
    ) -> "TestSet":
        test = super().__new__(cls, inputs, references)
        test.more_references = more_references
        return test


class Evaluation(NamedTuple):
    """The outcome of a test."""

    predictions: list[str]  # one per input
    scores: dict[str, float | str]  # by name, as JSON can hold them


class Task(ABC):
    """The purpose of a model: its data, loss, predictions and scores.

    Attributes:
        Options: the class of the task's own options, a subclass of `TaskOptions`.
        options: their values: those of `for_run`, else the defaults.
        fields: names of an example's texts, like ("source", "target").
        labels: the name, among those that `encode` gives, of the ids that the model learns to
            predict. `losses` counts these ids, without padding.
        metrics: the scores of every test; one of them can choose the best weights.
        metrics_on_request: further ones, which are computed only when they are asked for.
        requested: the metrics that are asked for, see `with_metrics`.
        only_text: whether all ids of a batch, whose names are the fields, are pieces of text, which
            BPE-dropout may divide.
        separable: whether each field may have a vocabulary of its own.
    """

    Options: type[TaskOptions] = TaskOptions
    fields: tuple[str, ...]
    labels: str
    requested: tuple[Metric, ...] = ()
    only_text: bool = False
    separable: bool = False

    @functools.cached_property
    def options(self) -> Any:
        return self.Options()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return ()

    @property
    def metrics_on_request(self) -> tuple[Metric, ...]:
        return ()

    def with_options(self, options: TaskOptions) -> Self:
        """This task with options.

        Args:
            options: of the class `Options`.

        Raises:
            InputError: for options that cannot be used here.
        """
        task = copy.copy(self)
        task.options = options
        return task

    def with_metrics(self, *names: str) -> Self:
        """This task with metrics that are asked for by name, see `metric`.

        Raises:
            InputError: for a metric that does not exist.
        """
        task = copy.copy(self)
        task.requested = tuple(map(self.metric, names))
        return task

    def metric(self, name: str) -> Metric:
        """The metric of this name: one of the task, of validation, or a registered one.

        Raises:
            InputError: for a metric that does not exist.
        """
        return find(name, [*self.metrics, *self.metrics_on_request, *OF_VALIDATION])

    def complete(self, config: Config) -> Config:
        """The configuration with the options that follow from the data.

        Training saves it as the run's configuration. By default nothing follows.

        Raises:
            InputError: for data that cannot be read.
        """
        return config

    def text_size(self, config: Config) -> TextSize | None:
        """The size of the training text, for options that are chosen to fit it.

        None, the default: a training has the same defaults with any text.

        Raises:
            InputError: for data that cannot be read.
        """
        return None

    @abstractmethod
    def load_splits(self, config: Config) -> Splits:
        """The training and validation examples.

        Raises:
            InputError: for data that cannot be read.
        """

    @abstractmethod
    def load_test(self, config: Config, source: str, reference: str) -> TestSet:
        """A test set from files, or the run's own one when the files are "".

        Raises:
            InputError: for files that cannot be read or do not belong together.
        """

    def load_corpus(self, config: Config, corpus: Corpus) -> TestSet:
        """A test set from a corpus in any format, with all its examples.

        Raises:
            InputError: for a corpus that cannot be read; by default, because a task has its own
                form of files.
        """
        raise InputError("--corpus is for translation and language models. Give --reference.")

    @abstractmethod
    def test_set(self, examples: Examples) -> TestSet:
        """The inputs and references that examples hold."""

    def attended(self, examples: TestSet) -> TestSet:
        """Texts and outputs whose attention training shows; by default inputs and references."""
        return examples

    def read_outputs(self, hypotheses: str, reference: str) -> tuple[list[str], list[list[str]]]:
        """Given outputs, and lists of their references; by default one list, line by line.

        Raises:
            InputError: for files that cannot be read or do not belong together.
        """
        outputs, references = read_texts(hypotheses, reference)
        return outputs, [references]

    def compare(
        self, predictions: Sequence[str], references: References, baseline: Sequence[str]
    ) -> dict[str, Any]:
        """Scores of another system's outputs beside given ones; by default not possible.

        Raises:
            InputError: for a task without such scores.
        """
        raise InputError("--baseline compares translations; this task has none.")

    def train_codec(self, stream: ExampleStream, config: Config) -> Codec:
        """A new codec, learned from the training examples.

        By default a tokenizer learns from all their texts, or with `data.vocabularies` separate
        one from the texts of each field.
        """
        options = config.data.tokenizer_options
        if config.data.vocabularies == "shared":
            return Codec(Tokenizer.train(itertools.chain.from_iterable(stream), **options))
        tokenizers = {}
        for place, field in enumerate(self.fields):
            lines = map(operator.itemgetter(place), stream)
            tokenizers[field] = Tokenizer.train(lines, **options)
        return Codec(tokenizers)

    def reuse_codec(self, codec: Codec, stream: ExampleStream, config: Config) -> Codec:
        """The codec of `train.init_from`, if it fits this training.

        Raises:
            InputError: when it does not fit; by default, when `data.vocabularies` differs.
        """
        kind = "shared" if codec.is_shared else "separate"
        if kind != config.data.vocabularies:
            raise InputError(
                f"the run of train.init_from has data.vocabularies {kind}, this one "
                f"{config.data.vocabularies}: its weights belong to its vocabularies. Give "
                f"--data.vocabularies {kind}, or another train.init_from."
            )
        return codec

    @abstractmethod
    def encode(
        self, texts: Mapping[str, Sequence[str]], codec: Codec
    ) -> dict[str, list[list[int]]]:
        """The ids of examples.

        Args:
            texts: by field, the texts of N examples.
            codec: of the run.

        Returns:
            N rows of ids for each name of a batch. The order of the names counts: batches are
            formed by the lengths of the last one first.
        """

    def encode_examples(
        self, texts: Mapping[str, Sequence[str]], codec: Codec, max_length: int
    ) -> dict[str, list[list[int]]]:
        """The rows of ids that training reads; by default `encode`.

        A task may divide long examples into rows of at most `max_length` ids; examples with a row
        of more are skipped.
        """
        return self.encode(texts, codec)

    @abstractmethod
    def build_model(self, config: Config, codec: Codec, dtype: str) -> keras.Model:
        """A new model with all its weights; `dtype` may be a policy like mixed_bfloat16."""

    @abstractmethod
    def losses(
        self,
        model: keras.Model,
        batch: Mapping[str, KerasTensor],
        loss: CrossEntropy,
        training: bool,
    ) -> TokenLosses:
        """The summed losses of a batch.

        Args:
            model: the model.
            batch: int32 tensors (B, L) by name, padded with 0 at the end.
            loss: gives the losses of labels from a model and its inputs.
            training: whether dropout is on.
        """

    @abstractmethod
    def predictor(self, model: keras.Model, codec: Codec, decode: DecodeConfig) -> Predictor:
        """Makes predictions with a model, also while it is being trained."""

    def evaluate(
        self, predictor: Predictor, test: TestSet, progress: Progress = no_progress
    ) -> Evaluation:
        """Tests a predictor; by default with the scores of its predictions.

        Args:
            predictor: of this task.
            test: the test set.
            progress: called after each batch.

        Raises:
            InputError: as `score`.
        """
        predictions = [best.text for best in predictor(test.inputs, progress=progress)]
        references = [test.references, *test.more_references]
        return Evaluation(predictions, self.score(test.inputs, predictions, references))

    def score(
        self, inputs: Sequence[str], predictions: Sequence[str], references: References
    ) -> dict[str, Any]:
        """The scores of `metrics` and of `requested` by name, as JSON can hold them.

        Floats are logged in training, too. See `Metric.score`.

        Raises:
            InputError: when there is nothing to score, the numbers of texts differ, or the task
                has no metric of given outputs.
        """
        scored = (*self.metrics, *self.requested)
        if not scored:
            raise InputError(
                "this task is tested by the probabilities of a model, not by its predictions. Give "
                "--run_dir and --reference, without --hypotheses."
            )
        return score_all(scored, inputs, predictions, references)

    def default_metric(self, references: Sequence[str]) -> str:
        """The metric that chooses the best weights when `train.metric` is empty.

        By default the first of `metrics`, or the loss of validation.

        Args:
            references: of the validation examples that are scored.
        """
        return (*self.metrics, LOSS)[0].name

    def metadata(self, config: Config) -> dict[str, dict[str, Any]]:
        """Facts by section for the metadata of exports, as JSON can hold them; by default none."""
        return {}

    @abstractmethod
    def describe(self, scores: Mapping[str, Any]) -> str:
        """The scores in a line for people."""
