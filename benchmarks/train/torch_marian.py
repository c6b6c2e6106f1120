"""Hugging Face's MarianMTModel of the same sizes, with torch's loss, which has label smoothing."""

import torch
from torch import nn
from transformers import MarianMTModel

from benchmarks.decode.marian import marian_config
from benchmarks.harness.shapes import THREADS, Shape
from benchmarks.harness.tasks import Setting, Task
from benchmarks.train.torch_transformer import torch_task
from benchmarks.train.workload import DROPOUT, Cell


def task(setting: Setting, cell: Cell) -> Task:
    """Trains the model of this shape."""
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    return torch_task(_Logits(setting.shape), setting, cell, compiled=False)


class _Logits(nn.Module):
    """Returns logits alone."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.model = MarianMTModel(marian_config(shape, dropout=DROPOUT))

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.model(source, decoder_input_ids=target, use_cache=False).logits
