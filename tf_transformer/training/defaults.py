"""Defaults that fit the corpus: options of a training run as a function of the size of its text.

| pairs | vocabulary | model | dropout | tokens per batch | passes |
|---|---|---|---|---|---|
| 500 | 2,000 | tiny, 2 layers | 0.3 | 1,024 | 83 |
| 5,000 | 2,000 | tiny, 2 layers | 0.3 | 1,024 | 47 |
| 30,000 | 4,000 | tiny, 3 layers | 0.2 | 2,048 | 30 |
| 170,000 | 4,000 | tiny | 0.1 | 2,048 | 19 |
| 500,000 | 6,100 | small | 0.1 | 4,096 | 15 |
| 1,000,000 | 8,000 | base | 0.1 | 8,192 | 12 |
| from 4,000,000 | 32,000 | base | 0.1 | 8,192 | 9 and fewer |

The vocabulary is one of both languages, and 256 of its pieces are bytes. It is larger if it would
have fewer than 1,000 pieces beside bytes and characters, as with Chinese. The warm-up is a
twentieth of all updates, from 1,000 to 4,000. Validation divides a training run into about 30
intervals.

Sources:

- Vocabulary: Gowda and May (2020), "Finding the Optimal Vocabulary Size for Neural Machine
  Translation", who compare sizes for 30,000 to 4.5 million pairs.
- Small corpora: Sennrich and Zhang (2019), "Revisiting Low-Resource Neural Machine Translation":
  fewer pieces, smaller batches and more dropout.
- Large corpora: the base model and its warm-up, Vaswani et al. (2017), Table 3 and section 5.3.
- `research/docs/first_defaults.md` compares these options with fixed ones.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tf_transformer.config import Config, ModelConfig, TrainConfig
from tf_transformer.config.option import select
from tf_transformer.data.corpora import MOST_PAIRS, TextSize

FITTING = tuple(select(Config, lambda rules: rules.fits_text))
LONG_PAIR = 200  # bytes; longer pairs count as several
# Points, between which the size is linear in logarithms.
VOCABULARY = (
    *((5_000, 2_000), (25_000, 4_000), (170_000, 4_000)),
    *((1_000_000, 8_000), (4_000_000, 32_000)),
)
LONGER_PIECES = 1_000  # of several characters, at least
# The smallest number of pairs of each value.
MODELS = ((0, "tiny"), (300_000, "small"), (1_000_000, "base"))
FEWER_LAYERS = ((0, 2), (20_000, 3), (100_000, 0))  # than those of the model; 0: all
DROPOUT = ((0, 0.3), (20_000, 0.2), (100_000, 0.1))
BATCH_TOKENS = ((0, 1024), (20_000, 2048), (300_000, 4096), (1_000_000, 8192))
# 30 passes at 30,000 pairs; the number falls with the fourth root of the size.
PASSES, PASSES_AT, MOST_PASSES = 30, 30_000, 100
WARMUP = (1000, 4000)  # updates, the least and the most; between them a twentieth of all
MEMORY = "a larger model, or one with less dropout, would memorize the text"
WHY_VOCABULARY = (
    (0, "short pieces occur often enough to be learned"),
    (100_000, "so much text shows longer pieces often enough"),
    (1_000_000, "so much text shows most words often enough"),
)
WHY_MODEL = (
    (0, f"so few pairs need a trained model to start with, by --train.init_from: {MEMORY}"),
    (3_000, MEMORY),
    (100_000, "a larger model needs more text"),
    (300_000, "so much text is worth a larger model"),
    (1_000_000, "so much text is worth the paper's base model"),
)
INTERVALS, SHORTEST_INTERVAL = 30, 100  # of validation: their number, and their updates


Value = TypeVar("Value")


class Choice(NamedTuple):
    """Chosen options."""

    values: dict[str, Any]  # by the name of the option, like data.vocabulary_size
    reasons: list[str]  # lines for people


def choose(size: TextSize, given: Mapping[str, Any]) -> Choice:
    """The options of `FITTING` that are not given, for a size of the training text.

    They fit the values of the given options by name, like {"train.epochs": 10}.
    """
    pairs = max(size.pairs, size.bytes // LONG_PAIR, 1)
    preset = _at(MODELS, pairs)
    options = dict(given)  # with the chosen ones
    vocabulary_size, why = _vocabulary(size, pairs)
    options.setdefault("data.vocabulary_size", vocabulary_size)
    batch_tokens = max(_at(BATCH_TOKENS, pairs), given.get("data.max_length", 0))
    options.setdefault("data.batch_tokens", batch_tokens)
    if layers := _at(FEWER_LAYERS, pairs):
        options.setdefault("model.num_layers", layers)
    for name, value in ModelConfig.preset_options(preset).items():
        options.setdefault(f"model.{name}", value)
    if "model.num_heads" not in given:
        options["model.num_heads"] = math.gcd(options["model.num_heads"], options["model.d_model"])
    if "model.dropout_rate" not in given:
        options["model.dropout_rate"] = _at(DROPOUT, pairs)

    # In European languages: about 3 bytes per token with 1,000 pieces, 4 with 10,000.
    tokens = max(1, size.bytes) / max(1.0, math.log10(options["data.vocabulary_size"]))
    tokens_per_update = options["data.batch_tokens"] * given.get("train.accumulate", 1)
    updates_per_pass = max(1.0, tokens / tokens_per_update)
    if "train.steps" in given or "train.epochs" in given:
        passes = given.get("train.epochs", TrainConfig.epochs)
        updates = given.get("train.steps") or round(passes * updates_per_pass)
    else:
        passes = min(PASSES * (PASSES_AT / pairs) ** 0.25, MOST_PASSES)
        options["train.steps"] = updates = _rounded(passes * updates_per_pass)
        interval = max(SHORTEST_INTERVAL, _rounded(updates / INTERVALS))
        options.setdefault("train.validate_every", interval)
    least, most = WARMUP
    options.setdefault("train.warmup_steps", min(max(updates // 20, least), most))

    values = {name: options[name] for name in FITTING if name in options and name not in given}
    passes = round(updates / updates_per_pass)
    counted = f", about {passes:,} passes over {_rounded(tokens):,} tokens"
    return Choice(values, _reasons(values, size, pairs, preset, why, counted))


def _at(rows: Sequence[tuple[int, Value]], pairs: int) -> Value:
    """The value of the last row that begins with so many pairs or fewer."""
    return [value for fewest, value in rows if fewest <= pairs][-1]


def _vocabulary(size: TextSize, pairs: int) -> tuple[int, str]:
    """The size of the vocabulary, by the points of `VOCABULARY`, and the reason."""
    numbers, sizes = np.log(VOCABULARY).T
    of_pairs = _rounded(float(np.exp(np.interp(math.log(pairs), numbers, sizes))))
    count = size.smallest_vocabulary
    of_characters = _rounded(count + LONGER_PIECES)
    if of_characters <= of_pairs:
        return of_pairs, _at(WHY_VOCABULARY, pairs)
    return of_characters, f"bytes and characters of this text need {count:,} of its ids"


def _rounded(number: float) -> int:
    """Two digits of a number: 12,345 becomes 12,000."""
    return int(float(f"{number:.1e}"))


def _reasons(
    values: Mapping[str, Any], size: TextSize, pairs: int, preset: str, why: str, passes: str
) -> list[str]:
    """A line for the vocabulary, one for the model, and one for the updates."""
    of_preset = ModelConfig.preset_options(preset)
    sizes = [f"model.{name}" for name in of_preset if name != "dropout_rate"]
    shown = dict(values)
    if set(sizes) <= set(values):
        shown = {"model": preset} | {
            name: value
            for name, value in values.items()
            if name not in sizes or value != of_preset[name.removeprefix("model.")]
        }
    updates = ("data.batch_tokens", "train.warmup_steps", "train.steps", "train.validate_every")
    rows = [
        (("data.vocabulary_size",), f", because {why}"),
        (("model", *sizes, "model.dropout_rate"), f", because {_at(WHY_MODEL, pairs)}"),
        (updates, passes),
    ]
    counted = f"{size.pairs:,} pairs" + " or more" * (size.pairs >= MOST_PAIRS)
    lines = []
    for names, reason in rows:
        if options := [f"--{name} {shown[name]}" for name in names if name in shown]:
            lines.append(f"chosen for {counted}: {' '.join(options)}{reason}")
    return lines
