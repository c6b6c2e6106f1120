"""The names of weights in checkpoints of OpenNMT-tf, for the names in Transformers.

>>> opennmt_name("model.encoder.layers.0.self_attn.q_proj.weight", "input_layer_norm")
'model/encoder/layers/0/self_attention/layer/linear_queries/kernel'
"""

import re

SOURCE = "model/examples_inputter/features_inputter/embedding"  # (V, D)
TARGET = "model/examples_inputter/labels_inputter/embedding"  # (V, D), unless it is shared
OUTPUT = "model/decoder/output_layer/kernel"  # (D, V), unless it is shared
BIAS = "model/decoder/output_layer/bias"  # (V,)
_NAME = re.compile(r"model\.(encoder|decoder)\.(?:layers\.(\d+)\.)?(\w+?)(?:\.(\w+))?\.(\w+)")
_BLOCKS = {"self_attn": "self_attention", "encoder_attn": "attention/0", "final": "ffn"}
_DENSE = {
    **{"q_proj": "linear_queries", "k_proj": "linear_keys", "v_proj": "linear_values"},
    **{"out_proj": "linear_output", "fc1": "inner", "fc2": "outer"},
}


def opennmt_name(name: str, norm: str) -> str:
    """The name of a layer's array in OpenNMT-tf. Its matrices are (inputs, outputs).

    Args:
        name: the name in Transformers, of a weight of a layer or of the last norm.
        norm: input_layer_norm for pre-norm models, output_layer_norm for post-norm models.

    Raises:
        ValueError: if no layer has such a weight.

    Example:
        >>> opennmt_name("model.decoder.layers.1.final_layer_norm.bias", "input_layer_norm")
        'model/decoder/layers/1/ffn/input_layer_norm/beta'
    """
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise ValueError(f"no layer of a Transformer has the weight {name!r}.")
    side, number, block, projection, kind = parts.groups()
    if block.endswith("layer_norm"):
        of_block = _BLOCKS.get(block.removesuffix("_layer_norm"))
        place = f"layers/{number}/{of_block}/{norm}" if number else "layer_norm"
        return f"model/{side}/{place}/{'gamma' if kind == 'weight' else 'beta'}"
    dense = _DENSE[projection or block]
    weight = "kernel" if kind == "weight" else "bias"
    return f"model/{side}/layers/{number}/{_BLOCKS.get(block, 'ffn')}/layer/{dense}/{weight}"
