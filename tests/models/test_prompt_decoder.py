"""Prompts in the cache, then one step after another, against the model without a cache."""

import functools

import keras
import numpy as np
import pytest
import reference_search
from keras import ops
from models.test_cached_decoder import decoder, reordered, take_step
from models.test_language_model import VOCABULARY, make_model

from tf_transformer.decoding import (
    Constraints,
    Problem,
    SearchOptions,
    SpecialIds,
    Step,
    beam_search,
)
from tf_transformer.machine.thresholds import COMPACTION_INTERVAL

# As a search gets them: the end id, then padding. The third is the empty prompt.
PROMPTS = np.array([[5, 6, 7, 8, 2], [9, 10, 2, 0, 0], [2, 0, 0, 0, 0]])
LENGTHS = [4, 2, 0]
SPECIAL = SpecialIds(pad=0, start=1, end=2)
STEPS = COMPACTION_INTERVAL + 3  # so that rows of the cache are dropped
ON_JAX = keras.backend.backend() == "jax"

each_layout = pytest.mark.parametrize(
    "static_shapes", [True] if ON_JAX else [True, False], ids="static_shapes={}".format
)


def logits_after(model, *texts) -> np.ndarray:
    """The logits (N, V) of the token that follows each row of ids, without a cache."""
    rows = np.zeros((len(texts), model.position.max_length or 30), "int32")  # one shape
    for row, ids in zip(rows, texts, strict=True):
        row[: len(ids)] = ids
    last = [len(ids) - 1 for ids in texts]
    return ops.convert_to_numpy(model(rows))[np.arange(len(texts)), last]


def assert_steps_equal_whole_texts(model, beam, static_shapes, steps=STEPS):
    """Steps with random tokens and random parents, as a beam search takes them."""
    random = np.random.default_rng(5)
    capacity = 4 if static_shapes else None
    step = decoder(model, PROMPTS, beam, steps, static_shapes, capacity)
    state, newest = step.start, np.ones((3, beam), int)
    texts = [[[1, *row[:n]] for _ in range(beam)] for row, n in zip(PROMPTS, LENGTHS, strict=True)]
    for index in range(steps):
        if static_shapes and index == capacity:
            state = step.cache_schedule.resize(state, steps)
        logits, state = take_step(step, newest, state, index)
        expected = logits_after(model, *(text for of_row in texts for text in of_row))
        np.testing.assert_allclose(logits.reshape(expected.shape), expected, rtol=0, atol=2e-5)
        parents = random.integers(0, beam, (3, beam))
        newest = random.integers(3, VOCABULARY, (3, beam))
        texts = [
            [[*of_row[parent], token] for parent, token in zip(*columns, strict=True)]
            for of_row, *columns in zip(texts, parents, newest, strict=True)
        ]
        state = reordered(state, parents)


@each_layout
@pytest.mark.parametrize(("beam", "options"), [(1, {"position": "learned"}), (3, {})], ids=str)
def test_steps_after_prompts_of_different_lengths_equal_whole_texts(beam, options, static_shapes):
    assert_steps_equal_whole_texts(make_model(**options), beam, static_shapes)


PATTERNS = {
    "local": {"attention": "local", "attention_window": 3, "position": "rotary", "key_dim": 4},
    "local, absolute": {"attention": "local", "attention_window": 3},
    "strided": {"attention": "strided", "attention_window": 3, "position": "learned"},
    "linear": {"attention": "linear", "position": "rotary", "key_dim": 4},
    "SSRU": {"decoder_attention": "ssru"},
}


@each_layout
@pytest.mark.parametrize(
    ("pattern", "beam"),
    [("local", 1), ("local, absolute", 2), ("strided", 2), ("linear", 2), ("SSRU", 2)],
)
def test_patterns_of_attention_continue_prompts(pattern, beam, static_shapes):
    """The prompts are longer and shorter than the window."""
    assert_steps_equal_whole_texts(make_model(**PATTERNS[pattern]), beam, static_shapes, steps=6)


@each_layout
@pytest.mark.parametrize("position", ["rotary", "relative"])
def test_relative_encodings_take_columns_for_positions(position, static_shapes):
    model = make_model(position=position, key_dim=6, value_dim=5, num_key_value_heads=1)
    assert_steps_equal_whole_texts(model, 3, static_shapes)


@each_layout
def test_beam_search_finds_for_each_prompt_what_it_finds_without_a_cache(static_shapes):
    model, limits, beam = make_model(), [6, 5, 4], 3
    step = decoder(model, PROMPTS, beam, 6, static_shapes)
    constraints = Constraints(no_repeat_ngram_size=2)
    options = SearchOptions(6, SPECIAL, beam, num_hypotheses=beam, constraints=constraints)
    found = beam_search(Step(step, step.start), Problem(np.int32(limits)), options)
    for row, (prompt, length) in enumerate(zip(PROMPTS, LENGTHS, strict=True)):
        text = (1, *prompt[:length])
        language = functools.cache(lambda ids, text=text: logits_after(model, text + ids)[0])
        rules = reference_search.Rules(no_repeat_ngram_size=2)  # those of the prompt do not count
        expected = reference_search.beam_search(language, limits[row], SPECIAL, beam, 0.6, rules)
        reference_search.assert_found(reference_search.arrays(found), row, expected)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_learned_table_limits_what_follows_a_prompt(beam):
    """With 6 positions, 4 tokens and the start leave room for 2 more; the last is not read."""
    model = make_model(position="learned", max_length=6)
    assert [model.max_target_length(n + 1) for n in LENGTHS] == [2, 4, 6]
    step = decoder(model, PROMPTS, beam, 6)
    state = step.start
    for index in range(6):  # a row beyond its limit is computed until the others end
        logits, state = take_step(step, np.full((3, beam), 7), state, index)
    assert np.isfinite(logits).all()
    expected = logits_after(model, [1, 7, 7, 7, 7, 7])[0]
    np.testing.assert_allclose(logits[2, 0], expected, rtol=0, atol=2e-5)
