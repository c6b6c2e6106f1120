"""The base class of tasks, which training, evaluation and prediction use.

A task defines the examples, the ids of their texts, the model, its loss, the predictions and their
scores. `tests/tasks/reversal.py` is a small task; `tasks/translation.py` is the task of the paper.
"""

import copy
import functools
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import keras
from keras import KerasTensor

from tf_transformer.config import Config, Corpus, DecodeConfig, TaskOptions
from tf_transformer.data.corpora import TextSize
from tf_transformer.data.examples import Examples, ExampleStream
from tf_transformer.data.vocabulary import learned_codec, own_codec
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts
from tf_transformer.inference.predictor import Prediction, Predictor, Progress, no_progress
from tf_transformer.losses.cross_entropy import CrossEntropy, TokenLosses
from tf_transformer.tasks.metrics import LOSS, OF_VALIDATION, Metric, References, find, score_all
from tf_transformer.text.codec import Codec

__all__ = ["Evaluation", "Prediction", "Predictor", "Splits", "Task", "TestSet"]

FieldTexts = Mapping[str, Sequence[str]]  # the texts of N examples, by field
Rows = dict[str, list[list[int]]]  # N rows of ids for each name of a batch
Batch = Mapping[str, KerasTensor]  # int32 (B, L) by name, padded with 0 at the end


class Splits(NamedTuple):
    """The examples of a training run."""

    train: ExampleStream
    valid: Examples

    def identities(self) -> dict[str, str]:
        """Hashes of the training text and the validation text, independent of file names."""
        streams = {"training": self.train, "validation": self.valid.stream()}
        return {name: identity_of(stream) for name, stream in streams.items()}


def identity_of(stream: ExampleStream) -> str:
    """The hash of a text that a run stores."""
    return hashlib.sha256(stream.identity.encode()).hexdigest()


class _TestTexts(NamedTuple):
    inputs: list[str]
    references: list[str]  # one per input


