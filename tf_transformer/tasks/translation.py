"""Translation: pairs of sentences, the Transformer, BLEU."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import keras
from keras import KerasTensor

from tf_transformer.config import Config, Corpus, DataConfig, DecodeConfig
from tf_transformer.data import corpora
from tf_transformer.data.examples import Examples
from tf_transformer.data.generated import generated_splits
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts, split_paths
from tf_transformer.inference.predictor import Predictor, Progress, no_progress
from tf_transformer.inference.translator import Translator, build_model
from tf_transformer.losses.consistency import CrossEntropy
from tf_transformer.losses.cross_entropy import TokenLosses
from tf_transformer.tasks.task import Evaluation, Splits, Task, TestSet
from tf_transformer.tasks.translation_scores import (
    ScoreOptions,
    bleu_of,
    score_translations,
)
from tf_transformer.text.codec import Codec
from tf_transformer.text.normalization import is_blank
from tf_transformer.text.sequences import shift_right


class Translation(Task):
    """Translates sentences: the task of the paper.

    Attributes:
        fields: source and target sentence.
        labels: the target is predicted.
        metrics: BLEU and chrF, 0 to 100; percentage of exact matches.
        options: how translations are scored.
    """

    fields: tuple[str, ...] = ("source", "target")
    labels: str = "target"
    metrics: tuple[str, ...] = ("bleu", "chrf", "exact_match")
    only_text: bool = True
    separable: bool = True
    options: ScoreOptions = ScoreOptions()

    def complete(self, config: Config) -> Config:
        """With the languages of a TFDS corpus; all corpora must go in one direction."""
        return replace(config, data=corpora.with_languages(config.data))

    def load_splits(self, config: Config) -> Splits:
        """The pairs of the corpora; see `DataConfig`."""
        if config.data.train_file:
            raise InputError(
                "translation learns from pairs: give data.train_source and data.train_target, or "
                "data.corpora, instead of data.train_file."
            )
        return Splits(*corpora.load_examples(config, self.fields))

    def load_test(self, config: Config, source: str, reference: str) -> TestSet:
        """Files with all their lines, or the test pairs of the generated corpus.

        `reference` may name several files, with commas between them.
        """
        if source and reference:
            texts, references, *more = read_texts(source, *split_paths(reference))
            return TestSet(texts, references, more)
        if source or reference or not corpora.is_generated(config.data):
            raise InputError(
                "give --source and --reference, the test set and its translation; or --corpus."
            )
        return self.test_set(generated_splits(config.data)[2])

    def load_corpus(self, config: Config, corpus: Corpus) -> TestSet:
        source, target = corpora.read_test(corpus, self.fields, config.data)
        return TestSet(source, target)

    def test_set(self, examples: Examples) -> TestSet:
        """The pairs with a target: a translation without a reference has no score."""
        pairs = zip(examples["source"], examples["target"], strict=True)
        rows = [pair for pair in pairs if not is_blank(pair[1])]
        return TestSet([source for source, _ in rows], [target for _, target in rows])

    def encode(
        self, texts: Mapping[str, Sequence[str]], codec: Codec
    ) -> dict[str, list[list[int]]]:
        """Both sides of every pair end with the end-of-sentence id."""
        return {field: codec.encode_batch(field, texts[field]) for field in self.fields}

    def build_model(self, config: Config, codec: Codec, dtype: str) -> keras.Model:
        return build_model(config, codec, dtype)

    def losses(
        self,
        model: keras.Model,
        batch: Mapping[str, KerasTensor],
        objective: CrossEntropy,
        training: bool,
    ) -> TokenLosses:
        """Label-smoothed cross-entropy of the target tokens (paper section 5.4)."""
        source, target = batch["source"], batch["target"]
        return objective.losses(model, (source, shift_right(target)), target, training)

    def predictor(self, model: keras.Model, codec: Codec, decode: DecodeConfig) -> Translator:
        return Translator(model, codec, decode)

    def with_options(self, options: ScoreOptions) -> Self:
        """This task with other options of its scores.

        Raises:
            InputError: for a separator of labels, or a tokenizer that cannot be used here.
        """
        if options.label_separator:
            raise InputError("--label_separator is for classification.")
        bleu_of(options)
        task = copy.copy(self)
        task.options = options
        return task

    def evaluate(
        self, predictor: Predictor, test: TestSet, progress: Progress = no_progress
    ) -> Evaluation:
        """Translates a test set and scores it against all its references."""
        predictions = [best.text for best in predictor(test.inputs, progress=progress)]
        return Evaluation(
            predictions, self.score(predictions, test.references, *test.more_references)
        )

    def score(
        self,
        predictions: Sequence[str],
        references: Sequence[str],
        *more_references: Sequence[str],
    ) -> dict[str, Any]:
        """Scores detokenised translations against one reference each, or against several.

        BLEU is cased, with sacreBLEU's own 13a tokenisation, unless `options` differ; its signature
        states them. See `score_translations`.

        Example:
            >>> TRANSLATION.score(["Ein Haus ."], ["Ein Haus ."])["exact_match"]
            100.0
        """
        return score_translations(predictions, [references, *more_references], self.options)

    def score_outputs(self, hypotheses: str, reference: str, baseline: str) -> dict[str, Any]:
        """Scores of a file of translations; see `score_translations`.

        Args:
            hypotheses: file of translations.
            reference: files of references, with commas between them.
            baseline: file of another system's translations; empty: none.
        """
        paths = [hypotheses, *split_paths(reference), *filter(None, [baseline])]
        texts = read_texts(*paths)
        given = texts.pop() if baseline else None
        return score_translations(texts[0], texts[1:], self.options, given)

    def default_metric(self, references: Sequence[str]) -> str:
        """BLEU, or chrF when most references have fewer than four words: BLEU is 0 for these.

        A tokenizer for text without spaces finds the words.

        Example:
            >>> TRANSLATION.default_metric(["einundzwanzig", "zwölfte Juni"])
            'chrf'
        """
        divides = self.options.tokenize not in ("13a", "intl", "none")
        tokenize = bleu_of(self.options).tokenizer if divides else str
        short = sum(len(tokenize(reference).split()) < 4 for reference in references)
        return "chrf" if 2 * short > len(references) else "bleu"

    def metadata(self, config: Config) -> dict[str, dict[str, Any]]:
        """The languages, and the recipe of BLEU."""
        options = ScoreOptions(config.train.bleu_tokenize)
        signature = self.with_options(options).score(["."], ["."])["signature"]
        return {"languages": languages(config.data), "training": {"bleu_signature": signature}}

    def describe(self, scores: Mapping[str, Any]) -> str:
        return (
            "{sentences:,} sentences: exact match {exact_match:.1f}%, chrF {chrf:.2f}, "
            "BLEU {bleu:.2f} ({signature})"
        ).format(**scores)


TRANSLATION = Translation()


def languages(data: DataConfig) -> dict[str, str | None]:
    """The languages of source and target, or None if the configuration does not name them."""
    return dict(zip(("source", "target"), corpora.languages(data), strict=True))
