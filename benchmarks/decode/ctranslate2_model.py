"""CTranslate2: a post-norm Transformer of the same sizes with random weights, tokens in and out."""

import functools
import threading

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec

from benchmarks.decode.workload import LENGTH_PENALTY, Cell, check_lengths, random_sources
from benchmarks.harness.shapes import FIRST_FREE_ID, THREADS, Shape
from benchmarks.harness.tasks import Setting, Task

_FOLDER = "ctranslate2"  # shared: quantization and threads are chosen when it is loaded
_SPECIAL = ("<blank>", "<s>", "</s>", "<unk>")
_POSITIONS = 512
_RNG = np.random.default_rng(1)


def build(setting: Setting, cells: list[Cell]) -> None:
    """Writes the model of a shape, which all CTranslate2 systems load."""
    folder = setting.shared / _FOLDER
    if folder.exists():
        return
    spec = _random_spec(setting.shape)
    spec.register_source_vocabulary(_vocabulary(setting.shape))
    spec.register_target_vocabulary(_vocabulary(setting.shape))
    spec.validate()
    spec.optimize(quantization=None)
    folder.mkdir(parents=True)
    spec.save(str(folder))


def task(setting: Setting, cell: Cell, compute_type: str, workers: int = 1) -> Task:
    """Calls `translate_batch` on tokens.

    Args:
        setting: the shape and its folders.
        cell: beam and batch.
        compute_type: float32 or int8.
        workers: batches translated in parallel, each with an equal part of the threads.
    """
    translator = _load(str(setting.shared / _FOLDER), compute_type, workers)
    sentences = workers * cell.batch
    vocabulary = _vocabulary(setting.shape)
    sources = [
        [vocabulary[i] for i in row] for row in random_sources(setting.shape, sentences).tolist()
    ]

    def translate() -> list[ctranslate2.TranslationResult]:
        return translator.translate_batch(
            sources,
            beam_size=cell.beam,
            max_batch_size=cell.batch,
            min_decoding_length=cell.target_tokens,
            max_decoding_length=cell.target_tokens,
            length_penalty=LENGTH_PENALTY,
        )

    def check(results: list[ctranslate2.TranslationResult]) -> None:
        lengths = [len(result.hypotheses[0]) for result in results]
        check_lengths(lengths, sentences, cell.target_tokens)

    return Task(sentences * cell.target_tokens, translate, check)


@functools.cache
def _load(folder: str, compute_type: str, workers: int) -> ctranslate2.Translator:
    """Loads the model in a thread that ends: its OpenMP threads end with it and stop spinning."""
    loaded: list[ctranslate2.Translator] = []

    def load() -> None:
        threads = {"inter_threads": workers, "intra_threads": THREADS // workers}
        loaded.append(ctranslate2.Translator(folder, "cpu", compute_type=compute_type, **threads))

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    if not loaded:
        raise RuntimeError(f"CTranslate2 did not load its model as {compute_type}.")
    return loaded[0]


def _vocabulary(shape: Shape) -> list[str]:
    return [*_SPECIAL, *(f"t{i}" for i in range(FIRST_FREE_ID, shape.vocabulary_size))]


def _random_spec(shape: Shape) -> TransformerSpec:
    size, hidden, layers = shape.d_model, shape.d_ff, shape.num_layers
    spec = TransformerSpec.from_config((layers, layers), shape.num_heads, pre_norm=False)
    embedding = _random(shape.vocabulary_size, size)
    positions = _random(_POSITIONS, size)
    for side in (spec.encoder, spec.decoder):
        # The encoder has a list, one for each feature of a token.
        embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        embeddings.weight = embedding
        side.position_encodings.encodings = positions
        for layer in side.layer:
            # Projections that take the same input are one matrix.
            _fill_attention(layer.self_attention, size, [3 * size, size])
            _fill_linear(layer.ffn.linear_0, hidden, size)
            _fill_linear(layer.ffn.linear_1, size, hidden)
            _fill_norm(layer.ffn.layer_norm, size)
    for layer in spec.decoder.layer:
        _fill_attention(layer.attention, size, [size, 2 * size, size])
    _fill_linear(spec.decoder.projection, shape.vocabulary_size, size)
    return spec


def _fill_attention(attention, size: int, outputs: list[int]) -> None:
    for linear, output in zip(attention.linear, outputs, strict=True):
        _fill_linear(linear, output, size)
    _fill_norm(attention.layer_norm, size)


def _fill_linear(linear, output_size: int, input_size: int) -> None:
    linear.weight = _random(output_size, input_size)
    linear.bias = np.zeros(output_size, np.float32)


def _fill_norm(norm, size: int) -> None:
    norm.gamma = np.ones(size, np.float32)
    norm.beta = np.zeros(size, np.float32)


def _random(*shape: int) -> np.ndarray:
    return _RNG.normal(scale=0.02, size=shape).astype(np.float32)
