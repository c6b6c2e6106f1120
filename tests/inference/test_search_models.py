"""Models of other kinds than a Transformer: a table, and several models as one."""

from typing import NamedTuple

import numpy as np
import pytest
import reference_search
import tensorflow as tf
from inference.test_search import SENTENCES, VOCABULARY, batch_of, make_model

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import CacheSchedule, StepOptions, StepState
from tf_transformer.inference.search import SPECIAL, Search

TABLE = np.random.default_rng(1).normal(size=(VOCABULARY, VOCABULARY)).astype("float32") * 2
BEAM = 3


class BigramStep(NamedTuple):
    """The logits of the next token depend on the newest one alone; there is no state."""

    start: StepState = StepState(())
    cache_schedule: CacheSchedule | None = None

    def __call__(self, ids, state, index):
        return tf.gather(TABLE, ids), state


class Bigrams:
    vocabulary_size = VOCABULARY

    def max_target_length(self, source_length):
        return None

    def step_function(self, source, options: StepOptions) -> BigramStep:
        return BigramStep()


class EnsembleStep:
    """The mean of the log-probabilities of several step functions."""

    def __init__(self, steps):
        self._steps = steps
        self.start = self._together([step.start for step in steps])
        schedules = [step.cache_schedule for step in steps]
        self.cache_schedule = schedules[0] and CacheSchedule(
            schedules[0].capacities,
            lambda state, capacity: self._resize(schedules, state, capacity),
        )

    def __call__(self, ids, state, index):
        taken = [
            step(ids, StepState(*own), index)
            for step, own in zip(self._steps, zip(*state, strict=True), strict=True)
        ]
        logits = tf.add_n([tf.nn.log_softmax(logits) for logits, _ in taken]) / len(taken)
        return logits, self._together([after for _, after in taken])

    def _resize(self, schedules, state, capacity):
        return self._together(
            schedule.resize(StepState(*own), capacity)
            for schedule, own in zip(schedules, zip(*state, strict=True), strict=True)
        )

    def _together(self, states) -> StepState:
        return StepState(*map(tuple, zip(*states, strict=True)))


class Ensemble:
    def __init__(self, *models):
        self.models = models
        self.vocabulary_size = models[0].vocabulary_size

    def max_target_length(self, source_length):
        return None

    def step_function(self, source, options: StepOptions) -> EnsembleStep:
        return EnsembleStep([model.step_function(source, options) for model in self.models])


def searched(model, static_shapes=False, **options):
    config = DecodeConfig(**{"beam_size": BEAM, "num_hypotheses": BEAM} | options)
    search = Search(model, config, static_shapes=static_shapes)
    signature = [tf.TensorSpec((None, None), tf.int32)]
    return tf.function(search, signature, autograph=False)(batch_of(SENTENCES))


def test_a_table_is_searched_as_a_loop_over_hypotheses_searches_it():
    hypotheses = reference_search.arrays(searched(Bigrams(), max_extra_length=2))
    for row, sentence in enumerate(SENTENCES):
        expected = reference_search.beam_search(
            *(lambda ids: TABLE[ids[-1] if ids else SPECIAL.start], len(sentence) + 2),
            *(SPECIAL, BEAM, 0.6),
        )
        reference_search.assert_found(hypotheses, row, expected)


@pytest.mark.parametrize("static_shapes", [False, True], ids="static_shapes={}".format)
def test_two_models_are_searched_by_the_mean_of_their_log_probabilities(static_shapes):
    one, other = make_model(), make_model(norm_first=True, num_layers=2)
    hypotheses = reference_search.arrays(
        searched(Ensemble(one, other), static_shapes, max_extra_length=1)
    )
    for row, sentence in enumerate(SENTENCES[:3]):

        def language(ids, source=batch_of([sentence])):
            target = np.int32([[SPECIAL.start, *ids]])
            both = [np.asarray(model((source, target)))[0, -1] for model in (one, other)]
            return sum(map(reference_search.log_softmax, both)) / 2

        expected = reference_search.beam_search(language, len(sentence) + 1, SPECIAL, BEAM, 0.6)
        reference_search.assert_found(hypotheses, row, expected)
