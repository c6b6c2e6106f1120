"""Names of weights: one in every process."""

import keras
import pytest
from run.test_earlier_weights import MODELS

from tf_transformer.models.ensemble import Ensemble
from tf_transformer.models.names import by_name
from tf_transformer.models.transformer import Transformer


@pytest.mark.parametrize("name", MODELS)
def test_two_models_in_one_process_have_equal_names(name):
    """Keras numbers the names of layers that have no name of their own."""
    first, second = (list(by_name(MODELS[name]())) for _ in range(2))
    assert first == second


def test_names_do_not_depend_on_what_is_around_a_model():
    with keras.name_scope("outer"):
        inside = MODELS["transformer"]()
    member = Transformer(7, inside.config)
    Ensemble([member, Transformer(7, inside.config)]).build()
    assert list(by_name(member)) == list(by_name(inside))
    assert "encoder/layer_0/self_attention/query_key_value/kernel" in by_name(inside)


def test_two_weights_of_one_name_are_an_error():
    class Twins(keras.Model):
        def __init__(self):
            super().__init__()
            self.twins = [keras.layers.Dense(2, name="twin") for _ in range(2)]

        def build(self, shape):
            for twin in self.twins:
                twin.build(shape)

    model = Twins()
    model.build((None, 3))
    with pytest.raises(ValueError, match=r"the 4 weights of twins have 2 names\. Give each part"):
        by_name(model)
