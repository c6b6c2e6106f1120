"""Trains a model: python train.py --run_dir runs/x [--config FILE] [--options]."""

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

from tf_transformer.commands.input_files import check_files
from tf_transformer.config import (
    Config,
    DataConfig,
    DecodeConfig,
    ModelConfig,
    TaskOptions,
    TrainConfig,
)
from tf_transformer.data.corpora import check, in_folder, own_file
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.machine.gpus import WITHOUT_GPUS
from tf_transformer.machine.heap import keep_freed_memory
from tf_transformer.machine.programs import run_command
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run

if TYPE_CHECKING:
    from tf_transformer.training.trainer import Result


def main(
    run_dir: LocalPath,
    model: ModelConfig = ModelConfig(),
    data: DataConfig = DataConfig(),
    train: TrainConfig = TrainConfig(),
    decode: DecodeConfig = DecodeConfig(),
    task: TaskOptions | str = "translation",
    given: Collection[str] | None = None,
) -> None:
    """Trains a model, or resumes the training of a run with checkpoints.

    For a translation of your own text, training chooses the options that you leave out by the size
    of the text. These are vocabulary, sizes and dropout of the model, tokens per batch, warm-up and
    number of updates. It prints the choice and saves it as the configuration of the run.

    --run_dir alone resumes with the options of the run. A start that fails before its first
    checkpoint leaves no files. Only one training run at a time writes in a folder. It overwrites no
    finished model and no other files.

    Args:
        run_dir: folder of the run.
        model: sizes and variants of the model.
        data: the examples; the default is the generated corpus.
        train: how the model is trained.
        decode: defaults for the predictions of the trained model.
        task: name of a task, like translation, or module:attribute of your own task. --help shows
            the options of this task.
        given: names of the options that were given, like model.d_model; others may be chosen.
            None: all were given.
    """
    config = Config(model, data, train, decode, task)  # type: ignore[arg-type]
    run = Run.at(run_dir, config)
    if not run.folder.has_checkpoint:  # a new training run reads files
        data = run.config.data
        files = in_folder(data)
        check_files(run.config.task.name, own_file(files.corpora), own_file(files.valid_corpora))
        check(data)
        run.origin  # noqa: B018  raises for train.init_from
    keep_freed_memory(one_heap=True)  # before TensorFlow starts threads
    from tf_transformer import tasks
    from tf_transformer.training import trainer
    from tf_transformer.training.interruption import InterruptionError
    from tf_transformer.training.open_options import fit_to_text

    if given is not None:
        run = fit_to_text(run, tasks.for_run(run.config), given)

    def on_best(update: int) -> None:
        if train.export_best:
            export(run.folder, update)

    try:
        result = trainer.train(run, on_best)
    except InterruptionError as stop:
        print(f"{stop}; to resume: the same command, or --run_dir {run_dir}", file=sys.stderr)
        sys.exit(128 + stop.signal)
    print(summary(result, run.config), f"run: {run_dir}", sep="\n")


def summary(result: "Result", config: Config) -> str:
    """The outcome of a training run in a few lines of text."""
    end = f", stopped early: {config.train.patience} scores no better" * result.stopped_early
    lines = [f"trained {result.updates:,} updates{end}, {result.seconds / 60:.1f} minutes"]
    if result.best_update is not None:
        line = f"best {result.metric} {result.best:.4g} at update {result.best_update:,}"
        origin = f"the weights of {config.train.init_from}"
        if result.start is not None and result.best_update:
            line += f"; {result.start:.4g} at the start, with {origin}"
        elif result.start is not None:
            line += f": no update is better than {origin}, which --average best gives"
        lines.append(line)
    if result.skipped:
        lines.append(f"{result.skipped:,} updates skipped: gradients were not finite")
    return "\n".join(lines)


def export(folder: RunFolder, update: int) -> None:
    """Exports the best weights so far to export/<update> in the run's folder, in a new process.

    If the export fails, a message is printed and training continues.
    """
    to = folder.exports / str(update)
    if to.exists():  # exported before an interruption
        return
    options = ["--run_dir", str(folder.path), "--to", str(to), "--average", "best"]
    # This training run may hold the memory of GPUs.
    if run_command("export", *options, environment=WITHOUT_GPUS):
        print(f"the export of update {update} failed; training continues", file=sys.stderr)