class TestSet(_TestTexts):
    """The inputs of predictions, and the references for their scores.

    `more_references` is an attribute, so that the tuple has two items: further lists like
    `references`, for inputs with several references.
    """

    more_references: Sequence[list[str]] = ()

    def __new__(
        cls, inputs: list[str], references: list[str], more_references: Sequence[list[str]] = ()
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

    A method raises an `InputError` for data, files, names and options that it cannot use.

    Method arguments:
        config: the configuration of the run.
        codec: the codec of the run, which maps texts to ids.
        stream: the training examples.
        texts: the texts of N examples, by field.
        dtype: a dtype, or a dtype policy like mixed_bfloat16.
        batch: the ids of a batch, as `encode` names them.
        loss: computes the losses of labels from a model and its inputs.
        training: whether dropout is on.
        predictions: the predicted texts.
        references: lists of references, each with one reference per prediction.

    Attributes:
        labels: name of the ids that the model learns to predict, a name in the result of `encode`.
            `losses` counts these ids, without padding.
        only_text: whether all ids of a batch are pieces of text, with the fields as names.
            BPE-dropout may divide such pieces.
    """

    Options: type[TaskOptions] = TaskOptions  # the class of `options`
    fields: tuple[str, ...]  # names of the texts of an example, like ("source", "target")
    labels: str
    summary: str  # scores as one line for people: a template of `str.format`
    requested: tuple[Metric, ...] = ()  # the metrics that `with_metrics` adds
    only_text: bool = False
    separable: bool = False  # whether each field may have its own vocabulary

    @property
    def source(self) -> str:
        """The field that a search reads with `decode.punctuation` and `decode.target_tag`.

        It is "" for a task whose labels are not another text of the example.
        """
        return self.fields[0] if self.labels in self.fields[1:] else ""

    @functools.cached_property
    def options(self) -> Any:
        """The values of the task's options, set by `for_run`; else the defaults."""
        return self.Options()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of each test, one of which can choose the best weights; by default none."""
        return ()

    @property
    def metrics_on_request(self) -> tuple[Metric, ...]:
        """Further metrics, computed only on request; by default none."""
        return ()

    def with_options(self, options: TaskOptions) -> Self:
        """This task with other options, an object of the class `Options`."""
        task = copy.copy(self)
        task.options = options
        return task

    def with_metrics(self, *names: str) -> Self:
        """This task with the metrics that are requested by name; see `metric`."""
        task = copy.copy(self)
        task.requested = tuple(map(self.metric, names))
        return task

    def metric(self, name: str) -> Metric:
        """The metric with a name: of the task, of validation, registered, or "module:attribute"."""
        return find(name, [*self.metrics, *self.metrics_on_request, *OF_VALIDATION])

    def complete(self, config: Config) -> Config:
        """The configuration with options that the data determines; by default unchanged.

        Training saves the result as the run's configuration.
        """
        return config

    def defaults(self) -> dict[str, Any]:
        """The options that this task sets unless they are given, by names like train.steps."""
        return {}

    def text_size(self, config: Config) -> TextSize | None:
        """The size of the training text, for options that are chosen to fit it.

        None, the default: a training run has the same defaults with any text.
        """
        return None

    @abstractmethod
    def load_splits(self, config: Config) -> Splits:
        """The training and validation examples."""

    @abstractmethod
    def load_test(self, config: Config, source: str, reference: str) -> TestSet:
        """A test set from a file of inputs and a file of references.

        If both are "", it is the test set of the run's corpus.
        """

    def load_corpus(self, config: Config, corpus: Corpus) -> TestSet:
        """A test set from all examples of a corpus in any format.

        By default an error, because a task has its own form of files.
        """
        raise InputError("--corpus is for translation and language models. Give --reference.")

    def test_set(self, examples: Examples) -> TestSet:
        """The inputs and references of examples; by default the first field and the second.

        Examples of one field have it as both.
        """
        return TestSet(examples[self.fields[0]], examples[self.fields[:2][-1]])

    def attended(self, examples: TestSet) -> TestSet:
        """Texts and outputs for pictures of attention in training; by default `examples`."""
        return examples

    def read_outputs(self, hypotheses: str, reference: str) -> tuple[list[str], list[list[str]]]:
        """Reads given outputs from a file, and lists of their references; by default one list.

        Line n of the file `reference` belongs to line n of the file `hypotheses`.
        """
        outputs, references = read_texts(hypotheses, reference)
        return outputs, [references]

    def compare(
        self, predictions: Sequence[str], references: References, baseline: Sequence[str]
    ) -> dict[str, Any]:
        """Compares predictions with the outputs of another system; by default an error."""
        raise InputError("--baseline compares translations; this task has none. Leave it out.")

    def train_codec(self, stream: ExampleStream, config: Config) -> Codec:
        """A new codec, learned from the training examples.

        By default, one tokenizer learns from all texts. With `data.vocabularies` separate, each
        field has a tokenizer that learns from the texts of this field. The vocabulary of the source
        has the tags of the corpora. With `data.tokenizer`, nothing is learned.
        """
        return self.own_codec(config) or learned_codec(stream, config.data, self.source)

    def own_codec(self, config: Config) -> Codec | None:
        """The codec of `data.prepared`, or of the files in `data.tokenizer`; None without both."""
        return own_codec(config.data, self.fields)

    def reuse_codec(self, codec: Codec, stream: ExampleStream, config: Config) -> Codec:
        """The codec of `train.init_from`, if it fits this training run; else an error.

        By default, only another codec than `own_codec` does not fit.
        """
        own = self.own_codec(config)
        if own and own.identity != codec.identity:
            data, name = config.data, "prepared" if config.data.prepared else "tokenizer"
            raise InputError(
                f"data.{name} {data.prepared or data.tokenizer} is not the vocabulary of "
                f"train.init_from={config.train.init_from}, which the weights belong to. Leave out "
                f"data.{name}."
            )
        return codec

    @abstractmethod
    def encode(self, texts: FieldTexts, codec: Codec) -> Rows:
        """The ids of examples: N rows of ids for each name of a batch.

        The order of names matters: examples are sorted by the lengths of the last name first.
        """

    def encode_examples(self, texts: FieldTexts, codec: Codec, max_length: int) -> Rows:
        """The rows of ids that training reads; by default `encode`.

        A task may divide long examples into rows of at most `max_length` ids. Training skips an
        example with a longer row.
        """
        return self.encode(texts, codec)

    @abstractmethod
    def build_model(self, config: Config, codec: Codec, dtype: str) -> keras.Model:
        """Builds a new model with all its weights."""

    @abstractmethod
    def losses(
        self, model: keras.Model, batch: Batch, loss: CrossEntropy, training: bool
    ) -> TokenLosses:
        """The summed losses of a batch."""

    @abstractmethod
    def predictor(self, model: keras.Model, codec: Codec, decode: DecodeConfig) -> Predictor:
        """The predictor for a model, also during training; it uses the model's present weights."""

    def evaluate(
        self, predictor: Predictor, test: TestSet, progress: Progress = no_progress
    ) -> Evaluation:
        """Tests a predictor; by default, scores its predictions.

        `progress` is called after each batch.
        """
        predictions = [best.text for best in predictor(test.inputs, progress=progress)]
        references = [test.references, *test.more_references]
        return Evaluation(predictions, self.score(test.inputs, predictions, references))

    def score(
        self, inputs: Sequence[str], predictions: Sequence[str], references: References
    ) -> dict[str, Any]:
        """The scores of `metrics` and `requested` by name, in JSON's types; see `Metric.score`.

        Training logs the scores that are floats. `inputs` may be empty for given outputs.
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
        """
        return (*self.metrics, LOSS)[0].name

    def metadata(self, config: Config) -> dict[str, dict[str, Any]]:
        """Facts by section for the metadata of exports, in JSON's types; by default none."""
        return {}

    def describe(self, scores: Mapping[str, Any]) -> str:
        """The scores as one line of text for people, by default with the template `summary`."""
        return self.summary.format(**scores)
