"""Trains a translation model: python train.py --run_dir runs/x [--config FILE] [--options]."""

from tf_transformer import command_line
from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig


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
    from tf_transformer.translator import greedy_translate

    result = trainer.train(Config(model, data, train, decode), run_dir, greedy_translate)
    print(f"trained {result.updates:,} updates: {run_dir}")


if __name__ == "__main__":
    command_line.run(main)
