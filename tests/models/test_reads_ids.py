"""Each model in Keras' own methods: export, weights of examples, quantization, files."""

import warnings

import keras
import numpy as np
import pytest
import reference

from tf_transformer import layers
from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.models.encoder_only import Classifier, MaskedLanguageModel, TextEncoder
from tf_transformer.models.ensemble import Ensemble
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.models.reads_ids import ReadsIds
from tf_transformer.models.recurrent import RecurrentModel
from tf_transformer.models.transformer import Transformer

V = 20
SIZES = {"num_layers": 1, "d_model": 8, "d_ff": 16, "num_heads": 2, "dropout_rate": 0.0}
CONFIG = ModelConfig(**SIZES)
MODELS = {
    "transformer": lambda: Transformer(V, CONFIG),
    "bahdanau": lambda: RecurrentModel(V, ModelConfig(**SIZES, architecture="bahdanau")),
    "luong": lambda: RecurrentModel(V, ModelConfig(**SIZES, architecture="luong")),
    "ensemble": lambda: Ensemble([Transformer(V, CONFIG), Transformer(V, CONFIG)]),
    "language_model": lambda: LanguageModel(V, CONFIG),
    "masked": lambda: MaskedLanguageModel(V, CONFIG),
    "classifier": lambda: Classifier(V, ["a", "b", "c"], CONFIG),
}
SOURCE = np.array([[5, 6, 7, 2, 0], [8, 9, 2, 0, 0]], "int32")
TARGET = np.array([[1, 8, 9], [1, 7, 0]], "int32")
LABELS = np.array([[8, 9, 2], [7, 2, 0]], "int32")

each_model = pytest.mark.parametrize("name", MODELS)


def inputs_of(model, source=SOURCE, target=TARGET):
    return (source, target) if model.has_two_inputs else source


def called(model, inputs):
    """A model's outputs; a functional model takes a list of inputs, a subclassed one a tuple."""
    return reference.array(model(inputs))


def made(name):
    """A model with random weights, called with one row of two ids."""
    model = MODELS[name]()
    short = np.array([[4, 2]], "int32")
    model(inputs_of(model, short, short))
    return reference.randomize(model)


# Export

IDS = keras.InputSpec(shape=(None, None), dtype="int32")


def export(model, folder):
    model.export(folder, verbose=False)


def export_with_a_signature(model, folder):
    signature = (IDS, IDS) if model.has_two_inputs else IDS
    model.export(folder, input_signature=[signature], verbose=False)


def export_a_functional_model(model, folder):
    ids = (keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32"))
    inputs = ids if model.has_two_inputs else ids[0]
    keras.Model(inputs, model(inputs)).export(folder, verbose=False)


def export_an_archive(model, folder):
    archive = keras.export.ExportArchive()
    archive.track(model)
    ids = [IDS] * (1 + model.has_two_inputs)
    archive.add_endpoint("serve", lambda *x: model(x if model.has_two_inputs else x[0]), ids)
    archive.write_out(folder, verbose=False)


def save_a_module(model, folder):
    import tensorflow as tf

    module, ids = tf.Module(), [tf.TensorSpec((None, None), "int32")] * (1 + model.has_two_inputs)
    module.model = model
    module.serve = tf.function(lambda *x: model(x if model.has_two_inputs else x[0]), ids)
    tf.saved_model.save(module, folder, signatures={"serving_default": module.serve})


WAYS = [
    *(export, export_with_a_signature, export_a_functional_model),
    *(export_an_archive, save_a_module),
]
if keras.backend.backend() != "tensorflow":
    WAYS.remove(save_a_module)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(name, way, marks=[] if name == "transformer" else pytest.mark.slow)
        for name in MODELS
        for way in WAYS
    ],
)
def test_a_model_is_exported_in_each_way_of_keras(name, way, tmp_path):
    """Rows have other lengths than those of the model's first call. Oracle: the model itself."""
    import tensorflow as tf

    model = made(name)
    way(model, str(tmp_path))
    loaded, inputs = tf.saved_model.load(str(tmp_path)), inputs_of(model)
    takes_each = model.has_two_inputs and way in (export_an_archive, save_a_module)
    output = loaded.serve(*inputs) if takes_each else loaded.serve(inputs)
    np.testing.assert_allclose(output, called(model, inputs_of(model)), atol=1e-5)


@pytest.mark.parametrize("state", ["built", "loaded"])
def test_a_model_that_was_not_called_is_exported_too(state, tmp_path):
    import tensorflow as tf

    model = MODELS["transformer"]()
    model.build()
    if state == "loaded":
        model.save(tmp_path / "model.keras")
        model = keras.saving.load_model(tmp_path / "model.keras")
    model.export(str(tmp_path / "1"), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "1"))
    found = loaded.serve((SOURCE, TARGET))
    np.testing.assert_allclose(found, called(model, (SOURCE, TARGET)), atol=1e-5)


