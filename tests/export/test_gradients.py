"""Exports hold values alone: what has its own gradient refers to code of the exporting process."""

import pathlib

import keras
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.inference.label_predictor import LabelPredictor
from tf_transformer.inference.text_generator import TextGenerator
from tf_transformer.models.encoder_only import Classifier
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import BYTES, Tokenizer

TEXTS = ["one", "", "two hundred"]
SIZES = {"num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 2}


def nodes_with_gradients(path):
    """Names of the nodes of a SavedModel that TensorFlow makes for gradients of their own."""
    content = (pathlib.Path(path) / "saved_model.pb").read_bytes()
    graph = saved_model_pb2.SavedModel.FromString(content).meta_graphs[0].graph_def
    assert not graph.library.gradient
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    return [x.name for x in nodes if x.op == "IdentityN" or "_gradient_op_type" in x.attr]


def test_a_loaded_export_can_be_exported_in_another_model(served, translator, tmp_path):
    assert nodes_with_gradients(served) == []
    inputs = keras.Input((), dtype="string")
    model = keras.Model(
        inputs, keras.layers.TFSMLayer(served, call_endpoint="serving_default")(inputs)
    )
    model.export(tmp_path / "again", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "again"))  # holds the variables
    found = loaded.serve(tf.constant(TEXTS))["translation"].numpy()
    expected = [x.text for x in translator(TEXTS)]
    assert [text.decode() for text in found] == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda t, d: LabelPredictor(
            Classifier(BYTES, ["a"], ModelConfig(**SIZES, activation="swiglu")), t, d
        ),
        lambda t, d: TextGenerator(
            LanguageModel(
                BYTES,
                ModelConfig(
                    **SIZES, activation="gelu", normalization="rms_norm", decoder_attention="ssru"
                ),
            ),
            t,
            d,
        ),
    ],
    ids=["classifier", "language_model"],
)
def test_no_export_has_a_gradient_of_its_own(make, tmp_path):
    predictor = make(Codec(Tokenizer.train([], BYTES)), DecodeConfig(beam_size=1, max_length=3))
    predictor.model.build()
    predictor.save(tmp_path / "1")
    assert nodes_with_gradients(tmp_path / "1") == []
