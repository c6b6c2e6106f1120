"""Translation: pairs of sentences, the Transformer, BLEU."""

import pathlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, cast

import keras
from keras import KerasTensor

from tf_transformer.config import Config, DataConfig, DecodeConfig, TaskOptions
from tf_transformer.data.examples import Examples, ExampleStream
from tf_transformer.data.generated import generate
from tf_transformer.data.readers import (
    check_pairs,
    read_files,
    stream_files,
    stream_tfds,
    tfds_languages,
)
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts, split_paths
from tf_transformer.inference.translator import Translator, build_model
from tf_transformer.losses.consistency import CrossEntropy
from tf_transformer.losses.cross_entropy import TokenLosses
from tf_transformer.task_options import TranslationOptions
from tf_transformer.tasks.metrics import Metric, References
from tf_transformer.tasks.task import Splits, Task, TestSet
from tf_transformer.tasks.translation_scores import Bleu, ChrF, ExactMatch, Ter
from tf_transformer.text.normalization import is_blank
from tf_transformer.text.sequences import shift_right
from tf_transformer.text.tokenizer import Tokenizer

_COMPRESSED = re.compile(r"\.(gz|bz2|xz|zst)$")
TEST_PAIRS = 1000  # of the generated corpus; disjoint from training and validation


class Translation(Task):
    """Translates sentences: the task of the paper.

    Attributes:
        fields: source and target sentence.
        labels: the target is predicted.
        metrics: BLEU and chrF, 0 to 100; percentage of exact matches.
        metrics_on_request: the translation edit rate, which takes seconds.
    """

    Options = TranslationOptions
    fields: tuple[str, ...] = ("source", "target")
    labels: str = "target"
    only_text: bool = True

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return Bleu(self.options), ChrF(self.options), ExactMatch(self.options)

    @property
    def metrics_on_request(self) -> tuple[Metric, ...]:
        return (Ter(self.options),)

    def complete(self, config: Config) -> Config:
        """With the languages of a TFDS corpus."""
        data = config.data
        if not data.tfds:
            return config
        pair = tfds_languages(data.tfds, data.tfds_reverse, data.tfds_dir)
        source, target = pair or (data.source_language, data.target_language)
        return replace(config, data=replace(data, source_language=source, target_language=target))

    def load_splits(self, config: Config) -> Splits:
        """Pairs from two files, from TFDS, or generated; see `DataConfig`."""
        data = config.data
        if data.train_file:
            raise InputError(
                "translation learns from pairs: give data.train_source and data.train_target "
                "instead of data.train_file."
            )
        if data.train_source:
            check_pairs(data)
            train = stream_files(data.train_source, data.train_target)
        elif data.tfds:
            train = _tfds_split(data, "train")
        else:
            generated, valid, _ = generated_splits(data)
            return Splits(generated.stream(), valid)
        if data.valid_source:
            return Splits(train, read_files(data.valid_source, data.valid_target))
        if data.tfds_valid_split:
            return Splits(train, _tfds_split(data, data.tfds_valid_split).read())
        return Splits(*train.hold_out(data.held_out, config.train.seed))

    def load_test(self, config: Config, source: str, reference: str) -> TestSet:
        """Files with all their lines, or the test pairs of the generated corpus.

        `reference` may name several files, with commas between them.
        """
        if source and reference:
            texts, references, *more = read_texts(source, *split_paths(reference))
            return TestSet(texts, references, more)
        if source or reference or config.data.train_source or config.data.tfds:
            raise InputError("give --source and --reference, the test set and its translation.")
        return self.test_set(generated_splits(config.data)[2])

    def test_set(self, examples: Examples) -> TestSet:
        """The pairs with a target: a translation without a reference has no score."""
        pairs = zip(examples["source"], examples["target"], strict=True)
        rows = [pair for pair in pairs if not is_blank(pair[1])]
        return TestSet([source for source, _ in rows], [target for _, target in rows])

    def encode(
        self, texts: Mapping[str, Sequence[str]], tokenizer: Tokenizer
    ) -> dict[str, list[list[int]]]:
        """Both sides of every pair end with the end-of-sentence id."""
        return {name: tokenizer.encode_batch(texts[name]) for name in self.fields}

    def build_model(self, config: Config, vocabulary_size: int, dtype: str) -> keras.Model:
        return build_model(config, vocabulary_size, dtype)

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

    def predictor(
        self, model: keras.Model, tokenizer: Tokenizer, decode: DecodeConfig
    ) -> Translator:
        return Translator(model, tokenizer, decode, self.options.copy_without_letters)

    def with_options(self, options: TaskOptions) -> Self:
        """This task with options.

        Raises:
            InputError: for a tokenizer that cannot be used here.
        """
        Bleu(cast(TranslationOptions, options)).scorer()
        return super().with_options(options)

    def read_outputs(self, hypotheses: str, reference: str) -> tuple[list[str], list[list[str]]]:
        """Translations, and lists of references from files with commas between their names."""
        outputs, *references = read_texts(hypotheses, *split_paths(reference))
        return outputs, references

    def compare(
        self, predictions: Sequence[str], references: References, baseline: Sequence[str]
    ) -> dict[str, Any]:
        """The BLEU of a baseline, and whether the difference is significant."""
        return Bleu(self.options).compare(predictions, references, baseline)

    def default_metric(self, references: Sequence[str]) -> str:
        """BLEU, or chrF when most references have fewer than four words: BLEU is 0 for these.

        A tokenizer for text without spaces finds the words.

        Example:
            >>> TRANSLATION.default_metric(["einundzwanzig", "zwölfte Juni"])
            'chrf'
        """
        divides = self.options.bleu_tokenize not in ("13a", "intl", "none")
        tokenize = Bleu(self.options).scorer().tokenizer if divides else str
        short = sum(len(tokenize(reference).split()) < 4 for reference in references)
        return "chrf" if 2 * short > len(references) else "bleu"

    def metadata(self, config: Config) -> dict[str, dict[str, Any]]:
        """The languages, and the recipe of BLEU."""
        bleu = Bleu(cast(TranslationOptions, config.task))
        signature = bleu.score([], ["."], [["."]])["signature"]
        return {"languages": languages(config.data), "training": {"bleu_signature": signature}}

    def describe(self, scores: Mapping[str, Any]) -> str:
        return (
            "{sentences:,} sentences: exact match {exact_match:.1f}%, chrF {chrf:.2f}, "
            "BLEU {bleu:.2f} ({signature})"
        ).format(**scores)


