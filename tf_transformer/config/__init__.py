"""All options: the configuration of a run, one module per group."""

from tf_transformer.config.config import Config
from tf_transformer.config.data import AugmentConfig, Corpus, DataConfig
from tf_transformer.config.decode import DecodeConfig, DType, Quantization
from tf_transformer.config.model import (
    PRESETS,
    SINUSOIDS,
    Activation,
    DecoderAttention,
    LayerConfig,
    ModelConfig,
    Normalization,
    Position,
)
from tf_transformer.config.task import TaskOptions
from tf_transformer.config.train import TrainConfig

__all__ = [
    "PRESETS",
    "SINUSOIDS",
    "Activation",
    "AugmentConfig",
    "Config",
    "Corpus",
    "DType",
    "DataConfig",
    "DecodeConfig",
    "DecoderAttention",
    "LayerConfig",
    "ModelConfig",
    "Normalization",
    "Position",
    "Quantization",
    "TaskOptions",
    "TrainConfig",
]
