"""The languages of texts, as py3langid detects them (Lui and Baldwin 2012); the extra `inspect`."""

import functools
import importlib.metadata
import importlib.util
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tf_transformer.errors import InputError

FEWEST_LETTERS = 15  # of a text that is surely in a language; shorter texts are not detected
_FEWEST_COUNTED = 20  # letters of a text that counts for the most probable language
_LEAST = 0.01  # a language with a smaller probability is not that of the text


def is_available() -> bool:
    """Whether py3langid is installed."""
    return importlib.util.find_spec("py3langid") is not None


def version() -> str:
    """The version of py3langid. Another one may detect other languages."""
    return importlib.metadata.version("py3langid")


def detected_languages(texts: Iterable[str]) -> Counter[str]:
    """The number of texts by language, as a code of ISO 639-1. Short texts do not count."""
    classify = _identifier().classify
    return Counter(str(classify(x)[0]) for x in texts if _letters(x) >= _FEWEST_COUNTED)


def detectable(languages: Iterable[str | None]) -> list[str]:
    """The codes of languages that can be detected; "" for others. All are "" without py3langid."""
    known = _identifier().labels if is_available() else ()
    codes = (re.split("[-_]", (language or "").lower())[0] for language in languages)
    return [code if code in known else "" for code in codes]


class OtherLanguages:
    """Whether a side of a pair is surely not in its language.

    A side whose language cannot be detected is never found. If this holds for both sides, an
    `InputError` is raised.
    """

    def __init__(self, source: str | None, target: str | None):
        self._languages = detectable([source, target])
        if not is_available():
            raise InputError(
                "languages are detected by py3langid, which is not installed: pip install "
                "'tf_transformer[inspect]'."
            )
        if not any(self._languages):
            raise InputError(
                f"expected languages that py3langid detects, got {source or 'an unknown one'} and "
                f"{target or 'an unknown one'}. Name the languages of the corpus by endings such "
                "as .en, or by columns."
            )

    def __call__(self, source: str, target: str) -> bool:
        return any(
            language and _letters(text) >= FEWEST_LETTERS and _probability(text, language) < _LEAST
            for text, language in zip((source, target), self._languages, strict=True)
        )


def _probability(text: str, language: str) -> float:
    return float(dict(_identifier().rank(text))[language])


@functools.cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))