TRANSLATION = Translation()


def generated_splits(config: DataConfig) -> tuple[Examples, Examples, Examples]:
    """The generated corpus as (train, valid, test), disjoint in meaning."""
    held_out = min(config.held_out, TEST_PAIRS)
    total = config.generated_pairs + held_out + TEST_PAIRS
    # Always the same seed: evaluate.py makes the corpus again and needs the same test pairs.
    corpus = generate(total, config.source_language, config.target_language, seed=0)
    return (
        corpus.take(range(TEST_PAIRS + held_out, total)),
        corpus.take(range(TEST_PAIRS, TEST_PAIRS + held_out)),
        corpus.take(range(TEST_PAIRS)),
    )


def languages(data: DataConfig) -> dict[str, str | None]:
    """The languages of source and target, or None if the configuration does not name them.

    TFDS names them in the corpus (`wmt14_translate/de-en`), files often by their ending (`a.en`).
    Training stores those of a corpus whose name does not have them.
    """
    if data.train_source:
        found = [_ending(data.train_source), _ending(data.train_target)]
    elif data.tfds:
        pair = data.tfds.partition("/")[2].partition(":")[0].split("-")
        stored = [data.source_language, data.target_language]
        found = [None, None]
        if len(pair) == 2:
            found = list(reversed(pair) if data.tfds_reverse else pair)
        elif stored != [DataConfig.source_language, DataConfig.target_language]:
            found = list(stored)  # an earlier version stored the defaults
    else:
        found = [data.source_language, data.target_language]
    return dict(zip(("source", "target"), found, strict=True))


def _ending(file: str) -> str | None:
    ending = pathlib.Path(_COMPRESSED.sub("", file)).suffix[1:]
    return ending if len(ending) == 2 and ending.isalpha() else None


def _tfds_split(config: DataConfig, split: str) -> ExampleStream:
    return stream_tfds(config.tfds, split, config.tfds_reverse, config.tfds_dir)
