"""Names of weights: one in every process, and the order of attributes has no meaning."""

import keras
import numpy as np
import pytest
from run.test_earlier_weights import MODELS

from tf_transformer.models.ensemble import Ensemble
from tf_transformer.models.names import by_name
from tf_transformer.models.transformer import Transformer
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.run.weights import load_weights
from tf_transformer.tasks import load_predictor


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


class Reordered(Transformer):
    """A Transformer whose attributes are set in the reverse order."""

    def __init__(self, *args, **kwargs):
        object.__setattr__(self, "kept", {})
        super().__init__(*args, **kwargs)
        kept = self.__dict__.pop("kept")
        for name in reversed(kept):
            setattr(self, name, kept[name])

    def __setattr__(self, name, value):
        if "kept" in self.__dict__ and isinstance(value, keras.layers.Layer):
            self.kept[name] = value
        else:
            super().__setattr__(name, value)


def test_attributes_may_be_set_in_another_order(run):
    expected = load_predictor(Run.load(run, average=1)).model
    sizes = {"source_vocabulary_size": expected.source_vocabulary_size}
    model = Reordered(expected.vocabulary_size, expected.config, **sizes)
    model.build()
    assert list(by_name(model)) != list(by_name(expected))
    load_weights(RunFolder(run), model, 1)
    ids = np.array([[5, 6, 7, 2]]), np.array([[1, 8, 9]])
    np.testing.assert_allclose(model(ids), expected(ids), atol=1e-6)
