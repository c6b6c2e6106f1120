"""Hugging Face's MarianMTModel of the same sizes; its loss has no label smoothing, torch's has."""

import torch
from marian import marian_config
from torch import nn
from train_torch import torch_task
from train_workload import DROPOUT, Task, Work
from transformers import MarianMTModel
from workload import THREADS


def task(work: Work) -> Task:
    """Trains the model of this size."""
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    return torch_task(_Logits(work), work, compiled=False)


class _Logits(nn.Module):
    """Gives logits alone."""

    def __init__(self, work: Work):
        super().__init__()
        self.model = MarianMTModel(marian_config(work.shape, dropout=DROPOUT))

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.model(source, decoder_input_ids=target, use_cache=False).logits
