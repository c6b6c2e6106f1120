"""The decoder-only model of the same shape: continuations with and without prompts."""

import keras

from benchmarks.decode.translator import _sentences, _tokenizer
from benchmarks.decode.workload import LENGTH_PENALTY, SOURCE_TOKENS, Cell
from benchmarks.harness.tasks import Setting, Task
from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.predictors.text_generator import TextGenerator


def task(setting: Setting, cell: Cell, with_prompt: bool) -> Task:
    """Calls `TextGenerator`, whose prompts have `SOURCE_TOKENS` tokens or none."""
    keras.utils.set_random_seed(1)
    sizes = setting.shape._asdict()
    model = LanguageModel(sizes.pop("vocabulary_size"), ModelConfig(**sizes))
    model.build()
    config = DecodeConfig(
        beam_size=cell.beam,
        length_penalty=LENGTH_PENALTY,
        min_length=cell.target_tokens,
        max_length=cell.target_tokens,
        batch_size=cell.batch,
        batch_tokens=cell.batch * SOURCE_TOKENS,
    )
    generator = TextGenerator(model, _tokenizer(setting), config)
    texts = _sentences(setting, cell.batch) if with_prompt else [""] * cell.batch
    return Task(cell.batch * cell.target_tokens, lambda: generator(texts), lambda found: None)
