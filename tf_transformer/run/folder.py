"""The folder of a run: its file names, configuration, samples, metrics and lock."""

import contextlib
import functools
import json
import math
import os
import pathlib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from typing import Any, get_type_hints

from tf_transformer.config import Config
from tf_transformer.config.option import replaced, select
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import local_path
from tf_transformer.files.locks import FileLock
from tf_transformer.files.writing import one_line, write_whole
from tf_transformer.registry import options_of
from tf_transformer.run.earlier import present_options, task_named
from tf_transformer.text.codec import FILE, WORDS, codec_files

_CUT_SHORT = (
    "the file is cut short: its last option, the name of the task, is missing. Copy the whole file "
    "again."
)
_MARK = b"a training has started here and has no checkpoint yet: "


class RunFolder:
    """The files of a run; each may be missing.

    Args:
        run_dir: the folder; may be missing, too.

    Attributes:
        path: the folder.
        config: the complete configuration, YAML.
        tokenizer: the SentencePiece model. `Codec.save` has other names for two vocabularies.
        execution: the execution of updates, JSON.
        checkpoints: folder with the weights of the newest validation intervals.
        best: folder in `checkpoints` with the weights of the best validation score.
        resume: folder in `checkpoints` with everything that training needs to resume.
        metrics: the metrics of each validation interval, one line of JSON.
        logs: folder with the same metrics for TensorBoard.
        words: the words of the training's source text, one per line.
        keys: the keys of the training's pairs, as in `data/training_keys.py`.
        terms: the terms that the training learns to read, as `terms.read_terms` reads them.
        samples: inputs from the validation text, one per line, for the check of an export.
        tokens: folder with the tokenised text of a large corpus.
        exports: folder with SavedModels of the best weights, named by update.
        text: identities of the training text and the validation text, and which validation
            examples are scored, JSON.
        lock: lock file of the training in this folder.
        starting: exists from the first file of a training run to its first checkpoint.

    Example:
        >>> RunFolder("runs/demo").tokenizer.as_posix()
        'runs/demo/tokenizer.model'
    """

    def __init__(self, run_dir: str | os.PathLike):
        if not isinstance(run_dir, str | os.PathLike):
            raise InputError(f"expected the path of a run's folder, got {run_dir!r:.80}.")
        self.path = path = pathlib.Path(local_path(os.fspath(run_dir), "run_dir"))
        self.config = path / "config.yaml"
        self.tokenizer = path / FILE
        self.words = path / WORDS
        self.keys = path / "training_keys.bin"
        self.terms = path / "terms.tsv"
        self.execution = path / "execution.json"
        self.checkpoints = path / "checkpoints"
        self.best = self.checkpoints / "best"
        self.resume = self.checkpoints / "resume"
        self.metrics = path / "metrics.jsonl"
        self.logs = path / "logs"
        self.samples = path / "samples.txt"
        self.tokens = path / "tokens"
        self.exports = path / "export"
        self.text = path / "text.json"
        self.lock = path / ".tf_transformer.lock"
        self.starting = path / ".tf_transformer.starting"

    @property
    def has_checkpoint(self) -> bool:
        """Whether a training run can resume in this folder."""
        return (self.resume / "checkpoint").is_file()  # TensorFlow's list of checkpoints

    def weights(self, average: int | str) -> pathlib.Path:
        """The folder with the checkpoints for a choice of weights, `DecodeConfig.average`."""
        return {"best": self.best, "ema": self.resume}.get(str(average), self.checkpoints)

    def files(self) -> list[pathlib.Path]:
        """All files in the folder that have the name of a file of a run."""
        alone = [self.config, self.execution, self.metrics, self.samples, self.text]
        alone += [self.words, self.keys, self.terms]
        inside = [*self.checkpoints.rglob("*"), *self.logs.glob("events.out.tfevents*")]
        inside += [*self.tokens.rglob("*"), *self.exports.rglob("*")]
        alone += codec_files(self.path).values()
        return [path for path in (*alone, *inside) if path.is_file() or path.is_symlink()]

    @property
    def start_mark(self) -> str:
        """The mark of a start without a checkpoint yet, different for each start; else ""."""
        mark = self.starting.read_bytes() if self.starting.is_file() else b""
        return mark.decode("utf-8", "replace") if mark.startswith(_MARK) else ""

    def mark_start(self) -> None:
        """Marks the folder as a training run without a checkpoint yet, and clears it."""
        write_whole(self.starting, _MARK + secrets.token_bytes(8).hex().encode())
        self.clear(but=self.tokens)

    def clear(self, but: pathlib.Path | None = None) -> None:
        """Removes all files of the run, except in the folder `but`."""
        for path in self.files():
            if but not in path.parents:
                path.unlink()
        for folder in (self.checkpoints, self.logs, self.tokens, self.exports):
            for path in sorted((folder, *folder.rglob("*")), reverse=True):
                with contextlib.suppress(OSError):  # missing or not empty
                    path.rmdir()

    def save_config(self, config: Config) -> None:
        """Writes a complete configuration."""
        import yaml  # imported only here and in `load_config`: see test_folder.py

        options = asdict(config)
        name = options["task"].pop("name")  # comes last, and marks a whole file
        options["task"]["name"] = name
        write_whole(self.config, yaml.safe_dump(options, sort_keys=False))

    def load_config(
        self, task_options: Mapping[str, Any] | None = None, **decode_options: Any
    ) -> Config:
        """Reads the configuration, and replaces options as `Run.load`."""
        config = self._load_config()
        task = replaced(config.task, task_options or {}, f"the task {config.task.name}")
        decode = replaced(config.decode, decode_options, "the search")
        return replace(config, task=task, decode=decode)

    def _load_config(self) -> Config:
        if not self.config.is_file():
            raise InputError(
                f"{self.path} is not a run's folder: it has no {self.config.name}. Check the path, "
                f"or train first: python train.py --run_dir {self.path}"
            )
        try:
            content = self.config.read_bytes()
            names_task = re.search(rb"^(task:.*[^:\s]|  name:)", content, re.MULTILINE)
            if b"\ntask:" in content and not names_task:
                raise InputError(_CUT_SHORT)  # the options belong to an unknown task
            config = _parse(content)
            if not names_task:
                raise InputError(_CUT_SHORT)
            return config
        except InputError as error:
            raise InputError(f"{self.config}: {error}") from error

    def save_execution(self, execution: Mapping[str, Any]) -> None:
        """Writes the execution of updates, by fields of `Execution`."""
        write_whole(self.execution, json.dumps(execution))

    def load_execution(self) -> dict[str, Any] | None:
        """Reads the execution of updates; None for a run without this file."""
        if not self.execution.is_file():
            return None
        try:
            return dict(json.loads(self.execution.read_bytes()))
        except (ValueError, TypeError) as error:
            raise InputError(
                f"{self.execution} is broken: {error}. Delete it; the training then resumes with "
                "the first possible execution."
            ) from error

    def save_text(self, identities: Mapping[str, str]) -> None:
        """Writes the identities of the run's texts, and which examples are scored."""
        write_whole(self.text, json.dumps(identities, indent=1) + "\n")

    def load_text(self) -> dict[str, str] | None:
        """Reads what `save_text` wrote; None for a run of an earlier version."""
        return json.loads(self.text.read_text("utf-8")) if self.text.is_file() else None

    def save_samples(self, texts: Sequence[str]) -> None:
        """Writes sample texts, one per line."""
        write_whole(self.samples, "".join(one_line(text) + "\n" for text in texts))

    def load_samples(self) -> list[str]:
        """Reads the sample texts; raises an `InputError` for a missing or broken file."""
        try:
            return self.samples.read_text("utf-8").split("\n")[:-1]
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"the samples of the run cannot be read from {self.samples}: {error}. Write some "
                "inputs of the model to this file, one per line."
            ) from error

    def load_metrics(self, last_update: float = math.inf) -> list[dict[str, Any]]:
        """Reads the metrics of the validation intervals up to an update."""
        rows = []
        for line in self.metrics.read_bytes().splitlines() if self.metrics.exists() else []:
            # A line that an interruption cut short is no JSON, or has no step.
            with contextlib.suppress(ValueError, TypeError, LookupError):
                row = json.loads(line)
                if row["step"] <= last_update:
                    rows.append(row)
        return rows


