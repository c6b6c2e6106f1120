"""Marian's own decoder, of `pymarian`, on a model of the same sizes with random weights."""

import functools
import json
import re

from benchmarks.decode.workload import SOURCE_TOKENS, Cell, check_lengths, random_sources
from benchmarks.harness.shapes import END_ID, FIRST_FREE_ID, THREADS
from benchmarks.harness.tasks import Setting, Task

_NEVER = -10_000.0  # the logit of the end token
_TOKEN = re.compile(r"t\d+|<unk>")


def build(setting: Setting, cells: list[Cell]) -> None:
    """Writes Marian's files: decoder.yml, weights and a list of tokens.

    Marian has no option for the shortest translation, so the end token has a low bias.
    """
    import keras
    import numpy as np
    import yaml

    from tf_transformer.config import ModelConfig
    from tf_transformer.export import to_marian_npz
    from tf_transformer.imports import layouts
    from tf_transformer.imports.marian_options import OPTIONS
    from tf_transformer.models.transformer import Transformer

    keras.utils.set_random_seed(1)
    sizes = setting.shape._asdict()
    options = {"position": "marian", "attention_bias": True, "output_bias": True}
    model = Transformer(sizes.pop("vocabulary_size"), ModelConfig(**sizes, **options))
    model.build()
    arrays = to_marian_npz.arrays(model)
    bias = layouts.marian(norm_first=False, has_ssru=False).bias
    arrays[bias][0, 0] = _NEVER  # the first id of Marian's files
    content = yaml.safe_dump(to_marian_npz.options(model)).encode() + b"\0"
    setting.own.mkdir(parents=True, exist_ok=True)
    np.savez(setting.own / "model.npz", **arrays, **{OPTIONS: np.frombuffer(content, np.int8)})
    tokens = ["</s>", "<unk>", *map(_token, range(FIRST_FREE_ID, model.vocabulary_size))]
    lines = (f"{json.dumps(token)}: {number}\n" for number, token in enumerate(tokens))
    (setting.own / "vocabulary.yml").write_text("".join(lines), "utf-8")
    files = {"models": ["model.npz"], "vocabs": ["vocabulary.yml"] * 2, "relative-paths": True}
    (setting.own / "decoder.yml").write_text(yaml.safe_dump(files), "utf-8")


def task(setting: Setting, cell: Cell) -> Task:
    """Calls `translate` on lines of tokens; translations are as long as the factor allows."""
    translator = _translator(setting, cell)
    rows = random_sources(setting.shape, cell.batch).tolist()
    text = "\n".join(" ".join(map(_token, row[: row.index(END_ID)])) for row in rows)

    def check(translations: str) -> None:
        lengths = [len(_TOKEN.findall(line)) for line in translations.split("\n")]
        check_lengths(lengths, cell.batch, cell.target_tokens)

    return Task(cell.batch * cell.target_tokens, lambda: translator.translate(text), check)


@functools.cache
def _translator(setting: Setting, cell: Cell):
    from pymarian import Translator

    return Translator(
        config=str(setting.own / "decoder.yml"),
        beam_size=cell.beam,
        normalize=0.6,
        mini_batch=cell.batch,
        maxi_batch=1,
        max_length_factor=cell.target_tokens / SOURCE_TOKENS,
        cpu_threads=THREADS if cell.batch > 1 else 1,
        quiet=True,
        quiet_translation=True,
    )


def _token(number: int) -> str:
    return f"t{number}"
