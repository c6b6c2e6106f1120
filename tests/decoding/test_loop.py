"""Dropping finished sentences from the batch changes the work, not the results."""

import keras
import numpy as np
import pytest
from keras import ops
from reference_search import PrefixTables

from tf_transformer.decoding import (
    Problem,
    Sampling,
    SearchOptions,
    SpecialIds,
    Step,
    beam_search,
    greedy_search,
    sample,
)
from tf_transformer.machine.thresholds import SHARE_TO_REMOVE

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="only TensorFlow drops finished sentences"
)
SPECIAL = SpecialIds(pad=0, start=1, end=2)
LENGTH, LANGUAGES = 12, 40


@pytest.fixture(scope="module")
def tables():
    return PrefixTables.random(seed=21, languages=LANGUAGES, vocabulary_size=7, length=LENGTH)


def searches(tables, drop_finished, step=None):
    """Results of every search on one sentence per language, with random limits and constraints."""
    random = np.random.default_rng(22)
    limits = random.integers(1, LENGTH + 1, LANGUAGES).astype("int32")
    problem = Problem(
        ops.convert_to_tensor(limits),
        min_lengths=ops.convert_to_tensor(
            np.minimum(limits, random.integers(0, 4, LANGUAGES)).astype("int32")
        ),
        prefix=ops.convert_to_tensor(random.choice([0, 3, 4], (LANGUAGES, 1)).astype("int32")),
        uniforms=ops.convert_to_tensor(random.random((LANGUAGES, 3, LENGTH)).astype("float32")),
    )
    one, three = (
        Step(step or tables.step, tables.state(np.arange(LANGUAGES), beam)) for beam in (1, 3)
    )
    options = SearchOptions(LENGTH, SPECIAL, 3, num_hypotheses=3, drop_finished=drop_finished)
    yield beam_search(three, problem, options)
    yield greedy_search(one, problem, options)
    yield sample(three, problem, options, Sampling())


def test_results_are_the_same(tables):
    both = (searches(tables, drop_finished) for drop_finished in (False, True))
    for kept, dropped in zip(*both, strict=True):
        for one, other in zip(kept, dropped, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-6)


def test_results_are_the_same_in_a_graph(tables):
    import tensorflow as tf

    spec = tf.TensorSpec([None], tf.int32)

    @tf.function(input_signature=[spec, spec])
    def graph(languages, limits):
        step = Step(tables.step, tables.state(languages, 3))
        options = SearchOptions(tf.reduce_max(limits), SPECIAL, beam_size=3, drop_finished=True)
        return beam_search(step, Problem(limits), options)

    limits = np.random.default_rng(23).integers(1, LENGTH + 1, LANGUAGES).astype("int32")
    step = Step(tables.step, tables.state(np.arange(LANGUAGES), 3))
    options = SearchOptions(int(limits.max()), SPECIAL, beam_size=3)
    expected = beam_search(step, Problem(ops.convert_to_tensor(limits)), options)
    for one, other in zip(graph(np.arange(LANGUAGES), limits), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_finished_sentences_leave_the_batch(tables):
    sizes = {True: [], False: []}
    for drop_finished, batches in sizes.items():

        def step(ids, state, index, batches=batches):
            batches.append(ids.shape[0])
            return tables.step(ids, state, index)

        list(searches(tables, drop_finished, step))
    assert set(sizes[False]) == {LANGUAGES}
    assert min(sizes[True]) < LANGUAGES / 4
    assert sum(sizes[True]) < 0.8 * sum(sizes[False])
    # A batch keeps its size, loses a share that is worth it, or is the first of the next search.
    most = 1 - SHARE_TO_REMOVE
    for before, after in zip(sizes[True], sizes[True][1:], strict=False):
        assert after in (before, LANGUAGES) or after <= most * before
