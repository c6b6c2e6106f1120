"""A run: its folder, its configuration, and the codec and weights in the folder."""

import functools
import hashlib
import itertools
import json
import os
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from tf_transformer.config import Config
from tf_transformer.config.option import Effect, select
from tf_transformer.data.corpora import differ, run_languages
from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder, members
from tf_transformer.text.codec import Codec, codec_files
from tf_transformer.text.kept_spans import COMMON
from tf_transformer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import keras

BuildModel = Callable[[Config, Codec, str], "keras.Model"]
"""A function from (config, codec, dtype) to a model with all its weights."""


@dataclass(frozen=True)
class Run:
    """A run, made once from a path and passed on.

    At first only the configuration is read; codec and weights are read when they are needed. Only
    `model` imports TensorFlow.

    Attributes:
        folder: the folder of the run, with the names of its files.
        config: the configuration of the run, with the options that a command replaces.
        others: the other runs of an ensemble, which `models/ensemble.py` makes one model.

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
    others: tuple["Run", ...] = ()

    @classmethod
    def load(
        cls,
        run_dir: str | os.PathLike,
        task_options: Mapping[str, Any] | None = None,
        **decode_options: Any,
    ) -> "Run":
        """Loads an existing run.

        Args:
            run_dir: folder of the run; "a,b,c" for an ensemble of three runs, whose search has
                the options of the first.
            task_options: new values for options of the run's task, by name; None keeps a value.
            **decode_options: new values for fields of `DecodeConfig`; None keeps a value.

        Raises:
            InputError: for a folder without a run, an option out of range, or runs of different
                tasks or directions.
        """
        first, *folders = [RunFolder(path) for path in members(run_dir)]
        config = first.load_config(task_options, **decode_options)
        average = decode_options.get("average")
        others = tuple(cls(folder, folder.load_config(average=average)) for folder in folders)
        named = [(first.path, config), *((run.folder.path, run.config) for run in others)]
        _require_one_purpose(named, decode_options.get("target_tag"))
        return cls(first, config, others)

    @classmethod
    def at(cls, run_dir: str | os.PathLike, config: Config) -> "Run":
        """Makes a run for training, in a new folder or in the folder of the same run."""
        return cls(RunFolder(run_dir), config)

    @functools.cached_property
    def codec(self) -> Codec:
        """The codec of the run, with one tokenizer or a tokenizer for each side."""
        return Codec.load(self.folder.path)

    @functools.cached_property
    def origin(self) -> "Run | None":
        """The run in `train.init_from`, whose weights this run starts with; None without it."""
        if not self.config.train.init_from:
            return None
        try:
            run = Run.load(self.config.train.init_from)
            if run.others:
                raise InputError(f"expected one run, got {self.config.train.init_from}.")
            run.codec  # noqa: B018  reads the codec now, before the text of the training
        except InputError as error:
            moved = (
                f" If it has moved, give its new folder once: python train.py --run_dir "
                f"{self.folder.path} --train.init_from FOLDER"
            ) * bool(self.config.train.lora)
            raise InputError(f"train.init_from must be a run's folder: {error}{moved}") from error
        return run

    def model(self, build_model: BuildModel) -> "keras.Model":
        """Builds a model in float32 with the weights that `DecodeConfig.average` selects.

        With `others`, the model is an `Ensemble`. A run with adapters (`train.lora`) has the
        weights of its origin, to which the adapters are added. If a run has fewer checkpoints than
        `average`, a line on stderr says so.

        Raises:
            InputError: when a run does not have these weights, see `load_weights`; when the runs
                of an ensemble have different target vocabularies, or models without a search.
        """
        if self.others:
            return self._ensemble(build_model)
        from tf_transformer.machine.keras_settings import own_settings
        from tf_transformer.machine.threads import require_threads

        require_threads()
        average = self.config.decode.average
        with own_settings():
            model = build_model(self.config, self.codec, "float32")
            count = self._load(model)
        if isinstance(average, int) and count < average:
            print(
                f"average {average}: averages {count} checkpoint(s), because {self.folder.path} "
                "has no more",
                file=sys.stderr,
            )
        return model

    def _load(self, model: "keras.Model") -> int:
        """Gives a model the weights of the run; returns the number of checkpoints read."""
        from tf_transformer.run import weights

        load = weights.load_weights
        if self.config.train.lora and self.origin:
            self.origin._load(model)
            load = weights.load_adapters
        return load(self.folder, model, self.config.decode.average)

    def _ensemble(self, build_model: BuildModel) -> "keras.Model":
        from tf_transformer.models.ensemble import Ensemble

        for other in self.others:
            if _pieces(other.codec["target"]) != _pieces(self.codec["target"]):
                raise InputError(
                    "the runs of an ensemble need the same target vocabulary, but the pieces of "
                    f"{self.folder.path} and {other.folder.path} differ. Train them on the same "
                    "text with the same options of data, or one with --train.init_from the other."
                )
        models = [run.model(build_model) for run in (replace(self, others=()), *self.others)]
        if not hasattr(models[0], "step_function"):
            raise InputError(
                f"the task {self.config.task.name} has no search, so it has no ensembles. Give one "
                "--run_dir."
            )
        others = map(self._reading_its_source, self.others, models[1:])
        ensemble = Ensemble([models[0], *others], name="ensemble")
        ensemble.build()
        return ensemble

    def _reading_its_source(self, other: "Run", model: "keras.Model") -> "keras.Model":
        """The model of another run for source ids of this run."""
        given, own = self.codec["source"], other.codec["source"]
        if given.model == own.model:
            return model
        if not hasattr(model, "source_vocabulary_size"):
            raise InputError(
                f"the runs of an ensemble for {self.config.task.name} need the same tokenizer, but "
                f"{self.folder.path} and {other.folder.path} differ in its rules."
            )
        from tf_transformer.run.retokenized import Retokenized

        return Retokenized(model, given, own)

    def identities(self) -> dict[str, str]:
        """Hashes of everything that a prediction depends on besides the search.

        The hash of a checkpoint comes from its index, which has checksums of all weights.
        """
        config, folder = self.config, self.folder.weights(self.config.decode.average)
        weights = [path.read_bytes() for path in sorted(folder.glob("*.index"))]
        own = {
            "model": _hash(json.dumps([config.task.name, asdict(config.model)]).encode()),
            "tokenizer": _hash(*(x.read_bytes() for x in codec_files(self.folder.path).values())),
            "checkpoint": _hash(*weights),
        }
        if not self.others:
            return own
        all_runs = [own, *(run.identities() for run in self.others)]
        return {name: _hash(*(run[name].encode() for run in all_runs)) for name in own}

    def search_options(self) -> dict[str, Any]:
        """The options that predictions depend on, by their names on the command line."""
        options = select(self.config.decode, lambda rules: rules.off is not Effect.SPEED)
        own = select(self.config.task, lambda rules: rules.off is not None)
        options |= {f"task.{name}": value for name, value in own.items()}
        return {f"--{name}": value for name, value in options.items()}

    def document_options(self) -> dict[str, Any]:
        """Options of the search for documents: a translator divides texts, and keeps their tags."""
        if self.config.task.name != "translation":
            return {}
        return {"split": "sentences", "keep": tuple(self.config.decode.keep) or (COMMON,)}

    def files(self) -> list[pathlib.Path]:
        """The files of the run and of `others`, which no output may replace."""
        return [path for run in (self, *self.others) for path in run.folder.files()]


def direction_of(config: Config) -> tuple[str, ...]:
    """The languages of the source and the target of a translator; (): unknown, or another task."""
    source, target = run_languages(config)
    if source and target and config.task.name == "translation":
        return source, target
    return ()


def _require_one_purpose(runs: Sequence[tuple[object, Config]], target_tag: str | None) -> None:
    """Raises an `InputError` if the runs of an ensemble, by name, differ in their purpose.

    They need one task, direction, form of output, and target tag if none is given for all runs. A
    warning on stderr says that a direction is unknown.
    """
    (first, config), *others = runs
    names = [
        f"task.{name}" for name in select(config.task, lambda rules: rules.from_origin == "same")
    ]
    names += ["decode.target_tag"] if target_tag is None else []
    for other, theirs in others:
        if theirs.task.name != config.task.name:
            raise InputError(
                f"the runs of an ensemble need one task, but {first} is for {config.task.name} and "
                f"{other} for {theirs.task.name}."
            )
        for name, (our_value, other_value) in config.differences(theirs).items():
            if name in names:
                raise InputError(
                    f"the runs of an ensemble need one {name}, but it is {our_value!r} in {first} "
                    f"and {other_value!r} in {other}."
                )
    known = [(name, run, way) for name, run in runs if (way := direction_of(run))]
    for (one, run, way), (another, _, other_way) in itertools.combinations(known, 2):
        sides = 1 if run.decode.default_tag else 2  # a target tag decides the target language
        if differ(way[:sides], other_way[:sides]):
            raise InputError(
                f"the runs of an ensemble need one direction, but {one} translates from {way[0]} "
                f"to {way[1]}, and {another} from {other_way[0]} to {other_way[1]}."
            )
    unknown = [str(name) for name, run in runs if not direction_of(run)]
    if others and unknown and config.task.name == "translation":
        print(
            f"warning: the languages of {' and '.join(unknown)} are unknown, so nothing checks "
            "that the runs of this ensemble translate in one direction",
            file=sys.stderr,
        )


def _pieces(tokenizer: Tokenizer) -> list[str]:
    return list(map(tokenizer.piece, range(tokenizer.vocabulary_size)))


def _hash(*contents: bytes) -> str:
    digests = b"".join(hashlib.sha256(content).digest() for content in contents)
    return hashlib.sha256(digests).hexdigest()
