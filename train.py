"""Trains a model: python train.py --run_dir runs/x [--config FILE] [--options]."""

from tf_transformer.commands import command_line, train

if __name__ == "__main__":
    command_line.run(train.main)
