"""A whole training run: from a configuration to checkpoints in a folder."""

import itertools
import os
import pathlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import keras
import tensorflow as tf
from tqdm import tqdm

from tf_transformer.config import Config, DataConfig
from tf_transformer.data.batching import BatchPlan
from tf_transformer.data.corpus import Corpus, PairStream
from tf_transformer.data.store import tokenised
from tf_transformer.errors import InputError
from tf_transformer.files import one_line, write_whole
from tf_transformer.models.transformer import Transformer
from tf_transformer.tasks import translation
from tf_transformer.tokenizer import Tokenizer
from tf_transformer.training import strategy as devices
from tf_transformer.training.checkpoint import Checkpoints, has_checkpoint, load_weights
from tf_transformer.training.interruption import InterruptionError, StopRequest
from tf_transformer.training.learner import Learner, make_optimizer
from tf_transformer.training.reports import Journal, ProgressBar
from tf_transformer.training.schedule import TransformerSchedule
from tf_transformer.training.standing import Standing

Translate = Callable[[Sequence[str]], list[str]]
# What a run may go on with that it did not start with: of an update it moves rounding and dropout's
# noise at most.
MAY_CHANGE = {
    *("train.steps", "train.epochs", "train.patience", "train.save_every", "train.max_skipped"),
    *("train.keep_checkpoints", "train.export_best", "train.strategy", "train.threads"),
    "data.cache_dir",
}
SAMPLES = 32  # validation sentences kept in the run's folder, to check an export with
SAMPLES_FILE = "samples.txt"


@dataclass(frozen=True)
class Result:
    """What a training reached.

    Attributes:
        updates: how many were made, earlier starts included.
        skipped: how many were passed over because their gradients were not finite.
        figures: of the last round, by name.
        best: the best score: BLEU, or minus the validation loss.
        best_update: where it was reached.
        stopped_early: whether it ended because scores got no better.
        seconds: of this start.
    """

    updates: int
    skipped: int
    figures: dict[str, float]
    best: float
    best_update: int
    stopped_early: bool
    seconds: float


def train(
    config: Config,
    run_dir: str | os.PathLike,
    make_translate: Callable[[Transformer, Tokenizer], Translate],
    on_best: Callable[[int], None] = lambda update: None,
) -> Result:
    """Trains, or goes on training, the run in a folder.

    The folder gets `config.yaml`, `tokenizer.model`, `samples.txt`, `checkpoints/`, `logs/` and
    `metrics.jsonl`. Given a folder that holds checkpoints of the same configuration, training
    goes on from the latest. On SIGINT or SIGTERM it saves one and stops.

    Args:
        config: everything about the run.
        run_dir: the folder; made when missing.
        make_translate: gives a function that translates with a model in training, for BLEU.
        on_best: called with the number of updates when a score is better than all before, once
            its weights are saved; and at a start that goes on, in case it was cut short.

    Raises:
        InputError: for data that cannot be used, a folder of another configuration or that
            cannot be written, or gradients that stay infinite.
        InterruptionError: when a signal asked to stop.
    """
    run_dir = pathlib.Path(run_dir)
    if config.train.deterministic:
        tf.config.experimental.enable_op_determinism()
    shares = devices.use_threads(config.train.threads, config.train.jit_compile)
    strategy = devices.make_strategy(config.train.strategy)
    keras.utils.set_random_seed(config.train.seed)
    data = _prepare_once(config, run_dir, strategy)
    with strategy.scope():
        learner = _learner(data.tokenizer.vocabulary_size, config, shares)
    if config.train.init_from and not has_checkpoint(run_dir):
        _initialize(learner.transformer, config)
    standing = Standing()
    checkpoints = Checkpoints(run_dir, learner, standing, config.train.keep_checkpoints)
    checkpoints.resume()
    translate = make_translate(learner.transformer, data.tokenizer)
    training = _Training(
        config, run_dir, strategy, data, learner, standing, checkpoints, translate, on_best
    )
    with StopRequest() as stop:
        try:
            return training.run(stop)
        except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError) as e:
            if devices.num_workers(strategy) == 1:
                raise
            raise InputError(
                f"another worker stopped: {str(e).splitlines()[0]} Give all workers the same "
                "command again; they go on from the last checkpoint, of update "
                f"{checkpoints.latest:,}."
            ) from e