def test_a_functional_model_of_a_text_encoder_is_exported(tmp_path):
    import tensorflow as tf

    ids = keras.Input((None,), dtype="int32")
    model = reference.randomize(keras.Model(ids, TextEncoder(V, CONFIG)(ids)))
    model.export(str(tmp_path), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(loaded.serve(SOURCE), called(model, SOURCE), atol=1e-5)


@each_model
def test_float_ids_stay_an_error(name):
    """Also with integral values; Keras would convert them to the dtype of the inputs."""
    model = made(name)
    wrong = inputs_of(model, SOURCE.astype("float32"))
    for call in (model, lambda x: model.predict(x, verbose=0)):
        with pytest.raises(InputError, match=r"expected ids as a tensor of integers .* float32"):
            call(wrong)
    with pytest.raises(InputError, match=r"expected ids as a tensor of integers .* float32"):
        model(inputs_of(model, keras.Input((None,)), keras.Input((None,), dtype="int32")))


def test_float_ids_of_an_embedding_are_an_error():
    ids, embedding = keras.Input((None,)), layers.TokenEmbedding(V, 8)
    for call in (embedding, keras.Model(ids, embedding(ids))):
        with pytest.raises(InputError, match="expected ids as a tensor of integers, got float32"):
            call(SOURCE.astype("float32"))


# Weights of examples


def compiled(model):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss, jit_compile=reference.FIT_COMPILES)
    return model


@pytest.mark.parametrize("name", [name for name in MODELS if name != "classifier"])
def test_class_weight_of_a_model_of_tokens_is_an_error(name):
    model = compiled(MODELS[name]())
    inputs, weights = inputs_of(model, SOURCE[:, :3]), {2: 0.1}
    message = "class_weight needs one label for each row, but .* Give sample_weight of the shape"
    with pytest.raises(InputError, match=message):
        model.fit(inputs, LABELS, class_weight=weights)
    with pytest.raises(InputError, match=message):
        model.train_on_batch(inputs, LABELS, None, weights)  # by position


def test_sample_weight_has_the_shape_of_the_labels():
    """Oracle: the weighted mean of the cross-entropy in NumPy."""
    model = compiled(made("transformer"))
    weights = np.linspace(0, 2, V).astype("float32")[LABELS]
    log_p = np.log(reference.softmax(called(model, (SOURCE, TARGET)).astype("float64")))
    losses = -np.take_along_axis(log_p, LABELS[..., None], axis=-1)[..., 0]
    found = model.evaluate((SOURCE, TARGET), LABELS, sample_weight=weights, verbose=0)
    np.testing.assert_allclose(found, (losses * weights).mean(), rtol=1e-5)
    fitted = model.fit((SOURCE, TARGET), LABELS, sample_weight=weights, verbose=0)
    np.testing.assert_allclose(fitted.history["loss"], [found], rtol=1e-5)


def test_weights_of_rows_of_labels_are_an_error():
    """Keras would give them to positions, if there are as many positions as rows."""
    model = compiled(made("transformer"))
    inputs, weights = (SOURCE, TARGET[:, :2]), np.array([1.0, 0.0])
    for method in (model.fit, model.evaluate, model.train_on_batch, model.test_on_batch):
        with pytest.raises(
            InputError, match=r"sample_weight \(batch,\) needs one label for each row"
        ):
            method(inputs, LABELS[:, :2], sample_weight=weights)


def test_class_weight_of_a_classifier_weighs_its_rows():
    """Oracle: `sample_weight`, a number for each row."""
    losses, classes = [], np.array([2, 0])
    for weights in ({"class_weight": {2: 3.0}}, {"sample_weight": np.array([3.0, 1.0])}):
        keras.utils.set_random_seed(1)
        model = compiled(Classifier(V, ["a", "b", "c"], CONFIG))
        losses.append(model.fit(SOURCE, classes, **weights, verbose=0).history["loss"][0])
    assert losses[0] == pytest.approx(losses[1])
    several = Classifier(V, ["a", "b", "c"], CONFIG, separator=",")
    several.compile("sgd", keras.losses.BinaryCrossentropy(from_logits=True))
    with pytest.raises(InputError, match="class_weight needs one label for each row"):
        several.fit(SOURCE, np.array([[1, 0, 1], [0, 1, 1]]), class_weight={2: 3.0})


# Quantization


@each_model
def test_quantization_is_an_error_that_names_what_works(name):
    model = made(name)
    message = "Keras cannot quantize .* --format ctranslate2 --quantization int8"
    with pytest.raises(InputError, match=message):
        model.quantize("int8")
    with pytest.raises(InputError, match=message):
        type(model).from_config(model.get_config() | {"dtype": "int8_from_float32"})


def test_a_quantized_model_with_layers_of_this_package_is_saved(tmp_path):
    """Keras' own layers are quantized, and others stay as they are."""
    ids = keras.Input((None,), dtype="int32")
    x = layers.TokenEmbedding(V, 8)(ids)
    x = layers.Encoder(num_layers=1, num_heads=2, key_dim=4, d_ff=6)(x).output
    head = keras.layers.Dense(3)
    model = reference.randomize(keras.Model(ids, head(x)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.quantize("int8")
    assert head.quantization_mode == "int8"
    said = [
        str(each.message) for each in caught if "could not hold it in int8" in str(each.message)
    ]
    assert len(said) == 4  # query, key and value; output; two of the feed-forward network
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(called(loaded, SOURCE), called(model, SOURCE))


# Files and copies


@each_model
def test_a_model_is_saved_and_copied(name, tmp_path):
    model = made(name)
    assert isinstance(model, ReadsIds)
    expected = called(model, inputs_of(model))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", custom_objects={"Own": dict})
    np.testing.assert_array_equal(called(loaded, inputs_of(model)), expected)
    copy = keras.models.clone_model(model)
    if not copy.built:
        copy.build()
    copy.set_weights(model.get_weights())
    np.testing.assert_array_equal(called(copy, inputs_of(model)), expected)
    assert type(model).from_config(model.get_config()).get_config() == model.get_config()
    model.save_weights(tmp_path / "model.weights.h5")
    copy = MODELS[name]()
    copy.build()
    copy.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(called(copy, inputs_of(model)), expected)
