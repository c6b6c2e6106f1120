"""A run: its folder, its configuration, and what is read by them."""

import functools
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tf_transformer.config import Config
from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder
from tf_transformer.text.codec import Codec, codec_files

if TYPE_CHECKING:
    import keras

BuildModel = Callable[[Config, Codec, str], "keras.Model"]
"""build_model(config, codec, dtype) -> a model with all its weights"""


@dataclass(frozen=True)
class Run:
    """A run, made once from a user's path and passed on.

    Nothing but the configuration is read before it is needed. TensorFlow is imported by `model`.

    Attributes:
        folder: the names of its files.
        config: its configuration, with the options that a command replaces.

    Example:
        >>> run = Run.load("runs/demo", beam_size=8)
        >>> run.config.decode.beam_size
        8
        >>> tokenizer = run.codec["target"]
        >>> tokenizer.decode(tokenizer.encode("acht"))
        'acht'
    """

    folder: RunFolder
    config: Config

    @classmethod
    def load(
        cls,
        run_dir: str | os.PathLike,
        task_options: Mapping[str, Any] | None = None,
        **decode_options: Any,
    ) -> "Run":
        """An existing run.

        Args:
            run_dir: the run's folder.
            task_options: options of the run's task that replace the run's own; None keeps them.
            **decode_options: fields of `DecodeConfig`, likewise.

        Raises:
            InputError: when the folder is not a run's folder, or an option is out of range.
        """
        folder = RunFolder(run_dir)
        return cls(folder, folder.load_config(task_options, **decode_options))

    @classmethod
    def at(cls, run_dir: str | os.PathLike, config: Config) -> "Run":
        """A run to train, in a folder that may be new, or hold the same run.

        Args:
            run_dir: the run's folder.
            config: of the training.

        Raises:
            InputError: when the folder is no path.
        """
        return cls(RunFolder(run_dir), config)

    @functools.cached_property
    def codec(self) -> Codec:
        """The tokenizer of the run, or one for each side.

        Raises:
            InputError: when one is missing or broken.
        """
        return Codec.load(self.folder.path)

    @functools.cached_property
    def origin(self) -> "Run | None":
        """The run whose weights this one starts with: `train.init_from`; None without it.

        Raises:
            InputError: when that is not a run's folder, or has no codec.
        """
        if not self.config.train.init_from:
            return None
        try:
            run = Run.load(self.config.train.init_from)
            run.codec  # noqa: B018  is read now, before the text of the training
        except InputError as error:
            raise InputError(f"train.init_from must be a run's folder: {error}") from error
        return run

    def model(self, build_model: BuildModel) -> "keras.Model":
        """A new model in float32, with the weights that `DecodeConfig.average` names.

        Args:
            build_model: makes the model.

        Raises:
            InputError: when the run does not hold these weights; see `load_weights`.
        """
        from tf_transformer.machine.keras_settings import own_settings
        from tf_transformer.machine.threads import require_threads
        from tf_transformer.run.weights import load_weights

        require_threads()
        with own_settings():
            model = build_model(self.config, self.codec, "float32")
            load_weights(self.folder, model, self.config.decode.average)
        return model

    def identities(self) -> dict[str, str]:
        """What a prediction depends on besides its search, for comparisons.

        The index of a checkpoint has checksums of all its weights.
        """
        config, folder = self.config, self.folder.weights(self.config.decode.average)
        weights = [path.read_bytes() for path in sorted(folder.glob("*.index"))]
        return {
            "model": _hash(json.dumps([config.task.name, asdict(config.model)]).encode()),
            "tokenizer": _hash(*(x.read_bytes() for x in codec_files(self.folder.path).values())),
            "checkpoint": _hash(*weights),
        }


def _hash(*contents: bytes) -> str:
    digests = b"".join(hashlib.sha256(content).digest() for content in contents)
    return hashlib.sha256(digests).hexdigest()
