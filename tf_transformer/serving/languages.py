"""The languages of a translator as clients name them."""

import re

from babel import Locale

NAMES = Locale("en").languages


def name_of(code: str) -> str:
    """The English name of a language; the code of an unknown one.

    Example:
        >>> name_of("de"), name_of("pt-BR"), name_of("tlh-Piqd")
        ('German', 'Brazilian Portuguese', 'tlh-Piqd')
    """
    return NAMES.get(code.replace("-", "_"), code)


def is_named(code: str, given: str) -> bool:
    """Whether a client's code names a language: the same code, or one with a region.

    Example:
        >>> is_named("en", "EN-GB"), is_named("en", "eng"), is_named("zh", "zh-Hant")
        (True, False, False)
    """
    code, given = (x.lower().replace("_", "-") for x in (code, given))
    return code in (given, re.sub(r"-[a-z]{2}$", "", given))
