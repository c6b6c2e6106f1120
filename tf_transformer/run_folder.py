"""A run's folder: the names of its files, its configuration, tokenizer and samples."""

import contextlib
import functools
import json
import math
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from tf_transformer.config import DERIVED, Config, DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.files import one_line, write_whole
from tf_transformer.tokenizer import Tokenizer


class RunFolder:
    """The files of a run; any of them may be missing.

    Args:
        run_dir: the folder, which may be missing too.

    Attributes:
        path: the folder.
        config: the whole configuration, YAML.
        tokenizer: the SentencePiece model.
        execution: how updates are executed, JSON.
        checkpoints: weights of the newest validation intervals.
        best: in it, the weights with the best validation score.
        resume: in it, everything that training needs to go on.
        metrics: a line of JSON per validation interval.
        logs: the same metrics for TensorBoard.
        samples: inputs of the validation set, one per line, to check an export with.
        tokens: the tokenised text of a large corpus.
        exports: SavedModels of the best weights, by update.

    Example:
        >>> RunFolder("runs/demo").tokenizer.as_posix()
        'runs/demo/tokenizer.model'
    """

    def __init__(self, run_dir: str | os.PathLike):
        if not isinstance(run_dir, str | os.PathLike):
            raise InputError(f"expected the path of a run's folder, got {run_dir!r:.80}.")
        self.path = path = pathlib.Path(run_dir)
        self.config = path / "config.yaml"
        self.tokenizer = path / "tokenizer.model"
        self.execution = path / "execution.json"
        self.checkpoints = path / "checkpoints"
        self.best = self.checkpoints / "best"
        self.resume = self.checkpoints / "resume"
        self.metrics = path / "metrics.jsonl"
        self.logs = path / "logs"
        self.samples = path / "samples.txt"
        self.tokens = path / "tokens"
        self.exports = path / "export"

    @property
    def has_checkpoint(self) -> bool:
        """Whether a training can go on in this folder."""
        return (self.resume / "checkpoint").is_file()  # TensorFlow's list of checkpoints

    def save_config(self, config: Config) -> None:
        """Writes a configuration, in full."""
        import yaml  # needed here and in `load_config` only: see test_run_folder.py

        write_whole(self.config, yaml.safe_dump(asdict(config), sort_keys=False))

    def load_config(self) -> Config:
        """Reads the configuration.

        Raises:
            InputError: when there is none, or it is cut short or has an unknown key or a bad value.
        """
        if not self.config.is_file():
            raise InputError(
                f"{self.path} is not a run's folder: it has no {self.config.name}. Check the path, "
                f"or train first: python train.py --run_dir {self.path}"
            )
        try:
            content = self.config.read_bytes()
            config = _parse(content)
            if not re.search(rb"^task:", content, re.MULTILINE):
                raise InputError(
                    "the file is cut short, because its last option, task, is missing. Copy it "
                    "again from where it is whole."
                )
            return config
        except InputError as error:
            raise InputError(f"{self.config}: {error}") from error

    def save_execution(self, execution: Mapping[str, Any]) -> None:
        """Writes how updates are executed."""
        write_whole(self.execution, json.dumps(execution))

    def load_execution(self) -> dict[str, Any] | None:
        """Reads how updates are executed; None for a run of before that was chosen.

        Raises:
            InputError: when the file is broken.
        """
        if not self.execution.is_file():
            return None
        try:
            return dict(json.loads(self.execution.read_bytes()))
        except (ValueError, TypeError) as error:
            raise InputError(
                f"{self.execution} is broken: {error}. Delete it: the training goes on, executed "
                "in the first form that is possible."
            ) from error

    def load_decode_config(self, **decode_options: Any) -> DecodeConfig:
        """The search that the run configures, with other options.

        Args:
            **decode_options: fields of `DecodeConfig` that replace the run's own; None keeps those.

        Raises:
            InputError: as `load_config`, and when an option is out of range.
        """
        options = {name: value for name, value in decode_options.items() if value is not None}
        if unknown := options.keys() - set(DecodeConfig.__match_args__):
            raise InputError(
                f"unknown option {min(unknown)!r} of the search; expected some of "
                f"{', '.join(DecodeConfig.__match_args__)}."
            )
        return replace(self.load_config().decode, **options)

    def load_tokenizer(self) -> Tokenizer:
        """Reads the tokenizer.

        Raises:
            InputError: when there is none.
        """
        return Tokenizer.load(self.tokenizer)

    def save_samples(self, texts: Sequence[str]) -> None:
        """Writes texts, one per line."""
        write_whole(self.samples, "".join(one_line(text) + "\n" for text in texts))

    def load_samples(self) -> list[str]:
        """Reads the samples.

        Raises:
            InputError: when they are missing or broken.
        """
        try:
            return self.samples.read_text("utf-8").split("\n")[:-1]
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"the samples of the run cannot be read from {self.samples}: {error}. Write some "
                "inputs of the model to this file, one per line."
            ) from error

    def load_metrics(self, last_update: float = math.inf) -> list[dict[str, Any]]:
        """The metrics of the validation intervals that ended with this update or before."""
        rows = []
        for line in self.metrics.read_bytes().splitlines() if self.metrics.exists() else []:
            # A line that a kill cut short is no JSON, or has no step.
            with contextlib.suppress(ValueError, TypeError, LookupError):
                row = json.loads(line)
                if row["step"] <= last_update:
                    rows.append(row)
        return rows


@functools.lru_cache(maxsize=4)
def _parse(content: bytes) -> Config:
    """The configuration in a file; commands need it several times.

    Raises:
        InputError: for an unknown key or a bad value.
    """
    import jsonargparse
    import yaml

    parser = jsonargparse.ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Config)
    parser.set_defaults(DERIVED)
    try:
        text = content.decode("utf-8")
        return Config(**parser.instantiate(parser.parse_string(text)).as_dict())
    except (jsonargparse.ArgumentError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(str(error)) from error
