"""Makes a run of the base shape with the translations of a small run, to measure its speed.

    python -m benchmarks.translations.widened --run_dir runs/multi30k --to runs/widened

With random weights, translations do not end. The training of a base model takes days on a CPU. Here
the weights of a small model become parts of the weights of a large model. Both models compute the
same function up to rounding, but the large model computes as many products as any model of its
shape. It keeps the small vocabulary, so its logits cost less than in the paper's model.
"""

from dataclasses import replace
from itertools import zip_longest

import keras
import numpy as np

from tf_transformer.commands import command_line
from tf_transformer.config import PRESETS, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run


def main(run_dir: str, to: str, preset: str = "base") -> None:
    """Writes the folder of a run with one checkpoint.

    Args:
        run_dir: a trained run of translation with rotary positions and pre-norm.
        to: the folder to write.
        preset: sizes of the large model.
    """
    from tf_transformer.models.names import by_name
    from tf_transformer.run import weights
    from tf_transformer.tasks.encoder_decoder import build_model

    small, large = Run.load(run_dir), RunFolder(to)
    config = small.config
    sizes = PRESETS[preset]
    names = ("num_layers", "d_model", "d_ff", "num_heads")
    model = replace(config.model, **{name: getattr(sizes, name) for name in names})
    config = replace(config, model=model, decode=replace(config.decode, average=1))
    model_of_run = small.model(build_model)
    wide = build_model(config, small.codec, "float32")
    widen(model_of_run, wide)
    large.path.mkdir(parents=True)
    large.save_config(config)
    large.save_samples(small.folder.load_samples())
    small.codec.save(to)
    weights.save_weights(large, by_name(wide), "float32", update=1)
    print(f"{to}: {wide.count_params():,} parameters")


def widen(small: keras.Model, large: keras.Model) -> None:
    """Gives a large Transformer weights with which it computes the logits of a small Transformer.

    A large vector repeats the small vector, which keeps the statistics of layer normalization.
    Additional heads, hidden units and layers add zeros to the residual.

    Args:
        small: a model with rotary positions, pre-norm and tied embeddings.
        large: a model of the same variant, whose sizes are multiples of the small model's sizes.

    Raises:
        InputError: for other models.
    """
    ours, theirs = large.config, small.config
    if (ours.position, ours.norm_first, ours.tie_embeddings) != ("rotary", True, "all"):
        raise InputError("expected a model with rotary positions, pre-norm and tied embeddings.")
    places = _Places(theirs, ours)
    for one, other in ((small.encoder, large.encoder), (small.decoder, large.decoder)):
        for from_layer, to_layer in zip_longest(one.layers, other.layers):
            if from_layer is None:
                for weight in to_layer.weights:
                    if "/output/" in weight.path:
                        weight.assign(np.zeros(weight.shape))
                continue
            for value, weight in zip(from_layer.weights, to_layer.weights, strict=True):
                weight.assign(places.widened(weight.path, np.asarray(value), weight.shape))
    # Inputs are scaled by the root of d_model, and logits are sums over all repeats.
    root = places.repeats**0.5
    for value, weight in zip(
        small.encoder.final_norm.weights, large.encoder.final_norm.weights, strict=True
    ):
        weight.assign(np.tile(value, places.repeats))
    for value, weight in zip(
        small.decoder.final_norm.weights, large.decoder.final_norm.weights, strict=True
    ):
        weight.assign(np.tile(value, places.repeats) / root)
    embeddings = np.tile(small.target_embedding.embeddings, places.repeats) / root
    large.target_embedding.embeddings.assign(embeddings)


class _Places:
    """The places of small weights in large weights."""

    def __init__(self, small: ModelConfig, large: ModelConfig):
        self.repeats = large.d_model // small.d_model
        self.small, self.large = small.decoder, large.decoder
        ratio = self.large.key_dim // self.small.key_dim
        # Pair i of a small head turns as fast as pair ratio · i of a large head.
        pairs = 2 * ratio * (np.arange(self.small.key_dim) // 2)
        self.of_head = pairs + np.arange(self.small.key_dim) % 2

    def widened(self, path: str, value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The weight of the large model, float32."""
        if "_attention/" in path:
            return self._attention(path, value, shape)
        found = np.zeros(shape, np.float32)
        if path.endswith("hidden/kernel"):
            found[:, : value.shape[1]] = self._inputs(value)
        elif path.endswith("hidden/bias"):
            found[: len(value)] = value
        elif path.endswith("output/kernel"):
            found[: len(value)] = np.tile(value, self.repeats)
        else:  # of the residual
            found = np.tile(value, self.repeats)
        return found

    def _inputs(self, kernel: np.ndarray) -> np.ndarray:
        """A kernel of repeated inputs, each of which has a part of the sum."""
        return np.tile(kernel, (self.repeats, 1)) / self.repeats

    def _attention(self, path: str, value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        heads, size = self.small.num_heads, self.small.key_dim
        large = (self.large.num_heads, self.large.key_dim)
        if path.endswith("output/kernel"):
            found = np.zeros((*large, shape[1]), np.float32)
            outputs = np.tile(value, self.repeats).reshape(heads, size, -1)
            found[:heads, self.of_head] = outputs
            return found.reshape(shape)
        kinds = value.shape[1] // (heads * size)  # queries, keys and values in one kernel
        found = np.zeros((shape[0], kinds, *large), np.float32)
        inputs = self._inputs(value).reshape(shape[0], kinds, heads, size)
        if "/query" in path:  # scores are divided by the root of the size of a head
            inputs[:, 0] *= (large[1] / size) ** 0.5
        found[:, :, :heads, self.of_head] = inputs
        return found.reshape(shape)


if __name__ == "__main__":
    command_line.run(main)
