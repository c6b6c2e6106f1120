"""A whole training run, from a configuration to checkpoints in a run's folder."""

import contextlib
import functools
import reprlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import keras
import tensorflow as tf
from tqdm import tqdm

from tf_transformer import tasks
from tf_transformer.config import Config, DataConfig
from tf_transformer.data.own_shards import OwnShards
from tf_transformer.errors import InputError
from tf_transformer.machine.keras_settings import own_settings
from tf_transformer.machine.threads import require_threads
from tf_transformer.run.folder import RunFolder, owned
from tf_transformer.run.run import Run
from tf_transformer.tasks.metrics import gain
from tf_transformer.tasks.task import Task
from tf_transformer.training import strategy as workers
from tf_transformer.training.autotuning import choose_execution, number_of_updates
from tf_transformer.training.checkpoint import Checkpoints
from tf_transformer.training.divergence import DivergenceCheck
from tf_transformer.training.early_stopping import EarlyStopping, choose_metric, requested_metrics
from tf_transformer.training.interruption import InterruptionError, StopRequest
from tf_transformer.training.preparation import TrainingData, prepare, with_trained_length
from tf_transformer.training.reports import MetricsLog, TrainingProgress, exposure_plan
from tf_transformer.training.setup import initialize, make_updater, possible_executions
from tf_transformer.training.strategy import replica_batches
from tf_transformer.training.update import Updater
from tf_transformer.training.validation import Samples, Validation


@dataclass(frozen=True)
class Result:
    """The outcome of a training run.

    Attributes:
        updates: number of updates made, including earlier starts.
        skipped: number of updates skipped because their gradients were not finite.
        metrics: metrics of the last validation interval, by name.
        metric: name of the score that chose the best weights, like val_bleu.
        best: the best score.
        best_update: number of updates at the best score; None without a score.
        start: the score of the weights of the run in `train.init_from`, before the first update;
            None for another training run.
        stopped_early: whether training ended because the scores did not improve.
        seconds: duration of this start, in seconds.
    """

    updates: int
    skipped: int
    metrics: dict[str, float]
    metric: str
    best: float
    best_update: int | None
    start: float | None
    stopped_early: bool
    seconds: float


@own_settings()
def train(run: Run, on_best: Callable[[int], None] = lambda update: None) -> Result:
    """Trains a run, or resumes its training.

    The run's folder is made if it is missing; `RunFolder` lists its files. If the folder has
    checkpoints of the same configuration, training resumes from the latest. On SIGINT, SIGTERM or
    SIGHUP, training saves a checkpoint and stops. A start that fails before its first checkpoint
    leaves no files.

    Args:
        run: the run; `Run.at` makes it from a folder and a configuration.
        on_best: function of the number of updates. It is called when the score has improved and
            the weights are saved. It is also called when training resumes, because the earlier
            start may have died before its call.

    Raises:
        InputError: for data that cannot be used; for a folder with another configuration or other
            files, or that another training run uses, or that cannot be written; for a training run
            that diverges; for gradients that stay infinite.
        InterruptionError: when a signal stopped the training.
    """
    require_threads()
    task = tasks.for_run(run.config)
    requested = requested_metrics(run.config.train, task)
    run = _completed(run, task)
    options = run.config.train
    task = task.with_options(run.config.task).with_metrics(*requested)
    if options.deterministic:
        tf.config.experimental.enable_op_determinism()
    strategy = None
    if workers.is_multi_worker(options.strategy):  # they meet before TensorFlow runs anything else
        possible_executions(options)[0].use_threads(options.threads)
        strategy = workers.make_strategy(options.strategy)
    is_chief = strategy is None or workers.is_chief(strategy)
    with owned(run.folder) if is_chief else contextlib.nullcontext():
        return _train(run, task, on_best, strategy)


def _train(
    run: Run, task: Task, on_best: Callable[[int], None], strategy: tf.distribute.Strategy | None
) -> Result:
    """Trains in a folder that this process may write.

    The strategy is that of several processes, or None. Threads are set before TensorFlow computes.
    """
    config, folder = run.config, run.folder
    data = prepare(run, task, strategy)
    if strategy:
        execution = possible_executions(config.train)[0]
    else:
        execution = choose_execution(run, data.train)
        execution.use_threads(config.train.threads)
        strategy = workers.make_strategy(config.train.strategy)
    keras.utils.set_random_seed(config.train.seed)
    with strategy.scope():
        updater = make_updater(config, task, data.codec, execution)
    resumes = folder.has_checkpoint
    is_trained = False
    if run.origin and (config.train.lora or not resumes):
        is_trained = initialize(updater.model, config, run.origin) and not resumes
    stopping = EarlyStopping(choose_metric(config.train, task, data.scored.references, resumes))
    checkpoints = Checkpoints(folder, updater, stopping, config.train.keep_checkpoints)
    checkpoints.resume()
    metric = task.metric(stopping.metric)
    validation = Validation(task, updater, data, config.decode.greedy, strategy, metric)
    divergence = DivergenceCheck(updater, checkpoints, data.codec.size(task.labels))
    trainer = _Trainer(
        config, data, updater, validation, divergence, stopping, checkpoints, on_best
    )
    if workers.is_chief(strategy):
        # With new values of options that may change, now that the resume succeeded.
        folder.save_config(with_trained_length(run, data.train.store, resumes))
    with StopRequest() as stop:
        try:
            return trainer.run(folder, stop, is_trained)
        except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError) as e:
            if workers.num_workers(strategy) == 1:
                raise
            raise InputError(
                f"another worker stopped: {str(e).splitlines()[0]} Give all workers the same "
                "command again; they resume from the last checkpoint, of update "
                f"{checkpoints.latest:,}."
            ) from e


