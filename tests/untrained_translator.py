"""A small translator with random weights, for tests of exports."""

import numpy as np

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.inference.translator import Translator
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.codec import Codec
from tf_transformer.text.special_ids import EOS_ID

SIZES = {"num_layers": 1, "d_model": 16, "d_ff": 24, "num_heads": 2}


def untrained(tokenizer, decode=None, end=0.0, **model_options) -> Translator:
    """A translator with random weights, biases and gains, whose logits differ enough to avoid ties.

    This project excludes padding and the start token, and a trained model never predicts them.
    Here their output embeddings oppose the bias of the last layer norm, which makes them unlikely.
    """
    rng = np.random.default_rng(3)
    model = Transformer(tokenizer.vocabulary_size, ModelConfig(**(SIZES | model_options)))
    model.build()
    for weight in model.weights:
        scale = 0.5 if len(weight.shape) == 1 else 1.2 * weight.shape[-1] ** -0.5
        values = rng.normal(scale=scale, size=weight.shape)
        weight.assign(values + (1 if weight.name == "gamma" else 0))
    last = model.decoder.final_norm or model.decoder.layers[-1].feed_forward_residual.norm
    if hasattr(last, "beta"):
        last.beta.assign(np.where(np.arange(last.beta.shape[0]) == 0, 4.0, last.beta))
    last.gamma.assign(np.where(np.arange(last.gamma.shape[0]) == 0, 0.1, last.gamma))
    output = np.array(model.output_embedding.embeddings)
    output[:, 0] = 0.0
    output[:2, 0] = -5.0
    output[EOS_ID, 0] = end  # larger values end translations earlier
    model.output_embedding.embeddings.assign(output)
    decode = {"beam_size": 3, "max_extra_length": 6, "max_source_length": 40} | (decode or {})
    return Translator(model, Codec(tokenizer), DecodeConfig(**decode))
