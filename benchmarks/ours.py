"""This project's contenders: makes their SavedModels, and runs the Python interface."""

import keras
import tensorflow as tf
from expected import read_expected, saved_model_path, write_expected
from sentences import made_up_lines, sentences_of
from workload import LENGTH_PENALTY, TOKENS, Cell, Setting, Task, check_lengths

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.models.transformer import Transformer
from tf_transformer.search import Search
from tf_transformer.tokenizer import Tokenizer
from tf_transformer.translator import Translator


def build(
    setting: Setting,
    cells: list[Cell],
    dtype: str = "float32",
    jit_compile: bool = False,
    export: bool = True,
) -> None:
    """Writes, for each beam, a SavedModel and the scores that every call must give.

    Args:
        setting: the shape and its folders.
        cells: which beams and batches will be measured.
        dtype: of the weights.
        jit_compile: export with XLA.
        export: whether a SavedModel is needed.
    """
    sentences = _sentences(setting, max(cell.batch for cell in cells))
    for beam in sorted({cell.beam for cell in cells}):
        translator = _translator(setting, Cell(beam, len(sentences)), dtype)
        scores = _checked_scores(translator, sentences)
        write_expected(setting, beam, sentences, scores)
        if export:
            translator.save(saved_model_path(setting, beam), jit_compile=jit_compile)


def task(setting: Setting, cell: Cell) -> Task:
    """Calls `Translator` with a list of strings."""
    sentences, check = read_expected(setting, cell)
    translator = _translator(setting, cell)
    return Task(
        cell.batch,
        lambda: translator(sentences),
        lambda translations: check([translation.score for translation in translations]),
    )


def _translator(setting: Setting, cell: Cell, dtype: str = "float32") -> Translator:
    """Random weights, the same in every process; exactly `TOKENS` tokens a translation."""
    keras.utils.set_random_seed(1)
    sizes = setting.shape._asdict()
    model = Transformer(sizes.pop("vocabulary_size"), ModelConfig(**sizes))
    model.build()
    config = DecodeConfig(
        beam_size=cell.beam,
        length_penalty=LENGTH_PENALTY,
        min_length=TOKENS,
        max_length=TOKENS,
        batch_size=cell.batch,
        batch_tokens=cell.batch * TOKENS,
    )
    return Translator(model, _tokenizer(setting), config).with_dtype(dtype)


def _tokenizer(setting: Setting) -> Tokenizer:
    """The shape's tokenizer, trained by the first contender that asks for it."""
    path = setting.shared / "tokenizer.model"
    size = setting.shape.vocabulary_size
    if not path.exists():
        tokenizer = Tokenizer.train(made_up_lines(size), size)
        if tokenizer.vocabulary_size != size:
            raise RuntimeError(f"expected {size} pieces, got {tokenizer.vocabulary_size}.")
        tokenizer.save(path)
    return Tokenizer.load(path)


def _sentences(setting: Setting, count: int) -> list[str]:
    lines = made_up_lines(setting.shape.vocabulary_size)
    return sentences_of(TOKENS, lines, _tokenizer(setting).encode, count)


def _checked_scores(translator: Translator, sentences: list[str]) -> list[float]:
    """Scores of the translations, once all are seen to have `TOKENS` tokens."""
    source = tf.constant([translator.tokenizer.encode(text) for text in sentences], tf.int32)
    found = tf.function(Search(translator.model, translator.config).__call__)(source)
    check_lengths(found.lengths[:, 0].numpy(), len(sentences))
    return found.scores[:, 0].numpy().tolist()
