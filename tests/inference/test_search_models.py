"""Models of other kinds than a Transformer: a table, and several models as one."""

from typing import NamedTuple

import numpy as np
import pytest
import reference_search
import tensorflow as tf
from inference.test_search import SENTENCES, VOCABULARY, batch_of, make_model

from tf_transformer import Transformer
from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import CacheSchedule, StepOptions, StepState
from tf_transformer.inference.search import SPECIAL, Search
from tf_transformer.models.ensemble import Ensemble

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


@pytest.mark.parametrize(
    "static_shapes",
    [pytest.param(False, marks=pytest.mark.slow), True],
    ids="static_shapes={}".format,
)
def test_three_models_are_searched_by_the_mean_of_their_probabilities(static_shapes):
    models = [
        make_model(),
        make_model(norm_first=True, num_layers=2),
        make_model(position="rotary"),
    ]
    hypotheses = reference_search.arrays(
        searched(Ensemble(models), static_shapes, max_extra_length=1)
    )
    for row, sentence in enumerate(SENTENCES[:3]):

        def language(ids, source=batch_of([sentence])):
            target = np.int32([[SPECIAL.start, *ids]])
            logits = [np.asarray(model((source, target)))[0, -1] for model in models]
            return np.log(sum(np.exp(reference_search.log_softmax(each)) for each in logits) / 3)

        expected = reference_search.beam_search(language, len(sentence) + 1, SPECIAL, BEAM, 0.6)
        reference_search.assert_found(hypotheses, row, expected)


@pytest.mark.parametrize("kind", ["linear", "ssru"])
def test_a_decoder_with_states_is_searched_in_batches_of_any_size(kind):
    """Its states keep the size of their values, which projections in a graph need."""
    model = make_model(decoder_attention=kind)
    hypotheses = reference_search.arrays(searched(model, max_extra_length=1))
    for row, sentence in enumerate(SENTENCES[:2]):

        def language(ids, source=batch_of([sentence])):
            target = np.int32([[SPECIAL.start, *ids]])
            return reference_search.log_softmax(np.asarray(model((source, target)))[0, -1])

        expected = reference_search.beam_search(language, len(sentence) + 1, SPECIAL, BEAM, 0.6)
        reference_search.assert_found(hypotheses, row, expected)


def test_an_ensemble_of_one_is_the_model():
    model = make_model()
    alone, ensemble = (
        reference_search.arrays(searched(each, max_extra_length=2))
        for each in (model, Ensemble([model]))
    )
    np.testing.assert_array_equal(alone.ids, ensemble.ids)
    np.testing.assert_array_equal(alone.scores, ensemble.scores)


def test_models_of_an_ensemble_have_one_size_of_vocabulary():
    with pytest.raises(ValueError, match=r"got the sizes \[11, 13\]"):
        Ensemble([Transformer(11), Transformer(13)])
