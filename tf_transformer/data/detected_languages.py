"""The languages of texts, as py3langid detects them (Lui and Baldwin 2012); the extra `inspect`."""

import importlib.util
from collections import Counter
from collections.abc import Iterable

FEWEST_LETTERS = 20  # of a text whose language is detected; shorter ones give wrong languages


def is_available() -> bool:
    """Whether py3langid is installed."""
    return importlib.util.find_spec("py3langid") is not None


def detected_languages(texts: Iterable[str]) -> Counter[str]:
    """The number of texts by language, as a code of ISO 639-1. Short texts do not count."""
    import py3langid

    long = (text for text in texts if sum(map(str.isalpha, text)) >= FEWEST_LETTERS)
    return Counter(str(py3langid.classify(text)[0]) for text in long)
