"""The languages of a translator as clients name them."""

import re

from babel import Locale
from babel.core import get_global

NAMES = Locale("en").languages
_SHORT = get_global("language_aliases")  # such as de, by deu


def name_of(code: str) -> str:
    """The English name of a language; the code of an unknown one.

    Example:
        >>> name_of("de"), name_of("pt-BR"), name_of("tlh-Piqd")
        ('German', 'Brazilian Portuguese', 'tlh-Piqd')
    """
    return NAMES.get(code.replace("-", "_"), code)


def is_named(code: str, given: object) -> bool:
    """Whether a client's code names a language: the same code, or one with a region.

    Example:
        >>> is_named("en", "EN-GB"), is_named("deu", "de"), is_named("zh", "zh-Hant")
        (True, True, False)
    """
    if not isinstance(given, str):
        return False
    code, given = (short(x.lower().replace("_", "-")) for x in (code, given))
    return code in (given, re.sub(r"-[a-z]{2}$", "", given))


def short(code: str) -> str:
    """The code of two letters, as clients use it, in place of one of three.

    Example:
        >>> short("deu"), short("de"), short("pt-BR")
        ('de', 'de', 'pt-BR')
    """
    return _SHORT.get(code, code) if len(code) == 3 else code
