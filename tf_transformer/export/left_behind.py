"""Options that change translations, and that the format of an export does not have."""

from collections.abc import Collection
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator

# Values with which an option changes no translation. A longest output always changes some.
NEUTRAL: dict[str, Any] = {
    **{"length_penalty_offset": 0.0, "coverage_penalty": 0.0, "early_stopping": None},
    **{"max_length": 0, "max_length_ratio": None, "max_extra_length": 0},
    **{"min_length": 0, "min_length_ratio": 0.0, "no_repeat_ngram_size": 0},
    **{"repetition_penalty": 1.0, "excluded_tokens": (), "avoid_unknown": False},
    **{"target_tag": "", "punctuation": "kept", "sampling": False},
    **{"copy_without_letters": False, "lower_capitals": False},
}
# Options that each format has.
HELD = ("beam_size", "length_penalty", "max_source_length")
# Options of the number of results, of speed and of reports, and options that only sampling reads.
WITHOUT_EFFECT = (
    *("num_hypotheses", "distinct", "batch_size", "batch_tokens", "parallel_batches", "average"),
    *("trained_source_length", "temperature", "top_k", "top_p", "seed"),
)


def left_behind(translator: "Translator", held: Collection[str]) -> list[str]:
    """The options that change translations of a run, and that a format does not have.

    Args:
        translator: the exported translator.
        held: the options in `NEUTRAL` that the format has.

    Returns:
        texts such as "lower_capitals true".
    """
    options = asdict(translator.config) | dict(translator.own_options)
    return [
        f"{name} {_text(options[name])}"
        for name, neutral in NEUTRAL.items()
        if name not in held and options[name] != neutral
    ]


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
