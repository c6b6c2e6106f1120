"""The decoder-only model of the same shape: continuations with and without prompts."""

import keras

from benchmarks.decode.translator import search_for, sentences_for, tokenizer_for
from benchmarks.decode.workload import Cell
from benchmarks.harness.tasks import Setting, Task
from tf_transformer.config import ModelConfig
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.predictors.text_generator import TextGenerator


def task(setting: Setting, cell: Cell, with_prompt: bool) -> Task:
    """Calls `TextGenerator`, whose prompts have `SOURCE_TOKENS` tokens or none."""
    keras.utils.set_random_seed(1)
    sizes = setting.shape._asdict()
    model = LanguageModel(sizes.pop("vocabulary_size"), ModelConfig(**sizes))
    model.build()
    generator = TextGenerator(model, tokenizer_for(setting), search_for(cell))
    texts = sentences_for(setting, cell.batch) if with_prompt else [""] * cell.batch
    return Task(cell.batch * cell.target_tokens, lambda: generator(texts), lambda found: None)
