"""The whole model against torch.nn.Transformer, by a stored run of it."""

import pathlib

import keras
import numpy as np
import pytest

from tf_transformer.config import ModelConfig
from tf_transformer.models.transformer import Transformer

FILE = pathlib.Path(__file__).parents[1] / "fixtures" / "torch_reference.npz"


@pytest.fixture(scope="module")
def stored():
    with np.load(FILE) as file:
        return dict(file)


def copy_dense(dense, kernel, bias):
    dense.kernel.assign(kernel.T)  # PyTorch multiplies with the transposed matrix
    dense.bias.assign(bias)


def copy_attention(layer, weights, prefix):
    inputs = (weights[f"{prefix}.in_proj_weight"], weights[f"{prefix}.in_proj_bias"])
    if hasattr(layer, "projection"):
        copy_dense(layer.projection, *inputs)
    else:
        d_model = inputs[0].shape[1]
        copy_dense(layer.query_projection, *(side[:d_model] for side in inputs))
        copy_dense(layer.key_value_projection, *(side[d_model:] for side in inputs))
    output = (weights[f"{prefix}.out_proj.weight"], weights[f"{prefix}.out_proj.bias"])
    copy_dense(layer.output_projection, *output)


def copy_norm(norm, weights, prefix):
    norm.gamma.assign(weights[f"{prefix}.weight"])
    norm.beta.assign(weights[f"{prefix}.bias"])


def copy_layer(layer, weights, prefix):
    """An encoder or a decoder layer; the second has a cross-attention."""
    copy_attention(layer.self_attention, weights, f"{prefix}.self_attn")
    if hasattr(layer, "cross_attention"):
        copy_attention(layer.cross_attention, weights, f"{prefix}.multihead_attn")
        residuals = (layer.attention_residual, layer.cross_residual, layer.feed_forward_residual)
    else:
        residuals = (layer.attention_residual, layer.feed_forward_residual)
    for i, residual in enumerate(residuals, start=1):
        copy_norm(residual.norm, weights, f"{prefix}.norm{i}")
    for dense, name in (
        (layer.feed_forward.hidden, "linear1"),
        (layer.feed_forward.output_projection, "linear2"),
    ):
        copy_dense(dense, weights[f"{prefix}.{name}.weight"], weights[f"{prefix}.{name}.bias"])


def model_with(weights, norm_first):
    config = ModelConfig(
        num_layers=2, d_model=12, d_ff=20, num_heads=2, norm_first=norm_first, attention_bias=True
    )
    model = Transformer(vocabulary_size=11, config=config)
    model.build()
    model.target_embedding.embeddings.assign(weights["embedding"])
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for i, layer in enumerate(stack.layers):
            copy_layer(layer, weights, f"{name}.layers.{i}")
        if norm_first:
            copy_norm(stack.final_norm, weights, f"{name}.norm")
    return model


def theirs_in_ours(theirs) -> int:
    """Weights we should have: cross-attention's query apart, where PyTorch has three in one."""
    outputs = 2
    return len(theirs) - outputs + sum("multihead_attn.in_proj" in name for name in theirs)


@pytest.mark.parametrize(("variant", "norm_first"), [("post_norm", False), ("pre_norm", True)])
def test_memory_and_logits_equal_those_of_torch(stored, variant, norm_first):
    prefix = f"{variant}/"
    theirs = {k.removeprefix(prefix): v for k, v in stored.items() if k.startswith(prefix)}
    model = model_with(theirs, norm_first)
    assert len(model.weights) == theirs_in_ours(theirs)
    source, target = stored["source"], stored["target"]
    memory = keras.ops.convert_to_numpy(model.encode(source))
    logits = keras.ops.convert_to_numpy(model((source, target)))
    np.testing.assert_allclose(memory, theirs["memory"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(logits, theirs["logits"], rtol=0, atol=1e-5)


def test_stored_file_equals_what_torch_makes_now(stored):
    pytest.importorskip("torch")
    from fixtures import make_torch_reference

    made = make_torch_reference.make()
    assert made.keys() == stored.keys()
    for name, array in made.items():
        np.testing.assert_allclose(array, stored[name], rtol=0, atol=1e-5, err_msg=name)
