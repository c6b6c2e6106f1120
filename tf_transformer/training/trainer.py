"""A whole training run: from a configuration to checkpoints in a folder."""

import itertools
import os
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import keras
import tensorflow as tf
from tqdm import tqdm

from tf_transformer.config import Config, DataConfig
from tf_transformer.data.batching import BatchPlan, as_dataset
from tf_transformer.data.corpus import Corpus, PairStream
from tf_transformer.data.store import tokenised
from tf_transformer.errors import InputError
from tf_transformer.files import one_line, write_whole
from tf_transformer.model import Transformer
from tf_transformer.tasks import translation
from tf_transformer.tokenizer import Tokenizer
from tf_transformer.training import callbacks
from tf_transformer.training.checkpoint import Checkpoints, has_checkpoint
from tf_transformer.training.schedule import TransformerSchedule
from tf_transformer.training.strategy import make_strategy
from tf_transformer.training.training_model import TrainingModel

Translate = Callable[[Sequence[str]], list[str]]
SAMPLES = 32  # validation sentences kept in the run's folder, to check an export with
SAMPLES_FILE = "samples.txt"


@dataclass(frozen=True)
class Result:
    """What a training reached: updates made, and the last round's figures by name."""

    updates: int
    figures: dict[str, float]


def train(
    config: Config,
    run_dir: str | os.PathLike,
    make_translate: Callable[[Transformer, Tokenizer], Translate],
) -> Result:
    """Trains, or goes on training, the run in a folder.

    The folder gets `config.yaml`, `tokenizer.model`, `samples.txt`, `checkpoints/`, `logs/` and
    `metrics.jsonl`. Given a folder that holds checkpoints of the same configuration, training
    goes on from the latest.

    Args:
        config: everything about the run.
        run_dir: the folder; made when missing.
        make_translate: gives a function that translates with a model in training, for BLEU.

    Raises:
        InputError: for data that cannot be used, or a folder of another configuration.
    """
    run_dir = pathlib.Path(run_dir)
    claim(run_dir, config)
    keras.utils.set_random_seed(config.train.seed)
    data = _prepare(config, run_dir)
    strategy = make_strategy(config.train.strategy)
    with strategy.scope():
        model = _training_model(data.tokenizer.vocabulary_size, config)
    checkpoints = Checkpoints(
        run_dir, model.transformer, model.optimizer, config.train.keep_checkpoints
    )
    done = checkpoints.resume()
    # Differs from the paper: a checkpoint after a number of updates, not every ten minutes.
    round_length = config.train.validate_every or len(data.plan)
    steps = config.train.steps or config.train.epochs * len(data.plan)
    _describe(model, data.plan, strategy, done, steps)
    if done >= steps:
        return Result(done, {})

    reports: list[keras.callbacks.Callback] = [callbacks.Progress(steps, done)]
    if config.train.valid_bleu_sentences:
        translate = make_translate(model.transformer, data.tokenizer)
        reports.append(callbacks.ValidationScore(lambda: _score(translate, data.sample)))
    reports += [callbacks.Journal(run_dir, done), callbacks.SaveCheckpoint(checkpoints)]
    replicas = strategy.num_replicas_in_sync
    history = model.fit(
        as_dataset(lambda: data.plan.batches(start=done, row_multiple=replicas)),
        validation_data=as_dataset(lambda: data.valid_plan.one_pass(row_multiple=replicas)),
        validation_steps=len(data.valid_plan),
        initial_epoch=done // round_length,
        epochs=-(-steps // round_length),
        steps_per_epoch=round_length,
        callbacks=reports,
        verbose=0,
        shuffle=False,
    )
    last = {name: float(values[-1]) for name, values in history.history.items()}
    return Result(model.updates, last)


@dataclass(frozen=True)
class _Data:
    """What a training reads."""

    tokenizer: Tokenizer
    plan: BatchPlan
    valid_plan: BatchPlan
    sample: Corpus  # validation pairs to translate and score


def _prepare(config: Config, run_dir: pathlib.Path) -> _Data:
    train_text, valid_text = translation.load_pairs(config.data, config.train.seed)
    tokenizer = _tokenizer(run_dir, train_text, config.data)
    _write_samples(run_dir, valid_text)
    return _Data(
        tokenizer,
        plan=_plan(train_text, tokenizer, config, run_dir, "training"),
        valid_plan=_plan(valid_text.stream(), tokenizer, config, run_dir, "validation"),
        sample=valid_text.take(range(min(len(valid_text), config.train.valid_bleu_sentences))),
    )


def claim(run_dir: pathlib.Path, config: Config) -> None:
    """Saves the configuration in a new run's folder, or checks that an old run has the same.

    A run is old once it has a checkpoint: a start that failed before binds nobody. How long to
    train and how to decode may change, so that a finished run can be trained further.

    Raises:
        InputError: when another configuration made the run's checkpoints, or the folder cannot
            be written.
    """
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--run_dir {run_dir} cannot be made: {error}") from error
    if not has_checkpoint(run_dir):
        (run_dir / "tokenizer.model").unlink(missing_ok=True)
    else:
        extensible = {"train.steps", "train.epochs", "data.cache_dir"}
        changed = {
            name: values
            for name, values in Config.load(run_dir).differences(config).items()
            if name not in extensible and not name.startswith("decode.")
        }
        if changed:
            listed = "; ".join(f"{k} was {old!r}, now {new!r}" for k, (old, new) in changed.items())
            raise InputError(
                f"{run_dir} holds a run of another configuration: {listed}. Give the options of "
                "the first start to go on with it, or another --run_dir."
            )
    config.save(run_dir)


def _tokenizer(run_dir: pathlib.Path, text: PairStream, config: DataConfig) -> Tokenizer:
    path = run_dir / "tokenizer.model"
    if not path.exists():
        lines = itertools.chain.from_iterable(text)
        Tokenizer.train(lines, config.vocabulary_size, config.normalization).save(path)
    return Tokenizer.load(path)


def _write_samples(run_dir: pathlib.Path, text: Corpus) -> None:
    samples = "".join(one_line(source) + "\n" for source in text.sources[:SAMPLES])
    write_whole(run_dir / SAMPLES_FILE, samples)


def _plan(
    text: PairStream, tokenizer: Tokenizer, config: Config, run_dir: pathlib.Path, name: str
) -> BatchPlan:
    data = config.data
    store = tokenised(
        text,
        tokenizer,
        data.max_length,
        data.shard_pairs,
        folder=data.cache_dir or run_dir / "tokens",
        keep=bool(data.cache_dir),
        tell=lambda pairs: tqdm.write(f"{name}: {pairs}"),
    )
    return BatchPlan(store, data.batch_tokens, data.bucket_width, config.train.seed)


def _training_model(vocabulary_size: int, config: Config) -> TrainingModel:
    transformer = Transformer(vocabulary_size, config.model)
    transformer.build()
    model = TrainingModel(transformer, config.train.label_smoothing, config.train.jit_compile)
    schedule = TransformerSchedule(
        config.model.d_model, config.train.warmup_steps, config.train.learning_rate
    )
    model.compile(optimizer=keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9))
    model.optimizer.build(transformer.trainable_variables)
    return model


def _describe(
    model: TrainingModel,
    plan: BatchPlan,
    strategy: tf.distribute.Strategy,
    done: int,
    steps: int,
) -> None:
    tqdm.write(
        f"model: {model.transformer.count_params():,} parameters, "
        f"vocabulary {model.transformer.vocabulary_size:,}, "
        f"{strategy.num_replicas_in_sync} replica(s)\n"
        f"batches: {plan.summary()}\n"
        f"updates: {steps:,}" + (f", going on from {done:,}" if done else "")
    )


def _score(translate: Translate, sample: Corpus) -> translation.Score:
    return translation.score(translate(sample.sources), sample.targets)
