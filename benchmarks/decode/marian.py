"""Hugging Face's MarianMTModel of the same sizes with random weights, ids in and out."""

import functools
from typing import Any

import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel

from benchmarks.decode.workload import LENGTH_PENALTY, Cell, check_lengths, random_sources
from benchmarks.harness.shapes import END_ID, PAD_ID, START_ID, THREADS, Shape
from benchmarks.harness.tasks import Setting, Task


def task(setting: Setting, cell: Cell) -> Task:
    """Calls `generate` on a batch of ids."""
    model = _model(setting.shape)
    source = torch.from_numpy(random_sources(setting.shape, cell.batch))
    config = GenerationConfig(
        num_beams=cell.beam,
        length_penalty=LENGTH_PENALTY if cell.beam > 1 else 1.0,  # greedy search has none
        min_new_tokens=cell.target_tokens,  # the end token is suppressed until then
        max_new_tokens=cell.target_tokens,
        decoder_start_token_id=START_ID,
        eos_token_id=END_ID,
        pad_token_id=PAD_ID,
    )

    @torch.inference_mode()
    def translate() -> Any:
        mask = torch.ones_like(source)
        return model.generate(source, attention_mask=mask, generation_config=config)

    def check(ids: torch.Tensor) -> None:
        chosen = ids[:, 1:]  # without the start token
        check_lengths((chosen != END_ID).sum(dim=1).tolist(), cell.batch, cell.target_tokens)

    return Task(cell.batch * cell.target_tokens, translate, check)


@functools.cache
def _model(shape: Shape) -> MarianMTModel:
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    return MarianMTModel(marian_config(shape)).eval()


def marian_config(shape: Shape, **options: Any) -> MarianConfig:
    """The paper's model of this shape, without dropout unless `options` have it."""
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", shape.num_layers),
            ("ffn_dim", shape.d_ff),
            ("attention_heads", shape.num_heads),
        )
    }
    return MarianConfig(
        vocab_size=shape.vocabulary_size,
        d_model=shape.d_model,
        activation_function=shape.opus_options.get("activation", "relu"),
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD_ID,
        bos_token_id=START_ID,
        decoder_start_token_id=START_ID,
        eos_token_id=END_ID,
        forced_eos_token_id=None,
        **sides,
        **({"dropout": 0.0} | options),
    )
