"""Trains a translation model: python train.py --run_dir runs/x [--config FILE] [--options]."""

import pathlib
import subprocess
import sys
from typing import TYPE_CHECKING

from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig

if TYPE_CHECKING:
    from tf_transformer.training.trainer import Result


def main(
    run_dir: str,
    model: ModelConfig = ModelConfig(),
    data: DataConfig = DataConfig(),
    train: TrainConfig = TrainConfig(),
    decode: DecodeConfig = DecodeConfig(),
) -> None:
    """Trains a run, or goes on with it when its folder holds checkpoints.

    Args:
        run_dir: the run's folder.
        model: sizes and variants.
        data: where the pairs come from; the generated corpus when nothing is named.
        train: how to train.
        decode: how the trained model will translate, unless told otherwise.
    """
    from tf_transformer.training import trainer
    from tf_transformer.training.interruption import InterruptionError
    from tf_transformer.translator import greedy_translate

    config = Config(model, data, train, decode)

    def on_best(update: int) -> None:
        if train.export_best:
            export(run_dir, update)

    try:
        result = trainer.train(config, run_dir, greedy_translate, on_best)
    except InterruptionError as stop:
        print(f"{stop}; the same command goes on with it: {run_dir}", file=sys.stderr)
        sys.exit(128 + stop.signal)
    print(summary(result, config), f"run: {run_dir}", sep="\n")


def summary(result: "Result", config: Config) -> str:
    """What a training reached, in a few lines."""
    end = f", stopped early: {config.train.patience} scores no better" * result.stopped_early
    lines = [f"trained {result.updates:,} updates{end}, {result.seconds / 60:.1f} minutes"]
    if result.best_update:
        name = "BLEU" if config.train.valid_bleu_sentences else "validation loss"
        lines.append(f"best {name} {abs(result.best):.4g} at update {result.best_update:,}")
    if result.skipped:
        lines.append(f"{result.skipped:,} updates passed over: gradients were not finite")
    return "\n".join(lines)


def export(run_dir: str, update: int) -> None:
    """Exports the best weights so far as <run_dir>/export/<update>, in a process of its own.

    A failure is told and no more: training goes on.
    """
    run = pathlib.Path(run_dir).absolute()
    to = run / "export" / str(update)
    if to.exists():  # before an interruption
        return
    options = ["--run_dir", str(run), "--to", str(to), "--average", "best"]
    program = [sys.executable, "-m", "tf_transformer.commands.main", "export", *options]
    done = subprocess.run(program, stdout=sys.stderr, check=False)
    if done.returncode:
        print(f"exporting update {update} failed, training goes on", file=sys.stderr)
