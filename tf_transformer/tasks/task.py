"""The base class of tasks: all that training, evaluation and prediction need of one.

A task defines the examples, how their texts become ids, the model, its loss, and how predictions
are made and scored. `tasks/translation.py` is one; `tests/tasks/reversal.py` is a small one.
"""

import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import keras
from keras import KerasTensor

from tf_transformer.config import Config, Corpus, DecodeConfig
from tf_transformer.data.examples import Examples, ExampleStream
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts
from tf_transformer.inference.predictor import Prediction, Predictor, Progress, no_progress
from tf_transformer.losses.consistency import CrossEntropy
from tf_transformer.losses.cross_entropy import TokenLosses
from tf_transformer.tasks.translation_scores import ScoreOptions
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
        fields: names of an example's texts, like ("source", "target").
        labels: the name, among those that `encode` gives, of the ids that the model learns to
            predict. `losses` counts these ids, without padding.
        metrics: names, among those that `score` gives, of the scores by which the best weights can
            be chosen. Higher is better.
        only_text: whether all ids of a batch, whose names are the fields, are pieces of text, which
            BPE-dropout may divide.
        separable: whether each field may have a vocabulary of its own.
    """

    fields: tuple[str, ...]
    labels: str
    metrics: tuple[str, ...]
    only_text: bool = False
    separable: bool = False

    def complete(self, config: Config) -> Config:
        """The configuration with the options that follow from the data.

        Training saves it as the run's configuration. By default nothing follows.

        Raises:
            InputError: for data that cannot be read.
        """
        return config

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

    def read_outputs(self, hypotheses: str, reference: str) -> TestSet:
        """Given outputs in place of inputs, and their references; by default line by line.

        Raises:
            InputError: for files that cannot be read or do not belong together.
        """
        outputs, references = read_texts(hypotheses, reference)
        return TestSet(outputs, references)

    def with_options(self, options: ScoreOptions) -> "Task":
        """This task with options of its scores; by default it has none.

        Raises:
            InputError: for options that the task does not have, or that cannot be used here.
        """
        if options != ScoreOptions():
            raise InputError(
                "--tokenize, --lowercase, --ter, --resamples, --normalize and train.bleu_tokenize "
                "are for translations."
            )
        return self

    def score_outputs(self, hypotheses: str, reference: str, baseline: str) -> dict[str, Any]:
        """Scores of given outputs; by default those of `score`.

        Raises:
            InputError: as `read_outputs` and `score`, and for a baseline.
        """
        if baseline:
            raise InputError("--baseline compares translations; this task has none.")
        return self.score(*self.read_outputs(hypotheses, reference))

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
        found = "shared" if codec.is_shared else "separate"
        if found != config.data.vocabularies:
            raise InputError(
                f"the run of train.init_from has data.vocabularies {found}, this one "
                f"{config.data.vocabularies}: its weights belong to its vocabularies. Give "
                f"--data.vocabularies {found}, or another train.init_from."
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
        objective: CrossEntropy,
        training: bool,
    ) -> TokenLosses:
        """The summed losses of a batch.

        Args:
            model: the model.
            batch: int32 tensors (B, L) by name, padded with 0 at the end.
            objective: gives the losses of labels from a model and its inputs.
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
        predictions = [found.text for found in predictor(test.inputs, progress=progress)]
        return Evaluation(predictions, self.score(predictions, test.references))

    @abstractmethod
    def score(
        self, predictions: Sequence[str], references: Sequence[str]
    ) -> dict[str, float | str]:
        """Scores by name, as JSON can hold them; floats are logged in training, too.

        Raises:
            InputError: when there is nothing to score, or the numbers of texts differ.
        """

    @abstractmethod
    def default_metric(self, references: Sequence[str]) -> str:
        """The metric by which the best weights are chosen when `train.metric` is empty.

        Args:
            references: of the validation examples that are scored.
        """

    def metadata(self, config: Config) -> dict[str, dict[str, Any]]:
        """Facts by section for the metadata of exports, as JSON can hold them; by default none."""
        return {}

    @abstractmethod
    def describe(self, scores: Mapping[str, Any]) -> str:
        """The scores in a line for people."""
