"""Writes a translator as a folder for ONNX runtimes, such as onnxruntime.

model.onnx has the whole search, from ids to ids, for any number of texts of any length. tf2onnx
converts the graph that a SavedModel has. `standalone.py` writes the rest of the folder.
"""

import importlib.util
import logging
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tf_transformer.config import Quantization
from tf_transformer.errors import InputError
from tf_transformer.export import standalone
from tf_transformer.inference.text_graph import Outputs

if TYPE_CHECKING:
    import onnx

    from tf_transformer.inference.translator import Translator

PACKAGES = ("onnx", "onnxruntime", "tf2onnx")
OPSET = 18  # what tf2onnx writes; onnxruntime has it since 1.14
# tf2onnx 1.17 converts the rule for n-grams without an error, but then translations differ.
LACKING = {**standalone.LACKING, "no_repeat_ngram_size": "0"}
LEFT_OUT = ("score of given translations", *standalone.LEFT_OUT)
AXES = {"source": "BS", "ids": "BNL", "scores": "BN", "log_probabilities": "BN"}


def write(
    translator: "Translator",
    folder: pathlib.Path,
    quantization: Quantization,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Writes the folder from a translator with float32 weights.

    The quantization is the dtype of the stored weights, float32 or int8. `facts` are for
    metadata.json. An `InputError` names what the form or the converter lacks.
    """
    require_packages()
    standalone.require_supported(translator.config, "onnx", LACKING)
    model = graph_of(translator)
    if quantization == "int8":
        from tf_transformer.export import onnx_int8

        onnx_int8.round_weights(model)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    own = {"weights": quantization, "left_out": LEFT_OUT}
    program = "tf_transformer.export.run_in_onnx"
    standalone.write(translator, folder, program, {**(facts or {}), **own})


def require_packages() -> None:
    """Raises an `InputError` when a package is not installed."""
    lacking = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if lacking:
        raise InputError(
            f"--format onnx needs the package {lacking[0]}: pip install 'tf_transformer[onnx]'"
        )


def graph_of(translator: "Translator") -> "onnx.ModelProto":
    """The search of a translator as an ONNX model; `run_in_onnx.py` describes its tensors."""
    import onnx
    import tf2onnx

    from tf_transformer.export.onnx_loops import take_out_constants

    search = translator.graph().whole_search

    def of_ids(source: tf.Tensor) -> Outputs:
        best = search(source)
        return {name: getattr(best, name) for name in AXES if name != "source"}

    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)  # the check below names an operation
    model, _ = tf2onnx.convert.from_function(
        tf.function(of_ids, autograph=False),
        input_signature=[tf.TensorSpec((None, None), tf.int32, name="source")],
        opset=OPSET,
        # Its default is the source, which ONNX cannot say.
        custom_op_handlers={"PlaceholderWithDefault": (lambda *given: given[1], ["Identity"])},
    )
    take_out_constants(model.graph)
    for tensor in (*model.graph.input, *model.graph.output):
        for size, letter in zip(tensor.type.tensor_type.shape.dim, AXES[tensor.name], strict=False):
            if not size.dim_value:
                size.dim_param = letter
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise InputError(
            f"ONNX has no form of this model. The first operation that it lacks: {error}. Use "
            "--format saved_model."
        ) from error
    return model