def _completed(run: Run, task: Task) -> Run:
    """The run with a configuration that the task and the vocabulary have completed.

    A vocabulary keeps its normalization; earlier versions had another default. Changed options are
    printed.
    """
    config = task.complete(run.config)
    owner = run if run.folder.has_checkpoint else run.origin  # of the vocabulary; None: a new one
    has_own = config.data.prepared or config.data.tokenizer
    if has_own and (codec := owner.codec if owner else task.own_codec(config)):
        config = replace(config, data=replace(config.data, vocabulary_size=max(codec.sizes)))
    if config.data.normalization == DataConfig.normalization and owner:
        stored = run.folder.load_config() if owner is run else owner.config
        rules = stored.data.normalization
        config = replace(config, data=replace(config.data, normalization=rules))
    for name, (before, after) in run.config.differences(config).items():
        if name in ("data.corpora", "data.valid_corpora"):  # their tags, in many words
            continue
        tqdm.write(f"{config.task.name} sets {name} to {reprlib.repr(after)}, not {before!r}")
    return replace(run, config=config)


@dataclass(frozen=True)
class _Trainer:
    """The training loop and its parts."""

    config: Config
    data: TrainingData
    updater: Updater
    validation: Validation
    divergence: DivergenceCheck
    early_stopping: EarlyStopping
    checkpoints: Checkpoints
    on_best: Callable[[int], None]

    def run(self, folder: RunFolder, stop: StopRequest, is_trained: bool) -> Result:
        """Trains by intervals, until all updates are made or the scores stop improving.

        `is_trained` says that the model has the weights of another run and no update yet.
        """
        start, done = time.perf_counter(), self.updater.next_batch
        # Differs from the paper: checkpoints by number of updates; the paper's every 10 minutes.
        train = self.config.train
        interval = train.validate_every or self.data.train.updates(train.accumulate)
        steps = number_of_updates(train, self.data.train)
        metrics: dict[str, float] = {}
        log = None
        if self._is_chief:
            self._print_summary(done, steps)
            log = MetricsLog(folder, done)
            self._report_best()
        if is_trained:
            self._validate_origin(log)
        strategy, sampler, size = self.validation.strategy, self.data.train, train.accumulate
        later = functools.partial(sampler.batches, done * size)
        progress = TrainingProgress(steps, done, shown=self._is_chief)
        own = isinstance(sampler.store, OwnShards)
        given = replica_batches(strategy, sampler.names, later, size, own)
        with given as batches, progress as bar:
            while self.updater.next_batch < steps and not self._stops_early():
                position = self.updater.next_batch
                until = min(steps, position - position % interval + interval)
                seconds = self._train(batches, until, bar, stop)
                metrics = self._end_interval(-(-until // interval), seconds, log)
                bar.end_interval(metrics)
        return Result(
            updates=self.updater.updates,
            skipped=self.updater.next_batch - self.updater.updates,
            metrics=metrics,
            metric=self._metric,
            best=gain(self.validation.metric, float(self.early_stopping.best.numpy())),
            best_update=self.early_stopping.best_at,
            start=next((row.get(self._metric) for row in folder.load_metrics(0)), None),
            stopped_early=self.updater.next_batch < steps,
            seconds=time.perf_counter() - start,
        )

    def _stops_early(self) -> bool:
        """Whether the scores have stopped improving, after a whole pass over the text."""
        train, text = self.config.train, self.data.train
        if not self.early_stopping.should_stop(train.patience):
            return False
        return self.updater.next_batch >= text.updates(train.accumulate, text.store.whole_pass)

    def _exposure(self) -> dict[str, float]:
        """How often the training has seen each of several corpora, by names in the log."""
        batches = self.updater.next_batch * self.config.train.accumulate
        return {
            f"{name}/{corpus.name}": value
            for corpus in self.data.train.exposure(batches)
            for name, value in (("seen", corpus.seen), ("seen_per_distinct_pair", corpus.per_pair))
        }

    @property
    def _is_chief(self) -> bool:
        return workers.is_chief(self.validation.strategy)

    @property
    def _metric(self) -> str:
        """The name, in the log, of the score that chooses the best weights."""
        return f"val_{self.validation.metric.name}"

    def _train(
        self, batches: Iterator, until: int, bar: TrainingProgress, stop: StopRequest
    ) -> float:
        """Makes updates up to number `until`, with checkpoints; returns the seconds taken."""
        start = time.perf_counter()
        bar.start_interval()
        self.divergence.start_interval()
        for position in range(self.updater.next_batch + 1, until + 1):
            self.updater.update(batches)
            due = bar.step(self.updater)
            due, stopping = workers.any_worker(self.validation.strategy, due, bool(stop.signal))
            if due:
                bar.refresh(self.updater)
                self.divergence.check_updates()
            if position == until:  # saved after the validation
                break
            if stopping or position % self.config.train.save_every == 0:
                self.divergence.check_updates()
                self._save(self.checkpoints.save)
            if stopping:
                raise InterruptionError(self.updater.updates, stop.signal or signal.SIGTERM)
        self.divergence.check_gradients()  # losses are logged first
        return time.perf_counter() - start

    def _save(self, save: Callable[..., None], *arguments: Any) -> None:
        """Saves on the chief only; other workers restore its files."""
        if self._is_chief:
            save(*arguments)

    def _validate_origin(self, log: MetricsLog | None) -> None:
        """Validates the weights of the run in `train.init_from`, as those of update 0.

        They are the best until an update is better. They are not a checkpoint of the newest
        intervals, whose mean is the default of the search, and none to resume from.
        """
        if self._is_chief:
            tqdm.write(
                f"update 0 has the weights of {self.config.train.init_from}, which are the best "
                "until an update is better"
            )
        if self._is_best(self._validate(0, {}, "", log)):
            self._save(self.checkpoints.save_best)
            self._report_best()

    def _end_interval(
        self, number: int, seconds: float, log: MetricsLog | None
    ) -> dict[str, float]:
        """Validates, logs and saves; returns the interval's metrics."""
        rate = self.updater.optimizer.learning_rate
        problem = self.divergence.problem_of_updates()
        of_training = {
            "tokens_per_second": round(self.updater.tokens_seen / seconds),
            "learning_rate": float(keras.ops.convert_to_numpy(rate)),
            "skipped": float(self.updater.next_batch - self.updater.updates),
            "gradient_norm": self.updater.read_gradient_norm(),
            **self.updater.read_metrics(),
        }
        metrics = self._validate(number, of_training, problem, log)
        is_best = self._is_best(metrics)
        self._save(self.checkpoints.save_interval, is_best)
        if is_best:
            self._report_best()
        return metrics

    def _validate(
        self, number: int, of_training: Mapping[str, float], problem: str, log: MetricsLog | None
    ) -> dict[str, float]:
        """Validates and logs the present weights; raises an `InputError` for a problem."""
        metrics = {**of_training, **self._exposure(), **self.validation.losses()}
        problem = problem or self.divergence.problem("validation loss", metrics["val_loss"])
        train, samples = self.config.train, Samples()
        if train.valid_score_examples and number % train.valid_score_every == 0 and not problem:
            scores, samples = self.validation.scores()
            metrics |= scores
        if log:  # before the checkpoint: a restart drops lines beyond its checkpoint
            log.write(self.updater.next_batch, metrics, samples)
        if problem:
            raise self.divergence.error(problem)
        return metrics

    def _is_best(self, metrics: Mapping[str, float]) -> bool:
        """Records the score in the metrics of a validation; whether it is the best so far."""
        score = metrics.get(self._metric)
        return score is not None and self.early_stopping.update(
            gain(self.validation.metric, score), metrics["val_loss"], self.updater.updates
        )

    def _report_best(self) -> None:
        if self._is_chief and (update := self.early_stopping.best_at) is not None:
            self.on_best(update)

    def _print_summary(self, done: int, steps: int) -> None:
        updater, model, train = self.updater, self.updater.model, self.config.train
        replicas = self.validation.strategy.num_replicas_in_sync
        tqdm.write(
            f"model: {model.count_params():,} parameters, {self.data.codec}, "
            f"{model.dtype_policy.name}, {replicas} replica(s)"
            + (f" of {updater.micro_batches} micro-batches" * (updater.micro_batches > 1))
            + exposure_plan(self.data.train, steps * train.accumulate)
            + f"\nbatches: {self.data.train.summary()}"
            + f", {train.accumulate} per update" * (train.accumulate > 1)
            + f"\nupdates: {steps:,}"
            + f", resuming from {done:,}" * bool(done)
            + f"\nbest weights: by {self._metric}"
            + ", lower is better" * self.validation.metric.lower_is_better
            + _warm_up(steps, train.warmup_steps)
        )
        if done > steps:
            tqdm.write(
                f"nothing is trained: the run has made {done:,} updates, and train.steps or "
                f"train.epochs asks for {steps:,}",
                file=sys.stderr,
            )


def _warm_up(steps: int, warmup_steps: int) -> str:
    """A line about a training run that ends before the peak of the learning rate, or no text."""
    if steps >= warmup_steps:
        return ""
    return (
        f"\nlearning rate: rises until update {warmup_steps:,} (train.warmup_steps), so it ends at "
        f"{100 * steps // warmup_steps}% of its peak"
    )
