"""The plural forms of a language, as gettext writes them in the header of a file."""

import gettext
import re
from typing import NamedTuple

from babel.messages.plurals import DEFAULT_PLURAL, PLURALS  # of the extra `documents`

from tf_transformer.errors import InputError

_RULE = re.compile(r"nplurals\s*=\s*([1-9])\s*;\s*plural\s*=\s*([^;]+?)\s*;?\s*")


class PluralForms(NamedTuple):
    """The plural forms of a language.

    The form of 1 translates the singular. Each other form translates the plural.
    """

    header: str  # gettext's rule
    size: int  # the number of forms
    form_of_one: int | None  # None: 2 has the form of 1, too

    @classmethod
    def of(cls, header: str, language: str) -> "PluralForms":
        """Reads a header "Plural-Forms".

        A file without it gets the forms of its language, from the table of Unicode's CLDR. A rule
        that cannot be computed is an `InputError`.

        Example:
            >>> PluralForms.of("nplurals=2; plural=(n != 1);", "de")[1:]
            (2, 0)
        """
        if not _RULE.fullmatch(header):
            known = PLURALS.get(language) or PLURALS.get(language.split("_")[0], DEFAULT_PLURAL)
            header = "nplurals={}; plural={};".format(*known)
        count, rule = _RULE.fullmatch(header).groups()  # type: ignore[union-attr]
        try:
            form_of = gettext.c2py(rule)  # type: ignore[attr-defined]
            one, two = form_of(1), form_of(2)
        except (ValueError, ZeroDivisionError) as error:
            raise InputError(f"its plural forms are wrong: {error}. Correct {header!r}.") from error
        return cls(header, int(count), None if one == two else one)