@dataclass(frozen=True)
class _Training:
    """All that takes part in a training, and the loop."""

    config: Config
    run_dir: pathlib.Path
    strategy: tf.distribute.Strategy
    data: "_Data"
    learner: Learner
    standing: Standing
    checkpoints: Checkpoints
    translate: Translate
    on_best: Callable[[int], None]

    def run(self, stop: StopRequest) -> Result:
        """Round after round, until all updates are made or scores get no better."""
        start, done = time.perf_counter(), self.learner.position
        # Differs from the paper: a checkpoint after a number of updates, not every ten minutes.
        train = self.config.train
        round_length = train.validate_every or self._updates_of_a_pass()
        steps = train.steps or train.epochs * self._updates_of_a_pass()
        figures: dict[str, float] = {}
        journal = None
        if self._is_chief:
            _describe(self, done, steps)
            journal = Journal(self.run_dir, done)
            self._tell_of_best()
        shown = ProgressBar(steps, done, shown=self._is_chief)
        with self._batches(done) as batches, shown as bar:
            while self.learner.position < steps and not self._has_waited:
                position = self.learner.position
                until = min(steps, position - position % round_length + round_length)
                seconds = self._train(batches, until, bar, stop)
                figures = self._close_round(-(-until // round_length), seconds, journal)
        return Result(
            updates=self.learner.updates,
            skipped=self.learner.position - self.learner.updates,
            figures=figures,
            best=float(self.standing.best.numpy()),
            best_update=int(self.standing.best_update.numpy()),
            stopped_early=self.learner.position < steps,
            seconds=time.perf_counter() - start,
        )

    def _updates_of_a_pass(self) -> int:
        """Waits until all pairs are tokenised."""
        return max(1, len(self.data.plan) // self.config.train.accumulate)

    @property
    def _is_chief(self) -> bool:
        return devices.is_chief(self.strategy)

    @property
    def _has_waited(self) -> bool:
        return self.standing.has_waited(self.config.train.patience)

    def _batches(self, position: int) -> AbstractContextManager[Iterator]:
        """Every replica's shares of the batches from an update on."""
        size = self.config.train.accumulate
        return devices.share_out(
            self.strategy, lambda: self.data.plan.batches(start=position * size), size
        )

    def _train(self, batches: Iterator, until: int, bar: ProgressBar, stop: StopRequest) -> float:
        """Makes updates up to number `until`, saving now and then; returns the seconds it took."""
        start = time.perf_counter()
        bar.start_round()
        for position in range(self.learner.position + 1, until + 1):
            self.learner.update(batches)
            if bar.step(self.learner):
                self._check_gradients()
            if position == until:  # what ends a round is saved once the round is judged
                break
            stopping = devices.any_of_all(self.strategy, bool(stop.signal))
            if stopping or position % self.config.train.save_every == 0:
                self._save(self.checkpoints.save)
            if stopping:
                raise InterruptionError(self.learner.updates, stop.signal or signal.SIGTERM)
        self._check_gradients()
        return time.perf_counter() - start

    def _check_gradients(self) -> None:
        skipped = int(self.learner.optimizer.skipped_in_a_row.numpy())
        if skipped >= self.config.train.max_skipped:
            raise InputError(
                f"{skipped} updates in a row, up to number {self.learner.position}, had gradients "
                "that are not finite, and were passed over. Lower train.learning_rate, raise "
                "train.warmup_steps, set train.clip_norm 1, or use mixed_bfloat16 or float32 for "
                "train.precision; in another --run_dir, with --train.init_from this one to keep "
                "what it has learned."
            )

    def _save(self, save: Callable[..., None], *arguments) -> None:
        """Saves on the chief alone; other workers restore what it wrote."""
        if self._is_chief:
            save(*arguments)

    def _close_round(
        self, number: int, seconds: float, journal: Journal | None
    ) -> dict[str, float]:
        """Validates, saves, and gives the round's figures."""
        rate = self.learner.optimizer.learning_rate
        figures = {
            "tokens_per_second": round(self.learner.tokens_seen / seconds),
            "learning_rate": float(keras.ops.convert_to_numpy(rate)),
            "skipped": float(self.learner.position - self.learner.updates),
            **self.learner.figures(),
            **self._validation_figures(),
        }
        train = self.config.train
        if train.valid_bleu_sentences and number % train.valid_bleu_every == 0:
            figures |= self._validation_scores()
        score = figures.get("val_bleu") if train.valid_bleu_sentences else -figures["val_loss"]
        is_best = score is not None and self.standing.note(score, self.learner.updates)
        if journal:  # before the checkpoint: lines beyond a checkpoint are dropped, none is missed
            journal.write(self.learner.position, figures)
        self._save(self.checkpoints.save_round, is_best)
        if is_best and self._is_chief:
            self._tell_of_best()
        return figures

    def _tell_of_best(self) -> None:
        if update := int(self.standing.best_update.numpy()):
            self.on_best(update)

    def _validation_figures(self) -> dict[str, float]:
        """Loss and the like on all validation pairs, each worker with its share."""
        plan = self.data.valid_plan
        with devices.share_out(self.strategy, plan.one_pass) as batches:
            for _ in range(len(plan)):
                self.learner.validate(batches)
        return {f"val_{name}": value for name, value in self.learner.figures().items()}

    def _validation_scores(self) -> dict[str, float]:
        """BLEU and exact matches of translations, which the chief makes for all."""
        scores = [0.0, 0.0]
        if self._is_chief:
            sample = self.data.sample
            found = translation.score(self.translate(sample.sources), sample.targets)
            scores = [found.bleu, found.exact_match]
        names = ("val_bleu", "val_exact_match")
        return dict(zip(names, devices.tell_all(self.strategy, scores), strict=True))


@dataclass(frozen=True)
class _Data:
    """What a training reads."""

    tokenizer: Tokenizer
    plan: BatchPlan
    valid_plan: BatchPlan
    sample: Corpus  # validation pairs to translate and score


def _prepare_once(config: Config, run_dir: pathlib.Path, strategy: tf.distribute.Strategy) -> _Data:
    """What a training reads; other workers wait for the files that the chief makes."""
    if not devices.is_chief(strategy):
        devices.tell_all(strategy, [0.0])
        return _prepare(config, run_dir)
    claim(run_dir, config)
    data = _prepare(config, run_dir)
    devices.tell_all(strategy, [0.0])
    return data


def _prepare(config: Config, run_dir: pathlib.Path) -> _Data:
    train_text, valid_text = translation.load_pairs(config.data, config.train.seed)
    if config.train.init_from and not (run_dir / "tokenizer.model").exists():
        model = pathlib.Path(config.train.init_from) / "tokenizer.model"
        write_whole(run_dir / "tokenizer.model", model.read_bytes())
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
        changed = {
            name: values
            for name, values in Config.load(run_dir).differences(config).items()
            if name not in MAY_CHANGE and not name.startswith("decode.")
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


def _learner(vocabulary_size: int, config: Config, shares: int) -> Learner:
    """A new model with its optimizer; call in the strategy's scope."""
    train = config.train
    precision = _precision(train.precision)
    transformer = Transformer(vocabulary_size, config.model, dtype=precision)
    transformer.build()
    schedule = TransformerSchedule(config.model.d_model, train.warmup_steps, train.learning_rate)
    optimizer = make_optimizer(
        transformer,
        schedule,
        clip_norm=train.clip_norm,
        average_decay=train.average_decay,
        scale_loss=precision == "mixed_float16",
    )
    return Learner(transformer, optimizer, train.label_smoothing, train.jit_compile, shares)


def _precision(name: str) -> str:
    if name != "auto":
        return name
    gpus = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    capabilities = [gpu.get("compute_capability", (0, 0)) for gpu in gpus]
    has_bfloat16 = bool(capabilities) and min(capabilities) >= (8, 0)
    return "mixed_bfloat16" if has_bfloat16 else "float32"


def _initialize(transformer: Transformer, config: Config) -> None:
    """Gives a model the weights of another run of the same sizes.

    Raises:
        InputError: when that run's model or vocabulary is another.
    """
    source = Config.load(config.train.init_from)
    may_differ = {"dropout_rate", "attention_dropout_rate", "feed_forward_dropout_rate", "remat"}
    must_agree = {
        name: values
        for name, values in source.differences(config).items()
        if name in ("data.vocabulary_size", "data.normalization")
        or (name.startswith("model.") and name.removeprefix("model.") not in may_differ)
    }
    if must_agree:
        listed = "; ".join(
            f"{k} is {old!r} there, {new!r} here" for k, (old, new) in must_agree.items()
        )
        raise InputError(
            f"train.init_from={config.train.init_from} cannot start this run: {listed}. A run "
            "that starts with another's weights has its vocabulary and its sizes."
        )
    load_weights(config.train.init_from, transformer, source.decode.average)


def _describe(training: _Training, done: int, steps: int) -> None:
    learner, plan = training.learner, training.data.plan
    model, accumulate = learner.transformer, training.config.train.accumulate
    tqdm.write(
        f"model: {model.count_params():,} parameters, vocabulary {model.vocabulary_size:,}, "
        f"{model.dtype_policy.name}, {training.strategy.num_replicas_in_sync} replica(s)"
        + (f" of {learner.shares} shares" if learner.shares > 1 else "")
        + f"\nbatches: {plan.summary()}"
        + (f", {accumulate} an update" if accumulate > 1 else "")
        + f"\nupdates: {steps:,}"
        + (f", going on from {done:,}" if done else "")
    )
