"""Language modelling: learns from lines of text with a decoder-only model, tests perplexity."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, ClassVar, cast

import keras
from keras import ops

from tf_transformer.config import Config, Corpus, DecodeConfig
from tf_transformer.data.corpora import load_examples, read_test
from tf_transformer.data.examples import ExampleStream
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts
from tf_transformer.inference.predictor import Predictor, Progress, no_progress
from tf_transformer.inference.text_generator import TextGenerator, TextScore
from tf_transformer.losses.cross_entropy import CrossEntropy, TokenLosses
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.tasks.task import Batch, Evaluation, FieldTexts, Rows, Splits, Task, TestSet
from tf_transformer.text.codec import Codec
from tf_transformer.text.special_ids import BOS_ID
from tf_transformer.text.tokenizer import Tokenizer

_CHARACTERS = 1000  # SentencePiece learns from lines of at most 4,192 bytes


class TextTask(Task):
    """A task whose examples are single texts, such as the lines of a file."""

    fields: tuple[str, ...] = ("text",)
    labels: str = "text"
    Model: ClassVar[Callable[..., keras.Model]]  # the class of the models

    def load_splits(self, config: Config) -> Splits:
        """The texts of the corpora; see `DataConfig`."""
        if not config.data.corpora:
            raise InputError(
                "this task learns from lines of text. Give data.train_file, with one text per "
                "line, and data.valid_file if you have a text for validation."
            )
        return Splits(*load_examples(config, self.fields))

    def load_test(self, config: Config, source: str, reference: str) -> TestSet:
        """All lines of the file `reference`."""
        if source or not reference:
            raise InputError(
                "give --reference, the text for the test, and no --source: the text is both the "
                "input and the reference."
            )
        (texts,) = read_texts(reference)
        return TestSet(texts, texts)

    def load_corpus(self, config: Config, corpus: Corpus) -> TestSet:
        """All texts of a corpus in any format."""
        (texts,) = read_test(corpus, self.fields, config.data)
        return TestSet(texts, texts)

    def build_model(self, config: Config, codec: Codec, dtype: str) -> keras.Model:
        model = self.Model(codec.size("text"), config.model, dtype=dtype)
        model.build()
        return model


class LanguageModeling(TextTask):
    """Predicts each token of a line from the tokens before it. Each line is a separate text.

    Attributes:
        fields: the line.
        labels: all tokens of the line, with the end token.
        metrics: empty; the validation loss chooses the best weights.
    """

    Model = LanguageModel
    summary = (
        "{lines:,} lines, {tokens:,} tokens: perplexity {perplexity:.2f} per token, "
        "{word_perplexity:.2f} per word, {bits_per_byte:.3f} bits per byte"
    )

    def complete(self, config: Config) -> Config:
        """Limits contexts to the length in training."""
        longest = min(config.decode.max_source_length, config.data.max_length)
        return replace(config, decode=replace(config.decode, max_source_length=longest))

    def defaults(self) -> dict[str, Any]:
        """No scores beside the loss: the perplexity per word follows from it."""
        return {"train.valid_score_examples": 0}

    def attended(self, examples: TestSet) -> TestSet:
        """Empty prompts, and the texts as their continuations."""
        return TestSet([""] * len(examples.inputs), examples.references)

    def train_codec(self, stream: ExampleStream, config: Config) -> Codec:
        """A codec that is learned from all text; divides long lines, which SentencePiece skips."""

        def parts() -> Iterator[str]:
            for (line,) in stream:
                for start in range(0, len(line), _CHARACTERS):
                    yield line[start : start + _CHARACTERS]

        return Codec(Tokenizer.train(parts(), **config.data.tokenizer_options))

    def encode(self, texts: FieldTexts, codec: Codec) -> Rows:
        """The ids of lines, each with the end id at its end, and the id before each line."""
        rows = codec.encode_batch("text", texts["text"])
        return {"before": [[BOS_ID]] * len(rows), "text": rows}

    def encode_examples(self, texts: FieldTexts, codec: Codec, max_length: int) -> Rows:
        """The ids of lines; divides longer lines into windows, so each token is learned once."""
        windows = [
            ([row[start - 1] if start else BOS_ID], row[start : start + max_length])
            for row in self.encode(texts, codec)["text"]
            for start in range(0, len(row), max_length)
        ]
        before, rows = map(list, zip(*windows, strict=True))
        return {"before": before, "text": rows}

    def losses(
        self, model: keras.Model, batch: Batch, loss: CrossEntropy, training: bool
    ) -> TokenLosses:
        labels = batch["text"]
        inputs = ops.concatenate([batch["before"], labels[:, :-1]], axis=1)
        return loss.losses(model, inputs, labels, training)

    def predictor(self, model: keras.Model, codec: Codec, decode: DecodeConfig) -> TextGenerator:
        return TextGenerator(model, codec, decode)

    def evaluate(
        self, predictor: Predictor, test: TestSet, progress: Progress = no_progress
    ) -> Evaluation:
        """Perplexities of all lines with text.

        The tokenizer normalizes text; for example, most tokenizers fold runs of spaces. Words and
        bytes are counted in the normalized text, which the model scores. The predictions are the
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


LANGUAGE_MODELING = LanguageModeling()


def perplexities(texts: Sequence[str], scores: Sequence[TextScore]) -> dict[str, Any]:
    """The perplexity exp(-ln p / N) of texts, where N counts tokens, words or bytes.

    The texts are lines that the tokenizer has normalized. The end of a line is a token. It also
    counts as a word, and as a byte (the newline). A score with 0 tokens is that of a blank line. No
    text is an `InputError`.

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
    """Exp of the nats per unit, at most the largest float, because JSON has no infinity."""
    return math.exp(min(nats, 709.0))
