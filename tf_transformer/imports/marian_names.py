"""The names of weights in Marian's own files, for the names in Transformers.

>>> marian_name("model.encoder.layers.0.self_attn.q_proj.weight")
'encoder_l1_self_Wq'
"""

import re

EMBEDDING = {
    "all": "Wemb",  # one matrix for source and target
    "source": "encoder_Wemb",
    "target": "decoder_Wemb",
    "output": "decoder_ff_logit_out_W",  # (D, V)
    "output_transposed": "decoder_ff_logit_out_Wt",  # (V, D)
}
BIAS = "decoder_ff_logit_out_b"  # (1, V)
OPTIONS = "special:model.yml"  # bytes of a text
_NAME = re.compile(r"model\.(encoder|decoder)\.layers\.(\d+)\.(\w+?)(?:\.(\w+))?\.(weight|bias)")
_BLOCKS = {
    **{"self_attn": "self", "encoder_attn": "context", "fc1": "ffn", "fc2": "ffn"},
    "self_attn_layer_norm": "self_Wo",
    "encoder_attn_layer_norm": "context_Wo",
    "final_layer_norm": "ffn_ffn",
}
_LETTERS = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "out_proj": "o", "fc1": "1", "fc2": "2"}


def marian_name(name: str) -> str:
    """The name of a layer's array in Marian.

    Its matrices are (inputs, outputs), its vectors (1, outputs).

    Args:
        name: the name in Transformers, of a weight of a layer.

    Raises:
        ValueError: if no layer has such a weight.

    Example:
        >>> marian_name("model.decoder.layers.1.final_layer_norm.bias")
        'decoder_l2_ffn_ffn_ln_bias'
    """
    found = _NAME.fullmatch(name)
    if found is None or found[3] not in _BLOCKS:
        raise ValueError(f"no layer of a Marian model has the weight {name!r}.")
    side, number, block, projection, kind = found.groups()
    of_layer = f"{side}_l{int(number) + 1}_{_BLOCKS[block]}"
    if block.endswith("layer_norm"):
        return f"{of_layer}_ln_{'scale' if kind == 'weight' else 'bias'}"
    return f"{of_layer}_{'W' if kind == 'weight' else 'b'}{_LETTERS[projection or block]}"
