"""Sentences that leave the batch when they are done: nothing changes but the work."""

import keras
import numpy as np
import pytest
from keras import ops
from reference_search import PrefixTables

from tf_transformer.decoding import (
    Constraints,
    Sampling,
    SpecialIds,
    beam_search,
    greedy_search,
    sample,
)

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="a batch changes its size only there"
)
SPECIAL = SpecialIds(pad=0, start=1, end=2)
LENGTH, LANGUAGES = 12, 40


@pytest.fixture(scope="module")
def tables():
    return PrefixTables.random(seed=21, languages=LANGUAGES, vocabulary_size=7, length=LENGTH)


def searches(tables, shrink, step=None):
    """Every search on one sentence a language, with limits, minima and prefixes of their own."""
    random = np.random.default_rng(22)
    limits = random.integers(1, LENGTH + 1, LANGUAGES).astype("int32")
    constraints = Constraints(
        min_lengths=ops.convert_to_tensor(
            np.minimum(limits, random.integers(0, 4, LANGUAGES)).astype("int32")
        ),
        prefix=ops.convert_to_tensor(random.choice([0, 3, 4], (LANGUAGES, 1)).astype("int32")),
    )
    uniforms = random.random((LANGUAGES, 3, LENGTH)).astype("float32")
    common = (ops.convert_to_tensor(limits), LENGTH, SPECIAL)

    def state(beam_size):
        return tables.state(np.arange(LANGUAGES), beam_size)

    step = step or tables.step
    options = {"constraints": constraints, "shrink": shrink}
    yield beam_search(step, state(3), *common, beam_size=3, num_hypotheses=3, **options)
    yield greedy_search(step, state(1), *common, **options)
    yield sample(step, state(3), *common, ops.convert_to_tensor(uniforms), 7, Sampling(), **options)


def test_results_are_the_same(tables):
    pairs = zip(searches(tables, shrink=False), searches(tables, shrink=True), strict=True)
    for plain, shrinking in pairs:
        for one, other in zip(plain, shrinking, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-6)


def test_results_are_the_same_in_a_graph(tables):
    import tensorflow as tf

    spec = tf.TensorSpec([None], tf.int32)

    @tf.function(input_signature=[spec, spec])
    def graph(languages, limits):
        state = tables.state(languages, 3)
        return beam_search(
            tables.step, state, limits, tf.reduce_max(limits), SPECIAL, 3, shrink=True
        )

    limits = np.random.default_rng(23).integers(1, LENGTH + 1, LANGUAGES).astype("int32")
    state = tables.state(np.arange(LANGUAGES), 3)
    expected = beam_search(
        tables.step, state, ops.convert_to_tensor(limits), int(limits.max()), SPECIAL, 3
    )
    for one, other in zip(graph(np.arange(LANGUAGES), limits), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_no_more_than_half_of_a_step_is_for_sentences_that_are_done(tables):
    rows = {True: [], False: []}
    for shrink, batches in rows.items():

        def step(ids, state, index, batches=batches):
            batches.append(ids.shape[0])
            return tables.step(ids, state, index)

        list(searches(tables, shrink, step))
    assert set(rows[False]) == {LANGUAGES}
    assert min(rows[True]) < LANGUAGES / 4
    assert sum(rows[True]) < 0.8 * sum(rows[False])
    # A batch shrinks to less than half of what it was, or starts anew with the next search.
    for before, after in zip(rows[True], rows[True][1:], strict=False):
        assert after in (before, LANGUAGES) or 2 * after <= before