@contextlib.contextmanager
def owned(folder: RunFolder) -> Iterator[None]:
    """Locks a run's folder for its training in a block, and makes the folder if it is missing.

    A block that fails before its first result removes the files that it has written. A result is a
    checkpoint, or the metrics of a validation after an update.
    """
    new_folders = [path for path in (folder.path, *folder.path.parents) if not path.exists()]
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.lock)
    except BlockingIOError as error:
        raise InputError(
            f"another training run is active in {folder.path}. Wait for its end, or give another "
            "--run_dir."
        ) from error
    except OSError as error:
        raise InputError(
            f"--run_dir {folder.path} cannot be made or written: {error}. Give a folder that can "
            "be written."
        ) from error
    before = folder.start_mark
    try:
        yield
    except BaseException:
        has_result = any(row["step"] for row in folder.load_metrics())
        if folder.start_mark not in ("", before) and not has_result:
            folder.clear()
            folder.starting.unlink(missing_ok=True)
        raise
    finally:
        lock.release()
        for path in new_folders:
            with contextlib.suppress(OSError):  # the folder is not empty
                path.rmdir()


def members(run_dir: str | os.PathLike) -> list[str | os.PathLike]:
    """The folders of an ensemble, "runs/a,runs/b"; one folder may have commas in its name."""
    if not isinstance(run_dir, str) or os.path.exists(run_dir):
        return [run_dir]
    return [name for name in map(str.strip, run_dir.split(",")) if name] or [run_dir]


