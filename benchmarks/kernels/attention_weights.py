"""Searches and updates with attention weights in their results, and without.

Layers return the weights of each head (paper section 3.2.2). Searches and training runs do not read
them, so the weights must cost no time there.
"""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from keras import ops

from benchmarks.harness.results import Row
from benchmarks.kernels.probe import MakeLoop, forced
from benchmarks.kernels.search_probes import make_model, searches_of
from benchmarks.kernels.timing import looped, measured
from tf_transformer.kernels.attention import HeadOutput
from tf_transformer.losses.cross_entropy import CrossEntropy
from tf_transformer.models.transformer import Transformer
from tf_transformer.tasks.translation import TRANSLATION


def rows(small: bool = False) -> Iterator[Row]:
    """The time of each work, with the weights and without.

    Args:
        small: small sizes, for a test.
    """
    model = make_model(small)
    searches = searches_of(model)
    tokens = 2 if small else 24
    for batch in (1,) if small else (1, 32):
        for compiled in (False, True):
            work = f"search of tiny, beam 4, batch {batch}" + ", compiled" * compiled
            yield _row(work, searches((batch, tokens), tokens, compiled))
    shape = (2, 3) if small else (64, 24)
    yield _row("forward and backward pass of tiny", _gradients(model, shape))


def _row(work: str, make: MakeLoop) -> Row:
    forms = {"with": HeadOutput, "without": _without_weights}
    sides = forced("kernels.attention", "HeadOutput", forms, make)
    found = measured({side: make_side() for side, make_side in sides.items()})
    return {
        "work": work,
        **{f"{side}_ms": round(1000 * usage.seconds, 4) for side, usage in found.items()},
        "with_over_without": round(found["with"].seconds / found["without"].seconds, 3),
        **{f"{side}_minor_faults": usage.minor_faults for side, usage in found.items()},
    }


def _without_weights(heads: tf.Tensor, weights: tf.Tensor) -> HeadOutput:
    """`HeadOutput` with a constant in place of the weights."""
    return HeadOutput(heads, ops.zeros((1, 1, 1, 1), weights.dtype))


def _gradients(model: Transformer, shape: tuple[int, int]) -> MakeLoop:
    """The gradients of an update."""
    ids = np.random.default_rng(1).integers(4, model.vocabulary_size, shape, np.int32)
    weights = [weight.value for weight in model.trainable_weights]

    def gradients(ids: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            batch = {"source": ids, "target": ids}
            loss = TRANSLATION.losses(model, batch, CrossEntropy(0.1), training=True).loss
        return [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, weights)]

    return lambda: looped(gradients, [ids])
