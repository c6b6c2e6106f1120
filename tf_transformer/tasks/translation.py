"""Translation: learns from pairs of sentences, tests BLEU."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, cast

import keras

from tf_transformer.config import Config, Corpus, DecodeConfig, TaskOptions
from tf_transformer.config.task import TranslationOptions
from tf_transformer.data import corpora
from tf_transformer.data.corpora import TextSize
from tf_transformer.data.examples import Examples
from tf_transformer.data.readers.generated import generated_splits
from tf_transformer.data.word_links import rows_of_links
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts, split_paths
from tf_transformer.inference.translator import Translator
from tf_transformer.tasks.encoder_decoder import EncoderDecoderTask
from tf_transformer.tasks.metrics import Metric, References, Scores, Strings
from tf_transformer.tasks.task import FieldTexts, Rows, Splits, TestSet
from tf_transformer.tasks.translation_scores import Bleu, ChrF, ExactMatch, Ter
from tf_transformer.text.codec import Codec
from tf_transformer.text.normalization import is_blank
from tf_transformer.text.word_alignment import LINKS


class Translation(EncoderDecoderTask):
    """Translates sentences, the task of the paper.

    Attributes:
        fields: source and target sentence.
        labels: the target, which the model predicts.
        metrics: BLEU and chrF, 0 to 100; percentage of exact matches.
        metrics_on_request: the translation edit rate, which takes seconds.
    """

    Options = TranslationOptions
    fields: tuple[str, ...] = ("source", "target")
    labels: str = "target"
    only_text: bool = True
    separable: bool = True
    summary = (
        "{sentences:,} sentences: exact match {exact_match:.1f}%, chrF {chrf:.2f}, "
        "BLEU {bleu:.2f} ({signature})"
    )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return Bleu(self.options), ChrF(self.options), ExactMatch(self.options)

    @property
    def metrics_on_request(self) -> tuple[Metric, ...]:
        return (Ter(self.options),)

    def complete(self, config: Config) -> Config:
        """The configuration with the languages of a TFDS corpus."""
        return replace(config, data=corpora.with_languages(config.data))

    def text_size(self, config: Config) -> TextSize | None:
        """The size of the corpora; None for the generated corpus alone, and for GRU models."""
        if config.model.architecture != "transformer":
            return None
        if corpora.is_generated(config.data):
            return None
        return corpora.training_size(config.data, self.fields)

    def load_splits(self, config: Config) -> Splits:
        """The pairs of the corpora; see `DataConfig`."""
        return Splits(*corpora.load_examples(config, self.fields))

    def load_test(self, config: Config, source: str, reference: str) -> TestSet:
        """All lines of the files, or the test pairs of the generated corpus.

        `reference` may name several files, with commas between the paths.
        """
        if source and reference:
            texts, references, *more = read_texts(source, *split_paths(reference))
            corpora.require_tags(texts, config)
            return TestSet(texts, references, more)
        if source or reference or not corpora.is_generated(config.data):
            raise InputError(
                "give --source and --reference, the test set and its translation, or --corpus."
            )
        return self.test_set(generated_splits(config.data)[2])

    def load_corpus(self, config: Config, corpus: Corpus) -> TestSet:
        """All pairs of a corpus in any format."""
        source, target = corpora.read_test(corpus, self.fields, config.data)
        corpora.require_tags(source, config)
        return TestSet(source, target)

    def test_set(self, examples: Examples) -> TestSet:
        """The pairs with a target, because a translation without a reference has no score."""
        pairs = zip(examples["source"], examples["target"], strict=True)
        rows = [pair for pair in pairs if not is_blank(pair[1])]
        return TestSet([source for source, _ in rows], [target for _, target in rows])

    def encode(self, texts: FieldTexts, codec: Codec) -> Rows:
        """The ids of both sides of each pair, with the end-of-sentence id at the end.

        With a third text, `LINKS`, a batch also has the links of their pieces.
        """
        rows = {field: codec.encode_batch(field, texts[field]) for field in self.fields}
        if LINKS in texts:
            rows[LINKS] = rows_of_links(texts[LINKS], texts["source"], texts["target"], codec)
        return rows

    def predictor(self, model: keras.Model, codec: Codec, decode: DecodeConfig) -> Translator:
        own = self.options
        return Translator(model, codec, decode, own.copy_without_letters, own.lower_capitals)

    def with_options(self, options: TaskOptions) -> Self:
        bleu = Bleu(cast(TranslationOptions, options))
        if bleu.options.bleu_tokenize != "13a":  # which needs no package and no download
            bleu.scorer()
        return super().with_options(options)

    def read_outputs(self, hypotheses: str, reference: str) -> tuple[list[str], list[list[str]]]:
        """Reads translations, and a list of references from each file in `reference`.

        `reference` has commas between the paths.
        """
        outputs, *references = read_texts(hypotheses, *split_paths(reference))
        return outputs, references

    def describe(self, scores: Mapping[str, Any]) -> str:
        line = super().describe(scores)
        if interval := scores.get("bleu_interval"):
            low, high = interval
            line += f"; 95 % confidence interval of BLEU {low:.2f} to {high:.2f}"
        return line

    def compare(self, predictions: Strings, references: References, baseline: Strings) -> Scores:
        return Bleu(self.options).compare(predictions, references, baseline)

    def default_metric(self, references: Sequence[str]) -> str:
        """bleu, or chrf when most references have fewer than four words and so BLEU 0.

        For text without spaces, the tokenizer of BLEU finds the words.

        Example:
            >>> TRANSLATION.default_metric(["einundzwanzig", "zwölfte Juni"])
            'chrf'
        """
        divides = self.options.bleu_tokenize not in ("13a", "intl", "none")
        tokenize = Bleu(self.options).scorer().tokenizer if divides else str
        short = sum(len(tokenize(reference).split()) < 4 for reference in references)
        return "chrf" if 2 * short > len(references) else "bleu"

    def metadata(self, config: Config) -> dict[str, dict[str, Any]]:
        bleu = Bleu(cast(TranslationOptions, config.task))
        signature = bleu.score([], ["."], [["."]])["signature"]
        names = dict(zip(self.fields, corpora.run_languages(config), strict=True))
        return {"languages": names, "training": {"bleu_signature": signature}}


TRANSLATION = Translation()
