"""torch.nn.Transformer, eager or through torch.compile."""

import math

import torch
from torch import nn
from torch.nn import functional

from benchmarks.harness.shapes import PAD_ID, THREADS, Shape
from benchmarks.harness.tasks import Setting, Task
from benchmarks.train.workload import (
    BETAS,
    DROPOUT,
    EPSILON,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    Cell,
    batches_of,
    sinusoids,
    tokens_of,
)


def task(setting: Setting, cell: Cell, compiled: bool) -> Task:
    """Trains the model of this shape."""
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    return torch_task(_Model(setting.shape, cell), setting, cell, compiled)


def torch_task(model: nn.Module, setting: Setting, cell: Cell, compiled: bool) -> Task:
    """Trains a module (source, target) to logits, on the GPU that the process has."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, LEARNING_RATE, betas=BETAS, eps=EPSILON, fused=True)
    made = batches_of(setting, cell)
    data = [tuple(torch.from_numpy(ids).long().to(device) for ids in batch) for batch in made]

    def loss_of(source, target, labels):
        with torch.autocast(device, torch.bfloat16, enabled=cell.dtype == "bfloat16"):
            logits = model(source, target)
        return functional.cross_entropy(
            logits.flatten(0, 1).float(),
            labels.flatten(),
            ignore_index=PAD_ID,
            label_smoothing=LABEL_SMOOTHING,
        )

    loss_of = torch.compile(loss_of) if compiled else loss_of

    def run() -> float:
        losses = []
        for batch in data:
            optimizer.zero_grad()
            loss = loss_of(*batch)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return float(torch.stack(losses).mean())

    model.train()
    parameters = sum(parameter.numel() for parameter in trained)
    return Task(tokens_of(made), run, float, len(made), parameters)


class _Model(nn.Module):
    """Embeddings, sinusoids, nn.Transformer without its two final norms, tied output."""

    def __init__(self, shape: Shape, cell: Cell):
        super().__init__()
        self.has_padding = cell.is_text
        self.scale = math.sqrt(shape.d_model)
        self.embedding = nn.Embedding(shape.vocabulary_size, shape.d_model)
        nn.init.normal_(self.embedding.weight, std=1 / self.scale)
        self.dropout = nn.Dropout(DROPOUT)
        sizes = (shape.d_model, shape.num_heads, shape.num_layers, shape.num_layers, shape.d_ff)
        self.transformer = nn.Transformer(*sizes, dropout=DROPOUT, batch_first=True)
        self.register_buffer("positions", torch.from_numpy(sinusoids(shape, cell.tokens)))
        mask = nn.Transformer.generate_square_subsequent_mask(cell.tokens)
        self.register_buffer("causal", mask)
        self._remove_additions_to_the_paper()

    def _remove_additions_to_the_paper(self) -> None:
        """Norms after the stacks, dropout on attention weights and in feed-forward networks."""
        for stack in (self.transformer.encoder, self.transformer.decoder):
            stack.norm = None
            for layer in stack.layers:
                layer.dropout.p = 0.0
                layer.self_attn.dropout = 0.0
        for layer in self.transformer.decoder.layers:
            layer.multihead_attn.dropout = 0.0

    def _embedded(self, ids: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.shape[1]])

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        is_padding = source == PAD_ID if self.has_padding else None
        length = target.shape[1]
        x = self.transformer(
            self._embedded(source),
            self._embedded(target),
            src_key_padding_mask=is_padding,
            memory_key_padding_mask=is_padding,
            tgt_mask=self.causal[:length, :length],
            tgt_is_causal=True,
        )
        return functional.linear(x, self.embedding.weight)
