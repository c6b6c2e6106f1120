"""Writes a translator as a folder for ONNX runtimes, such as onnxruntime.

model.onnx has the whole search, from ids to ids, for any number of texts of any length. For kept
spans, attention.onnx has the attention of given translations. tf2onnx converts graphs of a
SavedModel. `standalone.py` writes the rest of the folder.
"""

import importlib.util
import logging
import pathlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tf_transformer.config import Quantization
from tf_transformer.errors import InputError
from tf_transformer.export import standalone
from tf_transformer.export.run_in_onnx import Model
from tf_transformer.inference.kept_graph import attention
from tf_transformer.inference.text_graph import Outputs

if TYPE_CHECKING:
    import onnx

    from tf_transformer.inference.translator import Translator

PACKAGES = ("onnx", "onnxruntime", "tf2onnx")
OPSET = 18  # what tf2onnx writes; onnxruntime has it since 1.14
LEFT_OUT = ("score of given translations", *standalone.LEFT_OUT)
OUTPUTS = ("ids", "scores", "log_probabilities")  # of the search
AXES = {
    **{"source": "BS", "target": "BT", "attention": "BTS"},
    **{"ids": "BNL", "scores": "BN", "log_probabilities": "BN"},
}


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
    require_package()
    from tf_transformer.export import onnx_int8, onnx_weights

    standalone.require_supported(translator.config, "onnx")
    models = graphs_of(translator)
    for model in models.values() if quantization == "int8" else ():
        onnx_int8.round_weights(model)
    folder.mkdir(parents=True, exist_ok=True)
    onnx_weights.write(models, folder)
    own = {"weights": quantization, "left_out": LEFT_OUT}
    program = "tf_transformer.export.run_in_onnx"
    standalone.write(translator, folder, program, {**(facts or {}), **own})


def require_package() -> None:
    """Raises an `InputError` when a package is not installed."""
    lacking = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if lacking:
        raise InputError(
            f"--format onnx needs the package {lacking[0]}: pip install 'tf_transformer[onnx]'"
        )


def graphs_of(translator: "Translator") -> dict[str, "onnx.ModelProto"]:
    """The models of a folder by file; `run_in_onnx.py` describes their tensors."""
    search = translator.graph().whole_search

    def of_ids(source: tf.Tensor) -> Outputs:
        best = search(source)
        return {name: getattr(best, name) for name in OUTPUTS}

    def attend(source: tf.Tensor, target: tf.Tensor) -> Outputs:
        return {"attention": attention(search.model, source, target, search.config)}

    models = {Model.file: _converted(of_ids, "source")}
    if search.config.keep:
        models[Model.attention_file] = _converted(attend, "source", "target")
    return models


def _converted(function: Callable[..., Outputs], *inputs: str) -> "onnx.ModelProto":
    """A function of ids, int32 (B, None) each, as an ONNX model."""
    import onnx
    import tf2onnx

    from tf_transformer.export.onnx_loops import take_out_constants

    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)  # the check below names an operation
    model, _ = tf2onnx.convert.from_function(
        tf.function(function, autograph=False),
        input_signature=[tf.TensorSpec((None, None), tf.int32, name=name) for name in inputs],
        opset=OPSET,
        custom_op_handlers={
            # Its default is the source, which ONNX cannot say.
            "PlaceholderWithDefault": (lambda *given: given[1], ["Identity"]),
            "Erfc": (_one_minus_erf, ["Sub"]),  # of gelu
            "ScatterNd": (_adding_scatter, ["ScatterND"]),  # of the rule for n-grams
        },
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


def _one_minus_erf(graph: Any, node: Any, name: str, _: Any) -> None:
    """erfc, for tf2onnx, which lacks it."""
    erf = graph.make_node("Erf", node.input)
    one = graph.make_const(f"{name}_one", np.float32(1))
    graph.replace_inputs(node, [one.output[0], erf.output[0]])


def _adding_scatter(graph: Any, node: Any, *_: Any) -> None:
    """The sum of updates at an index, in place of tf2onnx's last of them."""
    from tf2onnx.onnx_opset.tensor import ScatterND

    ScatterND.version_11(graph, node)
    node.set_attr("reduction", "add")
