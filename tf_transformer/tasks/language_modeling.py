"""Language modelling: lines of text, a decoder-only model, perplexity."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, cast

import keras
from keras import KerasTensor, ops

from tf_transformer.config import Config, Corpus, DecodeConfig
from tf_transformer.data.corpora import load_examples, read_test
from tf_transformer.data.examples import Examples, ExampleStream
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts
from tf_transformer.inference.predictor import Predictor, Progress, no_progress
from tf_transformer.inference.text_generator import TextGenerator, TextScore, build_language_model
from tf_transformer.losses.consistency import CrossEntropy
from tf_transformer.losses.cross_entropy import TokenLosses
from tf_transformer.task_options import LanguageModelingOptions
from tf_transformer.tasks.task import Evaluation, Splits, Task, TestSet
from tf_transformer.text.codec import Codec
from tf_transformer.text.special_ids import BOS_ID
from tf_transformer.text.tokenizer import Tokenizer

_CHARACTERS = 1000  # SentencePiece learns from lines of at most 4,192 bytes


class LanguageModeling(Task):
    """Predicts each token of a line from those before it. Each line is a text of its own.

    Attributes:
        fields: the line.
        labels: all its tokens, with the end token.
        metrics: none: the validation loss chooses the best weights.
    """

    Options = LanguageModelingOptions
    fields: tuple[str, ...] = ("text",)
    labels: str = "text"

    def complete(self, config: Config) -> Config:
        """Contexts are at most as long as in training, and validation is the loss alone."""
        longest = min(config.decode.max_source_length, config.data.max_length)
        return replace(
            config,
            train=replace(config.train, valid_score_examples=0),
            decode=replace(config.decode, max_source_length=longest),
        )

    def load_splits(self, config: Config) -> Splits:
        """The texts of `data.train_file`, or of the corpora; see `DataConfig`."""
        if not (config.data.train_file or config.data.corpora):
            raise InputError(
                "a language model learns from one text: give data.train_file, and data.valid_file "
                "if there is a text for validation."
            )
        return Splits(*load_examples(config, self.fields))

    def load_test(self, config: Config, source: str, reference: str) -> TestSet:
        """A file with all its lines."""
        if source or not reference:
            raise InputError("give --reference, the text to test on; there is no --source.")
        (texts,) = read_texts(reference)
        return TestSet(texts, texts)

    def load_corpus(self, config: Config, corpus: Corpus) -> TestSet:
        (texts,) = read_test(corpus, self.fields, config.data)
        return TestSet(texts, texts)

    def test_set(self, examples: Examples) -> TestSet:
        return TestSet(examples["text"], examples["text"])

    def attended(self, examples: TestSet) -> TestSet:
        return TestSet([""] * len(examples.inputs), examples.references)

    def train_codec(self, stream: ExampleStream, config: Config) -> Codec:
        """Learned from all text: long lines are divided, because SentencePiece skips them."""

        def parts() -> Iterator[str]:
            for (line,) in stream:
                for start in range(0, len(line), _CHARACTERS):
                    yield line[start : start + _CHARACTERS]

        return Codec(Tokenizer.train(parts(), **config.data.tokenizer_options))

    def encode(
        self, texts: Mapping[str, Sequence[str]], codec: Codec
    ) -> dict[str, list[list[int]]]:
        """The ids of lines, each ending with the end id, and the id that comes before them."""
        rows = codec.encode_batch("text", texts["text"])
        return {"before": [[BOS_ID]] * len(rows), "text": rows}

    def encode_examples(
        self, texts: Mapping[str, Sequence[str]], codec: Codec, max_length: int
    ) -> dict[str, list[list[int]]]:
        """`encode`, with longer lines in windows one after another: every token is learned once."""
        windows = [
            ([row[start - 1] if start else BOS_ID], row[start : start + max_length])
            for row in self.encode(texts, codec)["text"]
            for start in range(0, len(row), max_length)
        ]
        before, rows = map(list, zip(*windows, strict=True))
        return {"before": before, "text": rows}

    def build_model(self, config: Config, codec: Codec, dtype: str) -> keras.Model:
        return build_language_model(config, codec, dtype)

    def losses(
        self,
        model: keras.Model,
        batch: Mapping[str, KerasTensor],
        loss: CrossEntropy,
        training: bool,
    ) -> TokenLosses:
        """Cross-entropy of every token, given those before it."""
        labels = batch["text"]
        inputs = ops.concatenate([batch["before"], labels[:, :-1]], axis=1)
        return loss.losses(model, inputs, labels, training)

    def predictor(self, model: keras.Model, codec: Codec, decode: DecodeConfig) -> TextGenerator:
        return TextGenerator(model, codec, decode)

    def evaluate(
        self, predictor: Predictor, test: TestSet, progress: Progress = no_progress
    ) -> Evaluation:
        """Perplexities of the lines that are not blank, as the model reads them.

        The tokenizer normalises text: most tokenizers fold runs of spaces, for example. Words and
        bytes are those of the normalised text, which the model scores. The predictions are the
        log-probability and the number of tokens of each line.
        """
        predictor = cast(TextGenerator, predictor)
        tokenizer = predictor.codec["text"]
        read = [tokenizer.decode(row) for row in tokenizer.encode_batch(test.references)]
        has_text = [bool(text.strip()) for text in read]
        of_texts = iter(predictor.score_texts(list(compress(test.references, has_text)), progress))
        scores = [next(of_texts) if scored else TextScore(0.0, 0) for scored in has_text]
        lines = [f"{score.log_probability:.6f}\t{score.tokens}" for score in scores]
        return Evaluation(lines, perplexities(list(compress(read, has_text)), scores))

    def describe(self, scores: Mapping[str, Any]) -> str:
        return (
            "{lines:,} lines, {tokens:,} tokens: perplexity {perplexity:.2f} per token, "
            "{word_perplexity:.2f} per word, {bits_per_byte:.3f} bits per byte"
        ).format(**scores)


LANGUAGE_MODELING = LanguageModeling()


def perplexities(texts: Sequence[str], scores: Sequence[TextScore]) -> dict[str, Any]:
    """exp(-ln p / N) of texts, with N the number of tokens, of words or of bytes.

    The end of a line is a token, and counts as a word and as a byte: its newline.

    Args:
        texts: lines that are not blank, as the tokenizer normalises them.
        scores: theirs; others with 0 tokens do not count.

    Raises:
        InputError: when there is no text.

    Example:
        >>> found = perplexities(["a bc"], [TextScore(-6.0 * math.log(2.0), 4)])
        >>> found["tokens"], found["words"], found["bytes"], round(found["word_perplexity"], 6)
        (4, 3, 5, 4.0)
    """
    if not texts:
        raise InputError("expected at least one line with text to score, got none.")
    nats = -math.fsum(score.log_probability for score in scores)
    counts = {
        "tokens": sum(score.tokens for score in scores),
        "words": sum(len(text.split()) + 1 for text in texts),
        "bytes": sum(len(text.encode()) + 1 for text in texts),
    }
    return {
        "perplexity": perplexity(nats / counts["tokens"]),
        "word_perplexity": perplexity(nats / counts["words"]),
        "byte_perplexity": perplexity(nats / counts["bytes"]),
        "bits_per_byte": nats / counts["bytes"] / math.log(2.0),
        **counts,
        "lines": len(texts),
        "blank_lines": len(scores) - len(texts),
    }


def perplexity(nats: float) -> float:
    """The perplexity of nats per unit, at most the largest float: JSON has no infinity."""
    return math.exp(min(nats, 709.0))
