"""This project's systems: writes their SavedModels, and runs `Translator` in Python."""

from dataclasses import replace

import keras
import tensorflow as tf

from benchmarks.decode.expected import read_expected, saved_model_path, write_expected
from benchmarks.decode.sentences import generated_lines, sentences_of
from benchmarks.decode.workload import LENGTH_PENALTY, SOURCE_TOKENS, Cell, check_lengths
from benchmarks.harness.tasks import Setting, Task
from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.inference.search import Search
from tf_transformer.inference.translator import Translator
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import Tokenizer


def build(
    setting: Setting,
    cells: list[Cell],
    dtype: str = "float32",
    jit_compile: bool = False,
    parallel_batches: int = 1,
    export: bool = True,
) -> None:
    """Writes a SavedModel and its expected scores for each beam and each length.

    Args:
        setting: the shape and its folders.
        cells: what will be measured.
        dtype: of the weights.
        jit_compile: export with XLA.
        parallel_batches: parts of a batch that the export searches at a time.
        export: whether a SavedModel is needed.
    """
    sentences = sentences_for(setting, max(cell.batch for cell in cells))
    for cell in sorted({cell._replace(batch=len(sentences)) for cell in cells}):
        translator = translator_for(setting, cell, dtype)
        scores = _checked_scores(translator, sentences, cell.target_tokens)
        write_expected(setting, cell, sentences, scores)
        if export:
            search = replace(translator.config, parallel_batches=parallel_batches)
            exported = Translator(translator.model, translator.codec, search)
            exported.save(saved_model_path(setting, cell), jit_compile=jit_compile)


def task(setting: Setting, cell: Cell) -> Task:
    """Calls `Translator` with a list of strings."""
    sentences, check = read_expected(setting, cell)
    translator = translator_for(setting, cell)
    return Task(
        cell.batch * cell.target_tokens,
        lambda: translator(sentences),
        lambda translations: check([translation.score for translation in translations]),
    )


def translator_for(setting: Setting, cell: Cell, dtype: str = "float32") -> Translator:
    """Random weights, the same in every process; translations of exactly `target_tokens` tokens."""
    keras.utils.set_random_seed(1)
    sizes = setting.shape._asdict()
    size = sizes.pop("vocabulary_size")
    model = Transformer(size, ModelConfig(**sizes, **setting.shape.opus_options))
    model.build()
    return Translator(model, Codec(tokenizer_for(setting)), search_for(cell)).with_dtype(dtype)


def search_for(cell: Cell) -> DecodeConfig:
    """A search for predictions of exactly `target_tokens` tokens."""
    return DecodeConfig(
        beam_size=cell.beam,
        length_penalty=LENGTH_PENALTY,
        min_length=cell.target_tokens - 1,  # and the end token
        max_length=cell.target_tokens,
        batch_size=cell.batch,
        batch_tokens=cell.batch * SOURCE_TOKENS,
    )


def tokenizer_for(setting: Setting) -> Tokenizer:
    """The tokenizer of the shape, trained by the first system that needs it."""
    path = setting.shared / "tokenizer.model"
    size = setting.shape.vocabulary_size
    if not path.exists():
        tokenizer = Tokenizer.train(generated_lines(size), size)
        if tokenizer.vocabulary_size != size:
            raise RuntimeError(f"expected {size} pieces, got {tokenizer.vocabulary_size}.")
        tokenizer.save(path)
    return Tokenizer.load(path)


def sentences_for(setting: Setting, count: int) -> list[str]:
    """Sentences of `SOURCE_TOKENS` tokens."""
    lines = generated_lines(setting.shape.vocabulary_size)
    return sentences_of(SOURCE_TOKENS, lines, tokenizer_for(setting).encode, count)


def _checked_scores(translator: Translator, sentences: list[str], tokens: int) -> list[float]:
    """Scores of the translations, after a check that all have `tokens` tokens."""
    source = tf.constant([translator.tokenizer.encode(text) for text in sentences], tf.int32)
    found = tf.function(Search(translator.model, translator.config).__call__)(source)
    check_lengths(found.lengths[:, 0].numpy(), len(sentences), tokens)
    return found.scores[:, 0].numpy().tolist()
