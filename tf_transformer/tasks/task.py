"""The base class of tasks, which training, evaluation and prediction use.

A task defines the examples, the ids of their texts, the model, its loss, the predictions and their
scores. `tests/tasks/reversal.py` is a small task; `tasks/translation.py` is the task of the paper.
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
from tf_transformer.data.folder import in_folder
from tf_transformer.data.text_size import TextSize
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts, split_paths
from tf_transformer.inference.predictor import Prediction, Predictor, Progress, no_progress
from tf_transformer.losses.cross_entropy import CrossEntropy, TokenLosses
from tf_transformer.tasks.metrics import LOSS, OF_VALIDATION, Metric, References, find, score_all
from tf_transformer.text.codec import Codec
from tf_transformer.text.own_tokenizer import load_own
from tf_transformer.text.tokenizer import Tokenizer

__all__ = ["Evaluation", "Prediction", "Predictor", "Splits", "Task", "TestSet"]


class Splits(NamedTuple):
    """The examples of a training run."""

    train: ExampleStream
    valid: Examples


class _TestTexts(NamedTuple):
    inputs: list[str]
    references: list[str]


class TestSet(_TestTexts):
    """The inputs of predictions, and the references for their scores.

    Attributes:
        inputs: the texts.
        references: one reference per input.
        more_references: further lists like `references`, for inputs with several references. The
            tuple has two items; this list is only an attribute.
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
    scores: dict[str, float | str]  # by name, in JSON's types


