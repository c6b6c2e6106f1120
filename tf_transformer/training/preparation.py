"""Everything that a training reads: the run's configuration, tokenizer and batches."""

import contextlib
import functools
import hashlib
import os
import pathlib
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import tensorflow as tf
from tqdm import tqdm

from tf_transformer.config import Config
from tf_transformer.data.augmented_batches import Augment
from tf_transformer.data.batch_sampler import BatchSampler
from tf_transformer.data.bpe_dropout import BpeDropout
from tf_transformer.data.examples import ExampleStream
from tf_transformer.data.make_store import find_or_make
from tf_transformer.data.tokens import Encoder
from tf_transformer.errors import InputError
from tf_transformer.run_folder import RunFolder
from tf_transformer.special_ids import BLANK
from tf_transformer.tasks.task import Task, TestSet
from tf_transformer.tokenizer import Tokenizer
from tf_transformer.training.strategy import broadcast, is_chief

SAMPLES = 32  # validation inputs kept in the run's folder, to check an export with
# Options that may change between two starts of a run. They move an update only within rounding
# and dropout's noise.
MAY_CHANGE = {
    *("train.steps", "train.epochs", "train.patience", "train.save_every", "train.max_skipped"),
    *("train.keep_checkpoints", "train.export_best", "train.strategy", "train.threads"),
    *("train.micro_batches", "train.jit_compile"),
    *("data.cache_dir", "data.origin"),
}


@dataclass(frozen=True)
class TrainingData:
    """The data of a training.

    Attributes:
        tokenizer: of the run.
        train: batches of the training examples.
        valid: batches of the validation examples.
        scored: the validation examples that are predicted and scored.
    """

    tokenizer: Tokenizer
    train: BatchSampler
    valid: BatchSampler
    scored: TestSet


def prepare(
    config: Config,
    task: Task,
    run_dir: str | os.PathLike,
    strategy: tf.distribute.Strategy | None = None,
) -> TrainingData:
    """Prepares the run's folder and data, without TensorFlow where a process trains alone.

    Args:
        config: of the training.
        task: of the training.
        run_dir: the run's folder.
        strategy: of several processes, which wait for the files that the chief writes.

    Raises:
        InputError: for data that cannot be used, a folder that belongs to another configuration
            or that cannot be written.
    """
    run = RunFolder(run_dir)
    if strategy and not is_chief(strategy):
        broadcast(strategy, [0.0])
        return _prepare(config, task, run)
    ensure_config(run, config)
    data = _prepare(config, task, run)
    if strategy:
        broadcast(strategy, [0.0])
    return data


@contextlib.contextmanager
def removed_if_failed(run_dir: str | os.PathLike) -> Iterator[None]:
    """Removes what a failed block has made in a run's folder, unless there is a result.

    A checkpoint or the metrics of a validation are a result. Files that were there before stay.
    """
    run = RunFolder(run_dir)
    before = {path for path in (run.path, *run.path.parents) if path.exists()}
    before |= set(run.path.rglob("*"))
    try:
        yield
    except BaseException:
        if not (run.has_checkpoint or run.metrics.exists()):
            _remove(
                [*sorted(run.path.rglob("*"), reverse=True), run.path, *run.path.parents], before
            )
        raise


def _remove(paths: Sequence[pathlib.Path], but: Collection[pathlib.Path]) -> None:
    """Removes files and empty folders, children before parents."""
    for path in paths:
        if path not in but:
            with contextlib.suppress(OSError):  # such as a folder that another run writes in
                path.rmdir() if path.is_dir() else path.unlink()


def ensure_config(run: RunFolder, config: Config) -> None:
    """Saves the configuration in the folder, unless a different one made its checkpoints.

    Without a checkpoint any configuration is accepted. `MAY_CHANGE` and the options of the search
    may differ, so that a finished run can be trained further.

    Raises:
        InputError: when another configuration made the run's checkpoints, or the folder cannot
            be written.
    """
    try:
        run.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--run_dir {run.path} cannot be made: {error}") from error
    if not run.has_checkpoint:
        run.tokenizer.unlink(missing_ok=True)
    else:
        changed = {
            name: values
            for name, values in run.load_config().differences(config).items()
            if name not in MAY_CHANGE and not name.startswith("decode.")
        }
        if changed:
            listed = "; ".join(f"{k} was {old!r}, now {new!r}" for k, (old, new) in changed.items())
            raise InputError(
                f"{run.path} holds a run of another configuration: {listed}. Give --run_dir alone "
                "to go on with it, or another --run_dir."
            )
    run.save_config(config)


def _prepare(config: Config, task: Task, run: RunFolder) -> TrainingData:
    if config.data.bpe_dropout and not task.only_text:
        raise InputError(
            "data.bpe_dropout is for translation. Expected 0 for "
            f"{config.task}, got {config.data.bpe_dropout}."
        )
    train, valid = task.load_splits(config)
    tokenizer = _tokenizer(run, task, train, config)
    inputs, references = task.test_set(valid)
    run.save_samples(inputs[:SAMPLES])
    count = config.train.valid_score_examples
    sampler = functools.partial(_sampler, encoder=_encoder(config, task, tokenizer))
    return TrainingData(
        tokenizer,
        train=sampler(config, run, "training", train, augment=_bpe_dropout(config, tokenizer)),
        valid=sampler(config, run, "validation", valid.stream()),
        scored=TestSet(inputs[:count], references[:count]),
    )


def _tokenizer(run: RunFolder, task: Task, stream: ExampleStream, config: Config) -> Tokenizer:
    """The run's tokenizer; learned, or copied from the run that this one starts with."""
    if not run.tokenizer.exists():
        if config.train.init_from:
            tokenizer = _tokenizer_of(config.train.init_from)
            task.reuse_tokenizer(tokenizer, stream, config).save(run.tokenizer)
        else:
            task.train_tokenizer(stream, config).save(run.tokenizer)
    return run.load_tokenizer()


def _tokenizer_of(init_from: str) -> Tokenizer:
    source = RunFolder(init_from)
    try:
        source.load_config()
        return source.load_tokenizer()
    except InputError as error:
        raise InputError(f"train.init_from must be a run's folder: {error}") from error


def _encoder(config: Config, task: Task, tokenizer: Tokenizer) -> Encoder:
    vocabulary = hashlib.sha256(tokenizer.model).hexdigest()
    return Encoder(
        functools.partial(
            task.encode_examples, tokenizer=tokenizer, max_length=config.data.max_length
        ),
        tokenizer.vocabulary_size,
        identity=f"{config.task} {vocabulary}",
    )


def _bpe_dropout(config: Config, tokenizer: Tokenizer) -> BpeDropout | None:
    data = config.data
    if not data.bpe_dropout:
        return None
    return BpeDropout(
        tokenizer.merges(),
        tokenizer.vocabulary_size,
        tokenizer.piece_to_id(BLANK),
        data.bpe_dropout,
        data.max_length,
        config.train.seed,
    )


def _sampler(
    config: Config,
    run: RunFolder,
    name: str,
    stream: ExampleStream,
    encoder: Encoder,
    augment: Augment | None = None,
) -> BatchSampler:
    data = config.data
    store = find_or_make(
        stream,
        encoder,
        data.max_length,
        data.shard_pairs,
        folder=data.cache_dir or run.tokens,
        keep=bool(data.cache_dir),
        report=lambda counts: tqdm.write(f"{name}: {counts}"),
        warn=lambda text: tqdm.write(f"warning: {name}: {text}", file=sys.stderr),
    )
    return BatchSampler(store, data.batch_tokens, data.bucket_width, config.train.seed, augment)
