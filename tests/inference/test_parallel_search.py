"""A batch searched in parts has the hypotheses of the whole batch."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.decoding import Hypotheses
from tf_transformer.inference.micro_batches import ParallelSearch
from tf_transformer.inference.search import Search
from tf_transformer.inference.translator import Translator


def echo(source, width=2):
    """Hypotheses that show their rows: the source, and the number of rows searched with it."""
    rows = tf.shape(source)[0]
    lengths = tf.reduce_sum(tf.cast(source > 0, tf.int32), axis=1)
    longest = tf.reduce_max(lengths)  # so that parts differ in length
    ids = tf.repeat(source[:, None, :longest], width, axis=1)
    number = tf.cast(tf.fill((rows, width), rows), tf.float32)
    return Hypotheses(ids, tf.repeat(lengths[:, None], width, axis=1), number, number)


def random_source(rows):
    rng = np.random.default_rng(rows)
    lengths = np.sort(rng.integers(1, 9, rows))[::-1]
    ids = rng.integers(5, 99, (rows, 9), np.int32)
    return ids * (np.arange(9) < lengths[:, None])


@pytest.mark.parametrize("parts", [2, 3, 5])
@pytest.mark.parametrize("rows", [1, 7, 15, 16, 17, 40])
def test_parts_have_the_hypotheses_of_the_batch(rows, parts):
    source = tf.constant(random_source(rows))
    found, expected = ParallelSearch(echo, parts)(source), echo(source)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    sizes = sorted(set(found.scores.numpy()[:, 0].astype(int)))
    count = max(1, min(parts, rows // 8))
    assert sizes == sorted({rows // count, -(-rows // count)})


def test_the_parts_of_a_model_have_its_translations(run):
    translator = Translator.from_run(run, beam_size=3)
    search = Search(translator.model, translator.config)
    texts = [f"{'twenty ' * (n % 5)}one" for n in range(20)]
    rows = translator.tokenizer.encode_batch(texts)
    longest = max(map(len, rows))
    source = tf.constant([row + [0] * (longest - len(row)) for row in rows], tf.int32)
    expected = search(source)
    found = tf.function(ParallelSearch(search, 2), autograph=False)(source)
    assert len(set(map(tuple, expected.lengths.numpy().tolist()))) > 2
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-4)


def test_parts_run_at_the_same_time():
    meeting = threading.Barrier(2, timeout=30)  # seconds; an error for one that is alone

    def wait(ids):
        meeting.wait()
        return ids

    def search(source):
        ids = tf.numpy_function(wait, [source], tf.int32, stateful=False)
        return echo(tf.ensure_shape(ids, [None, None]))

    source = tf.constant(random_source(16))
    found = tf.function(ParallelSearch(search, 2), autograph=False)(source)
    np.testing.assert_array_equal(found.ids[:, 0], source[:, : found.ids.shape[2]])
