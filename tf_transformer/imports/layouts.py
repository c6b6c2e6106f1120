"""The names of arrays in the formats that are imported and exported, one table per format."""

from tf_transformer.config import ModelConfig
from tf_transformer.imports.layout import Layout


def _in_layer(start: str, parts: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Names with the start of a layer's names before them."""
    return {part: tuple(start + name for name in names.split()) for part, names in parts.items()}


# `MarianMTModel` of Transformers. Its embeddings and the bias of its logits are not in the table.
TRANSFORMERS = Layout(
    _in_layer(
        "model.{side}.layers.{number}.",
        {
            "self_attention/query_key_value": "self_attn.q_proj.{kind} self_attn.k_proj.{kind} "
            "self_attn.v_proj.{kind}",
            "self_attention/output": "self_attn.out_proj.{kind}",
            "attention_residual/norm": "self_attn_layer_norm.{kind}",
            "cross_attention/query": "encoder_attn.q_proj.{kind}",
            "cross_attention/key_value": "encoder_attn.k_proj.{kind} encoder_attn.v_proj.{kind}",
            "cross_attention/output": "encoder_attn.out_proj.{kind}",
            "cross_residual/norm": "encoder_attn_layer_norm.{kind}",
            "feed_forward/hidden": "fc1.{kind}",
            "feed_forward/output": "fc2.{kind}",
            "feed_forward_residual/norm": "final_layer_norm.{kind}",
        },
    ),
    last_norm="model.{side}.layer_norm.{kind}",
    kinds={"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"},
)
# fairseq, whose modules gave Transformers these names.
FAIRSEQ = TRANSFORMERS._replace(
    parts={
        part: tuple(name.removeprefix("model.") for name in names)
        for part, names in TRANSFORMERS.parts.items()
    },
    last_norm=TRANSFORMERS.last_norm.removeprefix("model."),
)
# Marian's own files: matrices (inputs, outputs), vectors (1, outputs). Post-norm models only.
MARIAN = Layout(
    _in_layer(
        "{side}_l{number}_",
        {
            "self_attention/query_key_value": "self_{kind}q self_{kind}k self_{kind}v",
            "self_attention/output": "self_{kind}o",
            "attention_residual/norm": "self_Wo_ln_{kind}",
            "cross_attention/query": "context_{kind}q",
            "cross_attention/key_value": "context_{kind}k context_{kind}v",
            "cross_attention/output": "context_{kind}o",
            "cross_residual/norm": "context_Wo_ln_{kind}",
            "feed_forward/hidden": "ffn_{kind}1",
            "feed_forward/output": "ffn_{kind}2",
            "feed_forward_residual/norm": "ffn_ffn_ln_{kind}",
        },
    ),
    last_norm="",
    kinds={"kernel": "W", "bias": "b", "gamma": "scale", "beta": "bias"},
    first=1,
    is_transposed=False,
)
_CTRANSLATE2 = {
    "self_attention/query_key_value": "self_attention/linear_0/{kind}",
    "self_attention/output": "self_attention/linear_1/{kind}",
    "attention_residual/norm": "self_attention/layer_norm/{kind}",
    "cross_attention/query": "attention/linear_0/{kind}",
    "cross_attention/key_value": "attention/linear_1/{kind}",
    "cross_attention/output": "attention/linear_2/{kind}",
    "cross_residual/norm": "attention/layer_norm/{kind}",
    "feed_forward/hidden": "ffn/linear_0/{kind}",
    "feed_forward/output": "ffn/linear_1/{kind}",
    "feed_forward_residual/norm": "ffn/layer_norm/{kind}",
}


def ctranslate2(config: ModelConfig) -> Layout:
    """CTranslate2, which joins the projections of one input in one matrix, as this project does.

    Args:
        config: the configuration of the model. The hidden layer of SwiGLU has two matrices.
    """
    gated = {"feed_forward/hidden": "ffn/linear_0/{kind} ffn/linear_0_noact/{kind}"}
    return Layout(
        _in_layer(
            "{side}/layer_{number}/",
            _CTRANSLATE2 | (gated if config.activation == "swiglu" else {}),
        ),
        last_norm="{side}/layer_norm/{kind}",
        kinds={"kernel": "weight", "bias": "bias", "gamma": "gamma", "beta": "beta"},
    )


_OPENNMT = {
    "self_attention/query_key_value": "self_attention/layer/linear_queries/{kind} "
    "self_attention/layer/linear_keys/{kind} self_attention/layer/linear_values/{kind}",
    "self_attention/output": "self_attention/layer/linear_output/{kind}",
    "attention_residual/norm": "self_attention/NORM/{kind}",
    "cross_attention/query": "attention/0/layer/linear_queries/{kind}",
    "cross_attention/key_value": "attention/0/layer/linear_keys/{kind} "
    "attention/0/layer/linear_values/{kind}",
    "cross_attention/output": "attention/0/layer/linear_output/{kind}",
    "cross_residual/norm": "attention/0/NORM/{kind}",
    "feed_forward/hidden": "ffn/layer/inner/{kind}",
    "feed_forward/output": "ffn/layer/outer/{kind}",
    "feed_forward_residual/norm": "ffn/NORM/{kind}",
}


def opennmt_tf(config: ModelConfig) -> Layout:
    """OpenNMT-tf.

    Args:
        config: the configuration of the model. Pre-norm and post-norm models name norms apart.
    """
    norm = "input_layer_norm" if config.norm_first else "output_layer_norm"
    return Layout(
        _in_layer(
            "model/{side}/layers/{number}/",
            {part: names.replace("NORM", norm) for part, names in _OPENNMT.items()},
        ),
        last_norm="model/{side}/layer_norm/{kind}",
        kinds={"kernel": "kernel", "bias": "bias", "gamma": "gamma", "beta": "beta"},
        is_transposed=False,
    )