class Task(ABC):
    """The purpose of a model: its data, loss, predictions and scores.

    Attributes:
        Options: the class of the task's options, a subclass of `TaskOptions`.
        options: the values of the options, set by `for_run`; else the defaults.
        fields: names of the texts of an example, like ("source", "target").
        labels: name of the ids that the model learns to predict, a name in the result of `encode`.
            `losses` counts these ids, without padding.
        metrics: the metrics of each test; one of them can choose the best weights.
        metrics_on_request: further metrics, which are computed only on request.
        requested: the requested metrics; see `with_metrics`.
        only_text: whether all ids of a batch are pieces of text, with the fields as names.
            BPE-dropout may divide such pieces.
        separable: whether each field may have its own vocabulary.
    """

    Options: type[TaskOptions] = TaskOptions
    fields: tuple[str, ...]
    labels: str
    requested: tuple[Metric, ...] = ()
    only_text: bool = False
    separable: bool = False

    @property
    def source(self) -> str:
        """The field that a search reads with `decode.punctuation` and `decode.target_tag`.

        It is "" for a task whose labels are not another text of the example.
        """
        return self.fields[0] if self.labels in self.fields[1:] else ""

    @functools.cached_property
    def options(self) -> Any:
        """The values of the task's options."""
        return self.Options()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of each test; by default none."""
        return ()

    @property
    def metrics_on_request(self) -> tuple[Metric, ...]:
        """Further metrics, computed only on request; by default none."""
        return ()

    def with_options(self, options: TaskOptions) -> Self:
        """This task with other options.

        Args:
            options: an object of the class `Options`.

        Raises:
            InputError: for options that cannot be used on this machine.
        """
        task = copy.copy(self)
        task.options = options
        return task

    def with_metrics(self, *names: str) -> Self:
        """This task with requested metrics.

        Args:
            *names: names of metrics, as in `metric`.

        Raises:
            InputError: for an unknown metric.
        """
        task = copy.copy(self)
        task.requested = tuple(map(self.metric, names))
        return task

    def metric(self, name: str) -> Metric:
        """The metric with a name.

        Args:
            name: a metric of the task or of validation, a registered metric, or
                "module:attribute".

        Raises:
            InputError: for an unknown metric.
        """
        return find(name, [*self.metrics, *self.metrics_on_request, *OF_VALIDATION])

    def complete(self, config: Config) -> Config:
        """The configuration with options that the data determines; by default unchanged.

        Training saves the result as the run's configuration.

        Raises:
            InputError: for data that cannot be read.
        """
        return config

    def text_size(self, config: Config) -> TextSize | None:
        """The size of the training text, for options that are chosen to fit it.

        None, the default: a training run has the same defaults with any text.

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
        """A test set from files.

        Args:
            config: the configuration of the run.
            source: file of inputs.
            reference: file of references. If both files are "", the test set of the run's corpus.

        Raises:
            InputError: for files that cannot be read or do not belong together.
        """

    def load_corpus(self, config: Config, corpus: Corpus) -> TestSet:
        """A test set from all examples of a corpus in any format.

        Raises:
            InputError: for a corpus that cannot be read. The default raises it, because a task has
                its own form of files.
        """
        raise InputError("--corpus is for translation and language models. Give --reference.")

    @abstractmethod
    def test_set(self, examples: Examples) -> TestSet:
        """The inputs and references of examples."""

    def attended(self, examples: TestSet) -> TestSet:
        """Texts and outputs for pictures of attention in training.

        By default these are the inputs and the references.
        """
        return examples

    def read_outputs(self, hypotheses: str, reference: str) -> tuple[list[str], list[list[str]]]:
        """Reads given outputs, and lists of their references; by default one list.

        Args:
            hypotheses: file of outputs.
            reference: file of references; line n belongs to line n of the outputs.

        Raises:
            InputError: for files that cannot be read or do not belong together.
        """
        outputs, references = read_texts(hypotheses, reference)
        return outputs, [references]

    def compare(
        self, predictions: Sequence[str], references: References, baseline: Sequence[str]
    ) -> dict[str, Any]:
        """Compares predictions with the outputs of another system.

        Args:
            predictions: the predictions.
            references: lists of references.
            baseline: the outputs of the other system.

        Raises:
            InputError: for a task without such a comparison, which is the default.
        """
        raise InputError("--baseline compares translations; this task has none. Leave it out.")

    def train_codec(self, stream: ExampleStream, config: Config) -> Codec:
        """A new codec, learned from the training examples.

        By default, one tokenizer learns from all texts. With `data.vocabularies` separate, each
        field has a tokenizer that learns from the texts of this field. With `data.tokenizer`,
        nothing is learned.
        """
        if own := self.own_codec(config):
            return own
        options = config.data.tokenizer_options
        if config.data.vocabularies == "joint":
            raise InputError(
                "data.vocabularies joint is for imported models, which --train.init_from names. "
                "Use shared or separate."
            )
        if config.data.vocabularies == "shared":
            return Codec(Tokenizer.train(itertools.chain.from_iterable(stream), **options))
        tokenizers = {}
        for place, field in enumerate(self.fields):
            lines = map(operator.itemgetter(place), stream)
            tokenizers[field] = Tokenizer.train(lines, **options)
        return Codec(tokenizers)

    def own_codec(self, config: Config) -> Codec | None:
        """The codec of the files in `data.tokenizer`; None without such files.

        Raises:
            InputError: for a file that is no SentencePiece model, or not one file for each field.
        """
        if not config.data.tokenizer:
            return None
        paths = split_paths(in_folder(config.data).tokenizer)
        if config.data.vocabularies == "shared":
            return Codec(load_own(paths[0]))
        if len(paths) != len(self.fields):
            raise InputError(
                f"data.tokenizer needs a file for each of {', '.join(self.fields)}, got "
                f"{len(paths)}: {', '.join(paths)}."
            )
        return Codec(dict(zip(self.fields, map(load_own, paths), strict=True)))

    def reuse_codec(self, codec: Codec, stream: ExampleStream, config: Config) -> Codec:
        """The codec of `train.init_from`, if it fits this training run.

        Raises:
            InputError: for a codec that does not fit; by default, another one than in
                `data.tokenizer`.
        """
        own = self.own_codec(config)
        if own and own.identity != codec.identity:
            raise InputError(
                f"data.tokenizer {config.data.tokenizer} is not the vocabulary of train.init_from="
                f"{config.train.init_from}, which the weights belong to. Leave out data.tokenizer."
            )
        return codec

    @abstractmethod
    def encode(
        self, texts: Mapping[str, Sequence[str]], codec: Codec
    ) -> dict[str, list[list[int]]]:
        """The ids of examples.

        Args:
            texts: the texts of N examples, by field.
            codec: the codec of the run.

        Returns:
            N rows of ids for each name of a batch. The order of names matters: examples are sorted
            by the lengths of the last name first.
        """

    def encode_examples(
        self, texts: Mapping[str, Sequence[str]], codec: Codec, max_length: int
    ) -> dict[str, list[list[int]]]:
        """The rows of ids that training reads; by default `encode`.

        A task may divide long examples into rows of at most `max_length` ids. Training skips an
        example with a longer row.

        Args:
            texts: the texts of examples, by field.
            codec: the codec of the run.
            max_length: longest row in ids.
        """
        return self.encode(texts, codec)

    @abstractmethod
    def build_model(self, config: Config, codec: Codec, dtype: str) -> keras.Model:
        """Builds a new model with all its weights.

        Args:
            config: the configuration of the run.
            codec: the codec of the run.
            dtype: a dtype, or a dtype policy like mixed_bfloat16.
        """

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
            loss: computes the losses of labels from a model and its inputs.
            training: whether dropout is active.
        """

    @abstractmethod
    def predictor(self, model: keras.Model, codec: Codec, decode: DecodeConfig) -> Predictor:
        """The predictor for a model, also during training.

        Args:
            model: the model; each prediction uses its present weights.
            codec: the codec of the run.
            decode: options of the search.
        """

    def evaluate(
        self, predictor: Predictor, test: TestSet, progress: Progress = no_progress
    ) -> Evaluation:
        """Tests a predictor; by default, scores its predictions.

        Args:
            predictor: a predictor of this task.
            test: the test set.
            progress: function that is called after each batch.

        Raises:
            InputError: as `score`.
        """
        predictions = [best.text for best in predictor(test.inputs, progress=progress)]
        references = [test.references, *test.more_references]
        return Evaluation(predictions, self.score(test.inputs, predictions, references))

    def score(
        self, inputs: Sequence[str], predictions: Sequence[str], references: References
    ) -> dict[str, Any]:
        """The scores of `metrics` and `requested` by name, in JSON's types; see `Metric.score`.

        Training logs the scores that are floats.

        Args:
            inputs: the input of each prediction; may be empty for given outputs.
            predictions: the predicted texts.
            references: lists of references.

        Raises:
            InputError: for no predictions, unequal numbers of texts, or a task without metrics of
                given outputs.
        """
        scored = (*self.metrics, *self.requested)
        if not scored:
            raise InputError(
                "a test of this task needs the probabilities of a model. Give --run_dir and "
                "--reference, without --hypotheses."
            )
        return score_all(scored, inputs, predictions, references)

    def default_metric(self, references: Sequence[str]) -> str:
        """The name of the metric that chooses the best weights when `train.metric` is empty.

        By default this is the first of `metrics`, or the validation loss without metrics.

        Args:
            references: references of the validation examples that are scored.
        """
        return (*self.metrics, LOSS)[0].name

    def metadata(self, config: Config) -> dict[str, dict[str, Any]]:
        """Facts by section for the metadata of exports, in JSON's types; by default none."""
        return {}

    @abstractmethod
    def describe(self, scores: Mapping[str, Any]) -> str:
        """The scores as one line of text for people."""