@functools.lru_cache(maxsize=4)
def _parse(content: bytes) -> Config:
    """The configuration in the content of a file; cached, as commands read it several times."""
    import jsonargparse
    import yaml

    parser = jsonargparse.ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Config, skip={"task"})
    parser.set_defaults(select(Config, lambda rules: rules.derived))
    try:
        # YAML's rules, as in `save_config`. jsonargparse's rules differ for text like 1e3.
        options = yaml.safe_load(content.decode("utf-8"))
        if not isinstance(options, dict):
            raise InputError(f"expected options like 'train: {{steps: 100}}', got {options!r}.")
        name = task_named(options) or "translation"
        parser.add_class_arguments(options_of(name), "task", skip={"name"})
        options = parser.parse_object(present_options(options, name))
        require_groups(vars(options), Config)
        groups = parser.instantiate(options).as_dict()
        return Config(**groups | {"task": replace(groups["task"], name=name)})
    except (jsonargparse.ArgumentError, yaml.YAMLError, UnicodeDecodeError) as error:
        quotes = " Write it in quotes: YAML does not read it as text." * ("'str'" in str(error))
        raise InputError(f"{error}{quotes}") from error


def require_groups(options: Mapping[str, Any], of: Callable, prefix: str = "") -> None:
    """Raises an `InputError` for a value in place of a group, which jsonargparse accepts.

    The options are those of a function or dataclass, whose dataclass arguments are groups.
    """
    for name, hint in get_type_hints(of).items():
        if isinstance(hint, type) and is_dataclass(hint) and name in options:
            group = options[name]
            if not hasattr(group, "as_dict"):
                raise InputError(f"{prefix}{name} must be a group of options, got {group!r}.")
            require_groups(vars(group), hint, f"{prefix}{name}.")
