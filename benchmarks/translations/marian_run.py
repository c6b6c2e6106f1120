"""A run's model as Hugging Face's MarianMTModel: the same weights, for `generate`."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import GenerationConfig, MarianMTModel

from benchmarks.decode.marian import marian_config
from benchmarks.harness.shapes import END_ID, PAD_ID, START_ID, Shape

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator
    from tf_transformer.text.codec import Codec

_POSITIONS = "positions.npy"
_EPSILON = 1e-6  # of our layer norms; Marian's configuration has no such field


def save(translator: "Translator", folder: str) -> None:
    """Writes the model of a post-norm run, with our weights, as Hugging Face's folder."""
    from tf_transformer.export.to_ctranslate2 import positions, specification

    config = translator.model.config
    sizes = (config.num_layers, config.d_model, config.d_ff, config.num_heads)
    shape, count = Shape(*sizes, translator.model.vocabulary_size), positions(translator)
    marian = marian_config(shape)
    marian.max_position_embeddings = count
    model = MarianMTModel(marian)
    weights = specification(translator.model, count, np.dtype(np.float32))
    state = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
    state |= {name: torch.from_numpy(value) for name, value in _state(weights)}
    model.load_state_dict(state)
    model.save_pretrained(folder)  # leaves out the positions
    np.save(f"{folder}/{_POSITIONS}", weights.encoder.position_encodings.encodings)


def is_supported(translator: "Translator") -> bool:
    """Whether Marian's layers compute the model."""
    config = translator.model.config
    return (config.norm_first, config.position, config.activation) == (False, "sinusoidal", "relu")


def _state(weights: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The weights of CTranslate2's specification, by Marian's names. All other biases are 0."""
    yield "model.shared.weight", weights.decoder.embeddings.weight
    yield "lm_head.weight", weights.decoder.projection.weight
    for side, stack in (("encoder", weights.encoder), ("decoder", weights.decoder)):
        embeddings = stack.embeddings if side == "decoder" else stack.embeddings[0]
        yield f"model.{side}.embed_tokens.weight", embeddings.weight
        for number, layer in enumerate(stack.layer):
            name = f"model.{side}.layers.{number}"
            yield from _attention(f"{name}.self_attn", layer.self_attention)
            if side == "decoder":
                yield from _attention(f"{name}.encoder_attn", layer.attention)
            for part, linear in (("fc1", layer.ffn.linear_0), ("fc2", layer.ffn.linear_1)):
                yield f"{name}.{part}.weight", linear.weight
                yield f"{name}.{part}.bias", linear.bias
            yield from _norm(f"{name}.final_layer_norm", layer.ffn.layer_norm)


def _attention(name: str, part: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Queries, keys and values are rows of one matrix, or of two."""
    *inputs, output = [linear.weight for linear in part.linear]
    projections = np.split(np.concatenate(inputs), 3)
    for kind, matrix in zip(("q", "k", "v", "out"), [*projections, output], strict=True):
        yield f"{name}.{kind}_proj.weight", matrix
    yield from _norm(f"{name}_layer_norm", part.layer_norm)


def _norm(name: str, norm: Any) -> Iterator[tuple[str, np.ndarray]]:
    yield f"{name}.weight", norm.gamma
    yield f"{name}.bias", norm.beta


def translate_with(
    folder: str, codec: "Codec", search: dict[str, Any], batch_size: int
) -> Callable[[Sequence[str]], list[str]]:
    """Translates lists of strings with `generate`, in batches of similar length.

    Args:
        folder: that `save` wrote.
        codec: of the run.
        search: beam_size, length_penalty and max_extra_length.
        batch_size: lines of a batch.
    """
    model = MarianMTModel.from_pretrained(folder).eval()
    encodings = torch.from_numpy(np.load(f"{folder}/{_POSITIONS}"))
    for side in (model.model.encoder, model.model.decoder):
        side.embed_positions.weight.data.copy_(encodings)
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = _EPSILON
    config = GenerationConfig(
        num_beams=search["beam_size"],
        length_penalty=search["length_penalty"],
        early_stopping=True,
        decoder_start_token_id=START_ID,
        eos_token_id=END_ID,
        pad_token_id=PAD_ID,
        bad_words_ids=[[PAD_ID], [START_ID]],
    )

    @torch.inference_mode()
    def translate(lines: Sequence[str]) -> list[str]:
        rows = list(map(torch.tensor, codec.encode_batch("source", lines)))
        order = sorted(range(len(lines)), key=lambda i: -len(rows[i]))
        result = [""] * len(lines)
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            source = torch.nn.utils.rnn.pad_sequence([rows[i] for i in batch], batch_first=True)
            found = model.generate(
                source,
                attention_mask=(source != PAD_ID).long(),
                generation_config=config,
                max_new_tokens=source.shape[1] + search["max_extra_length"],
            )
            for i, ids in zip(batch, found[:, 1:].tolist(), strict=True):
                result[i] = codec.decode("target", [token for token in ids if token > END_ID])
        return result

    return translate
