"""Options that change translations, and that the format of an export does not have."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from tf_transformer.config.option import Effect, Format, options_in
from tf_transformer.config.task import TranslationOptions

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator


def left_behind(
    translator: "Translator", format: Format, replaced: Collection[str] = ()
) -> dict[str, Any]:
    """The options that change translations of a run, and that a format does not have.

    Args:
        translator: the exported translator.
        format: the format.
        replaced: further options without effect in this export.

    Returns:
        the values of the options by name.
    """
    own: dict[str, Any] = dict(translator.own_options)
    of_texts = options_in(TranslationOptions(**own))
    return {
        option.name: option.value
        for option in (*options_in(translator.config), *of_texts)
        if option.rules.off not in (None, Effect.CHOICE, Effect.SPEED)
        and format not in option.rules.formats
        and option.value != option.rules.off
        and option.name not in replaced
    }


def in_words(options: Mapping[str, Any]) -> str:
    """Options as text, such as "lower_capitals true, target_tag >>por<<"."""
    return ", ".join(f"{name} {_text(value)}" for name, value in options.items())


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
