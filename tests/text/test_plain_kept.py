"""Spans are kept without TensorFlow as in the graph of a translator, which is the oracle."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.inference.test_kept_graph import damaged, in_joined, repaired, tree
from tests.text.test_kept_spans import SPANS, WORDS
from tf_transformer.inference.kept_graph import KeptSpans
from tf_transformer.inference.span_symbols import SpanSymbols
from tf_transformer.text.elements import is_well_formed, openings
from tf_transformer.text.plain_elements import is_well_formed as is_well_formed_plain
from tf_transformer.text.plain_elements import openings as plain_openings
from tf_transformer.text.plain_kept import PlainKeptSpans
from tf_transformer.text.plain_places import Drawn

KEPT, PLAIN = KeptSpans(["common"]), PlainKeptSpans(["common"])
KNOWN = [*(span for kind in SPANS.values() for span in kind), "<b>", "</b>", "<i>", "</i>", "<br>"]
PARTS = st.lists(st.sampled_from(KNOWN) | st.sampled_from(WORDS), max_size=9)
GAPS = st.sampled_from([" ", "", "\n "])
MANY = pytest.param(5000, marks=pytest.mark.slow)


def for_examples(count, test, *strategies):
    """Runs a test with a number of examples."""
    settings(max_examples=count, deadline=None)(given(*strategies)(test))()


@functools.cache
def in_graph(keep):
    return KeptSpans(keep), SpanSymbols(keep)


def tokens(output, rng):
    """Pieces of an output: parts of words, with the space before each word."""
    words = [word if not n else f" {word}" for n, word in enumerate(output.split(" "))]
    cuts = [rng.randrange(len(word) + 1) for word in words]
    return [part for word, at in zip(words, cuts, strict=True) for part in (word[:at], word[at:])]


def attention(shape, kind, rng):
    """Weights (T, S) of one of three kinds: each token to one, to few, or to many others."""
    draws = np.random.default_rng(rng.randrange(2**32))
    if kind == "one":
        return np.eye(*shape, dtype=np.float32)[rng.sample(range(shape[0]), shape[0])]
    return np.float32(draws.dirichlet(np.full(shape[1], {"few": 0.05, "many": 1}[kind]), shape[0]))


@pytest.mark.parametrize("count", [25, MANY])
def test_outputs_are_repaired_as_in_the_graph(count):
    def test(parts, gap, kind, rng):
        source, output = gap.join(parts), gap.join(damaged(parts, rng))
        pieces = tokens(output, rng)
        ends = np.int32([0, *np.cumsum([len(piece.encode()) for piece in pieces])])
        words = max(1, len(PLAIN.hidden(source).encode().split()))
        weights = attention((len(pieces), words), kind, rng)
        expected = repaired(*map(tf.constant, (source, output, ends, weights, np.int32(0))))
        drawn = Drawn(output, ends.tolist(), weights)
        count_words = lambda start: len(PLAIN.hidden(start).encode().split())  # noqa: E731
        assert PLAIN.repair(source, drawn, count_words) == expected.numpy().decode()

    kinds = st.sampled_from(["one", "few", "many"])
    for_examples(count, test, PARTS, GAPS, kinds, st.randoms(use_true_random=False))


@pytest.mark.parametrize("count", [25, MANY])
def test_joined_outputs_are_repaired_as_in_the_graph(count):
    def test(gap, rng):
        parts = tree(rng)
        text, output = gap.join(parts), gap.join(damaged(parts, rng))
        expected = in_joined(tf.constant(text), tf.constant(output)).numpy().decode()
        assert PLAIN.in_joined(text, output) == expected

    for_examples(count, test, GAPS, st.randoms(use_true_random=False))


@pytest.mark.parametrize("count", [25, MANY])
def test_texts_are_hidden_and_shown_as_in_the_graph(count):
    def test(parts, others, gap, keep):
        (kept, symbols), plain = in_graph(keep), PlainKeptSpans(keep, "emoji")
        text, output = gap.join(parts), gap.join(others)
        read = kept.untagged(tf.constant([text]))
        hidden = symbols.hide(read).numpy()[0].decode()
        assert plain.hidden(text) == hidden
        for drawn in (hidden, output):
            shown = symbols.show(tf.constant([[drawn]]), read).numpy()[0, 0].decode()
            assert plain.shown(drawn, text) == shown
        assert plain.without_spans(text) == kept.without_spans(text).numpy().decode()

    faces = st.lists(st.sampled_from(["😀", "😁", "😏", "🙂", "a"]), max_size=6)
    keep = st.sampled_from([("common",), ("tags", "[A-Z]{2}-[0-9]+"), ("addresses", "emoji")])
    for_examples(count, test, PARTS, faces, GAPS, keep)


@pytest.mark.parametrize("count", [25, MANY])
def test_elements_are_those_of_the_graph(count):
    def test(spans):
        given = tf.constant(spans, tf.string)
        assert plain_openings(spans) == openings(given).numpy().tolist()
        assert is_well_formed_plain(spans) == bool(is_well_formed(given))

    tags = ["<b>", "</b>", "<i a='1'>", "</i>", "<br>", "<BR>", "<x/>", "</b >", "{a}", "<b:c>"]
    for_examples(count, test, st.lists(st.sampled_from([*tags, "</b:c>"]), max_size=9))
