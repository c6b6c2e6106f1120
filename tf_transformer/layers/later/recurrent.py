"""Recurrent decoders with attention, the predecessors of the Transformer.

Bahdanau et al. (2015) compute scores with a small network, Luong et al. (2015) with a product.
"""

from typing import Any, ClassVar, NamedTuple

import keras
from keras import KerasTensor, ops

from tf_transformer.kernels.attention import MASKED_SCORE
from tf_transformer.layers.dense import Dense
from tf_transformer.layers.shape import Shape, flatten_positions, unflatten_positions


class MemoryAttention(keras.layers.Layer):
    """softmax(score(query, memory)) · memory. A subclass defines the score.

    Args:
        units: size of the keys.

    Call arguments:
        query: float tensor (B, T, D).
        memory: float tensor (B, S, D').
        keys: float tensor (B, S, units), the result of `keys(memory)`, once for each memory.
        mask: bool tensor (B, S), True = may attend.

    Returns:
        the contexts (B, T, D') and the weights (B, T, S); rows of weights sum to 1.
    """

    def __init__(self, units: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.units = units

    def keys(self, memory: KerasTensor) -> KerasTensor:
        """The part of the score that depends on the memory only: (B, S, D') to (B, S, units)."""
        return self.memory_projection(memory)

    def score(self, query: KerasTensor, keys: KerasTensor) -> KerasTensor:
        """Scores (B, T, S) of queries (B, T, D) and keys (B, S, units)."""
        raise NotImplementedError

    def _product(self, name: str, input_shape: Shape, use_bias: bool = False) -> Dense:
        dense = Dense(self.units, use_bias=use_bias, dtype=self.dtype_policy, name=name)
        dense.build(input_shape)
        return dense

    def call(
        self, query: KerasTensor, memory: KerasTensor, keys: KerasTensor, mask: KerasTensor
    ) -> tuple[KerasTensor, KerasTensor]:
        scores = ops.cast(self.score(query, keys), "float32")
        weights = ops.softmax(ops.where(mask[:, None], scores, MASKED_SCORE), axis=-1)
        weights = ops.cast(weights, memory.dtype)
        return ops.matmul(weights, memory), weights


class AdditiveAttention(MemoryAttention):
    """score = vᵀ tanh(W query + U memory) (Bahdanau et al. 2015, section 3.1)."""

    def build(self, query_shape: Shape, memory_shape: Shape) -> None:
        self.query_projection = self._product("query", query_shape)
        self.memory_projection = self._product("memory", memory_shape, use_bias=True)
        self.v = self.add_weight(name="v", shape=(self.units, 1), initializer="glorot_uniform")

    def score(self, query: KerasTensor, keys: KerasTensor) -> KerasTensor:
        hidden = ops.tanh(self.query_projection(query)[:, :, None] + keys[:, None])
        return ops.matmul(hidden, ops.cast(self.v, hidden.dtype))[..., 0]  # (B, T, S)


class MultiplicativeAttention(MemoryAttention):
    """score = queryᵀ W memory, called "general" by Luong et al. (2015), section 3.1.

    `units` must be the size of the query.
    """

    def build(self, query_shape: Shape, memory_shape: Shape) -> None:
        self.memory_projection = self._product("memory", memory_shape)

    def score(self, query: KerasTensor, keys: KerasTensor) -> KerasTensor:
        return ops.matmul(query, ops.swapaxes(keys, -1, -2))


class DecoderState(NamedTuple):
    """The state of a recurrent decoder for W hypotheses of each sentence (1 in training)."""

    hidden: tuple[KerasTensor, ...]  # (B, W, D) for each layer
    output: KerasTensor  # (B, W, D), the output of the newest step
    weights: KerasTensor  # (B, W, S), attention of the newest step to the memory


class RecurrentDecoder(keras.layers.Layer):
    """`num_layers` GRU layers with attention to a memory. A subclass defines the step."""

    attention_class: ClassVar[type[MemoryAttention]]

    def __init__(self, num_layers: int, d_model: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.num_layers = num_layers
        self.d_model = d_model
        policy = self.dtype_policy
        self.cells = [
            keras.layers.GRUCell(d_model, dtype=policy, name=f"cell_{i}") for i in range(num_layers)
        ]
        self.attention = self.attention_class(d_model, dtype=policy, name="attention")
        self.initial = [
            Dense(d_model, activation="tanh", dtype=policy, name=f"initial_{i}")
            for i in range(num_layers)
        ]
        self.projection = Dense(d_model, activation="tanh", dtype=policy, name="projection")

    def _build(self, memory_shape: Shape, cell_input: int, projection_input: int) -> None:
        sizes = [cell_input] + [self.d_model] * (self.num_layers - 1)
        for cell, size in zip(self.cells, sizes, strict=True):
            cell.build((None, size))
        self.attention.build((None, None, self.d_model), memory_shape)
        for dense in self.initial:
            dense.build((None, memory_shape[-1]))
        self.projection.build((None, None, projection_input))

    def start(self, memory: KerasTensor, mask: KerasTensor, beam_size: int = 1) -> DecoderState:
        """The state before the first step of W hypotheses, from the mean of the memory (B, S, D').

        The mask (B, S) is False at padding.
        """
        real = ops.cast(mask, memory.dtype)[..., None]  # (B, S, 1)
        mean = ops.sum(memory * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1)  # (B, D')
        hidden = tuple(
            ops.repeat(dense(mean)[:, None], beam_size, axis=1) for dense in self.initial
        )
        weights = ops.repeat(ops.zeros_like(real)[..., 0][:, None], beam_size, axis=1)
        return DecoderState(hidden, ops.zeros_like(hidden[0]), weights)

    def step(self, x: KerasTensor, state: DecoderState, *memory: KerasTensor) -> DecoderState:
        """Runs one step of all hypotheses with embeddings x (B, W, D) of the newest tokens.

        `memory` stands for the memory (B, S, D'), its `attention.keys` (B, S, D), and mask (B, S).
        """
        raise NotImplementedError

    def run(
        self, x: KerasTensor, memory: KerasTensor, mask: KerasTensor
    ) -> tuple[KerasTensor, KerasTensor]:
        """Runs all steps of whole targets with embeddings x (B, T, D).

        `memory` (B, S, D') is the encoder's output. The mask (B, S) is False at padding. Returns
        the outputs (B, T, D) and the attention weights (B, T, S).
        """
        sources = (memory, self.attention.keys(memory), mask)

        def step(state: DecoderState, x_t: KerasTensor) -> tuple[DecoderState, DecoderState]:
            new = self.step(x_t[:, None], state, *sources)
            return new, new  # TensorFlow's form of `scan` returns states

        _, states = ops.scan(step, self.start(memory, mask), ops.swapaxes(x, 0, 1))
        return tuple(ops.swapaxes(field[:, :, 0], 0, 1) for field in states[1:])

    def _cells(
        self, x: KerasTensor, hidden: tuple[KerasTensor, ...]
    ) -> tuple[KerasTensor, tuple[KerasTensor, ...]]:
        """Runs the GRU layers in order: (B, W, ·) to (B, W, D), and their new states."""
        states = []
        for cell, before in zip(self.cells, hidden, strict=True):
            new, _ = cell(flatten_positions(x), [flatten_positions(before)])
            x = unflatten_positions(new, like=x)
            states.append(x)
        return x, tuple(states)


class BahdanauDecoder(RecurrentDecoder):
    """Attends with the previous state, and feeds the context to the GRU.

    cᵢ = attention(sᵢ₋₁), sᵢ = GRU([yᵢ₋₁, cᵢ], sᵢ₋₁), outputᵢ = tanh(W [sᵢ, cᵢ, yᵢ₋₁])
    (Bahdanau et al. 2015, section 3.1; their output layer is maxout, not tanh).
    """

    attention_class = AdditiveAttention

    def build(self, x_shape: Shape, memory_shape: Shape) -> None:
        x, memory = x_shape[-1], memory_shape[-1]
        self._build(memory_shape, x + memory, self.d_model + memory + x)

    def step(self, x: KerasTensor, state: DecoderState, *memory: KerasTensor) -> DecoderState:
        states, keys, mask = memory
        context, weights = self.attention(state.hidden[-1], states, keys, mask)
        top, hidden = self._cells(ops.concatenate([x, context], axis=-1), state.hidden)
        output = self.projection(ops.concatenate([top, context, x], axis=-1))
        return DecoderState(hidden, output, weights)


class LuongDecoder(RecurrentDecoder):
    """Attends with the new state, and feeds the output to the next step.

    sᵢ = GRU([yᵢ₋₁, outputᵢ₋₁], sᵢ₋₁), cᵢ = attention(sᵢ), outputᵢ = tanh(W [sᵢ, cᵢ])
    (Luong et al. 2015, sections 3 and 3.3, with GRU in place of LSTM layers).
    """

    attention_class = MultiplicativeAttention

    def build(self, x_shape: Shape, memory_shape: Shape) -> None:
        memory = memory_shape[-1]
        self._build(memory_shape, x_shape[-1] + self.d_model, self.d_model + memory)

    def step(self, x: KerasTensor, state: DecoderState, *memory: KerasTensor) -> DecoderState:
        states, keys, mask = memory
        top, hidden = self._cells(ops.concatenate([x, state.output], axis=-1), state.hidden)
        context, weights = self.attention(top, states, keys, mask)
        output = self.projection(ops.concatenate([top, context], axis=-1))
        return DecoderState(hidden, output, weights)
