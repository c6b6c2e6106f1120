"""Probes of the thresholds of the search: its cache, and the shapes of compiled batches."""

from collections.abc import Callable, Iterator, Mapping

import keras
import numpy as np
import tensorflow as tf

from benchmarks.kernels.probe import MakeLoop, Probe, forced
from benchmarks.kernels.timing import Loop
from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.inference.search import Search
from tf_transformer.machine import thresholds
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.special_ids import EOS_ID, PAD_ID

Shape = tuple[int, int]  # of a batch of sources: (B, S)
Searches = Callable[[Shape, int, bool], MakeLoop]  # shape, target tokens, compiled


def probes(small: bool = False) -> Iterator[Probe]:
    """All probes of the search.

    Args:
        small: small sizes, for a test.
    """
    model = make_model(small)
    searches = searches_of(model)
    yield _compaction(searches, (2, 3) if small else (32, 24), 4 if small else 48)
    yield _removal(model, (4, 6) if small else (64, 24))
    yield _capacity(searches, (2, 3) if small else (32, 24), 2 if small else 24)
    yield from _buckets(searches, small)


def make_model(small: bool = False, vocabulary_size: int = 8000) -> Transformer:
    """Random weights of tiny with two layers; translations end after `min_length` tokens."""
    keras.utils.set_random_seed(1)
    small_sizes = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 2}
    sizes = small_sizes if small else {"num_layers": 2}
    model = Transformer(64 if small else vocabulary_size, ModelConfig.preset("tiny", **sizes))
    model.build()
    end = keras.ops.convert_to_numpy(model.output_embedding.embeddings)[EOS_ID]
    # The β of the last layer norm becomes a state to which the end token is the likeliest.
    *_, beta = (weight for weight in model.trainable_variables if weight.path.endswith("beta"))
    beta.assign(beta + 100 * end / np.linalg.norm(end))
    return model


def searches_of(model: Transformer) -> Searches:
    """Searches with beam 4 for random sources."""

    def of(shape: Shape, tokens: int, compiled: bool) -> MakeLoop:
        ids = np.random.default_rng(1).integers(4, model.vocabulary_size, shape, np.int32)
        ids[:, -1] = EOS_ID
        config = DecodeConfig(beam_size=4, min_length=tokens - 1)
        return lambda: loop_of(Search(model, config, static_shapes=compiled), ids, compiled)

    return of


def loop_of(search: Search, ids: np.ndarray, compiled: bool) -> Loop:
    """Runs of a search for sources (B, S), after a first run that is not timed."""
    source = tf.constant(ids)
    signature = [tf.TensorSpec(ids.shape if compiled else (None, None), tf.int32)]
    run = tf.function(lambda source: search(source).scores, signature, jit_compile=compiled)

    def loop(count: int) -> None:
        for _ in range(count):
            run(source).numpy()

    loop(1)
    return loop


def _compaction(searches: Searches, shape: Shape, tokens: int) -> Probe:
    name, interval = "COMPACTION_INTERVAL", thresholds.COMPACTION_INTERVAL
    values = {str(steps): steps for steps in (interval // 2, interval, 2 * interval)}
    sides = forced("decoding.cache", name, values, searches(shape, tokens, False))
    return Probe(name, f"tiny, beam 4, batch {shape[0]}, {tokens} tokens", str(interval), sides)


def _removal(model: Transformer, shape: Shape) -> Probe:
    """Sentences of half the longest length up to it, as in batches of similar lengths."""
    name, share = "SHARE_TO_REMOVE", thresholds.SHARE_TO_REMOVE
    rows, longest = shape
    lengths = np.linspace(longest // 2, longest, rows).astype(int)
    ids = np.full(shape, 5, np.int32)
    ids[np.arange(rows), lengths - 1] = EOS_ID
    ids[np.arange(longest) >= lengths[:, None]] = PAD_ID
    search = Search(model, DecodeConfig(beam_size=4, min_length_ratio=1.0))
    values = {str(part): part for part in (share / 2, share, 2 * share, 8 * share)}
    sides = forced("decoding.loop", name, values, lambda: loop_of(search, ids, False))
    size = f"tiny, beam 4, batch {rows}, {lengths[0]} to {longest} tokens"
    return Probe(name, size, str(share), sides)


def _capacity(searches: Searches, shape: Shape, tokens: int) -> Probe:
    name, divisor = "INITIAL_CAPACITY_DIVISOR", thresholds.INITIAL_CAPACITY_DIVISOR
    values = {str(number): number for number in (1, divisor - 1, divisor, divisor + 1)}
    sides = forced("inference.search", name, values, searches(shape, tokens, True))
    size = f"tiny, beam 4, batch {shape[0]}, compiled, {tokens} of {shape[1] + 50} tokens"
    return Probe(name, size, str(divisor), sides)


def _buckets(searches: Searches, small: bool) -> Iterator[Probe]:
    """Padding to the next bucket against the exact shape; a full batch against two halves."""
    tokens = 2 if small else 12
    for rows, length in ((1, 3),) if small else ((4, 9), (4, 17), (4, 33)):
        bucket = min(size for size in thresholds.LENGTH_BUCKETS if size >= length)
        shapes = {"padded": (rows, bucket), "exact": (rows, length)}
        yield _shapes("LENGTH_BUCKETS", searches, tokens, shapes)
    for rows, length in ((3, 3),) if small else ((5, 24), (17, 24)):
        bucket = min(size for size in thresholds.BATCH_BUCKETS if size >= rows)
        shapes = {"padded": (bucket, length), "exact": (rows, length)}
        yield _shapes("BATCH_BUCKETS", searches, tokens, shapes)
    limit, length = (12, 3) if small else (thresholds.COMPILED_BATCH_TOKENS, 128)
    rows = limit // length
    probe = _shapes(
        "COMPILED_BATCH_TOKENS",
        searches,
        tokens,
        {"whole": (rows, length), "two halves": (rows // 2, length)},
    )
    halves = probe.sides["two halves"]
    yield probe._replace(sides={**probe.sides, "two halves": lambda: _twice(halves())})


def _shapes(threshold: str, searches: Searches, tokens: int, shapes: Mapping[str, Shape]) -> Probe:
    """A probe whose sides are shapes of a compiled batch; the code chooses the first shape."""
    sides = {side: searches(shape, tokens, True) for side, shape in shapes.items()}
    listed = ", ".join(f"{side} {rows} × {length}" for side, (rows, length) in shapes.items())
    return Probe(threshold, f"tiny, beam 4: {listed}", next(iter(shapes)), sides)


def _twice(loop: Loop) -> Loop:
    return lambda count: loop(2 * count)
