"""Placeholders in the texts of programs: parts that a translation keeps as they are."""

import re
from collections import Counter

_PLACEHOLDER = re.compile(
    r"""
      %(?:\d{1,2}\$|\(\w{1,40}\))?[-+\#0]?\d{0,3}(?:\.\d{1,2})?(?:hh|h|ll|l|z|j|t|q)?
      [@diouxXeEfFgGcsSpn](?!\w)                       # %s, %1$s, %(name)s, %-5.2f, %@
    | %[{<]\w{1,40}[}>] | %\w{1,40}% | %[1-9](?!%|[.,]?\w)    # %{name}, %name%, %1
    | \$t\([^()]*\) | \$[A-Za-z_]\w{0,40}              # $t(key), $name
    | \{\{[^{}]*\}\} | \{%[^{}]*%\} | [$\#]\{[^{}]*\}  # {{name}}, {% if %}, ${name}, #{name}
    | \{\s*[^\s{},]*\s*\}                              # {name}, {0}, {}
    | \{\s*[^\s{},]+\s*,\s*(?:number|date|time|spellout|ordinal|duration)\s*(?:,[^{}]*)?\}
    | \{\s*[^\s{},]+\s*,\s*(?:plural|select|selectordinal|choice)\b   # {count, plural
    | \[\[[^\[\]]*\]\] | \b__\w{1,40}?__\b             # [[name]], __name__
    | (?<![\w:/.]):[a-z_]\w{1,40}(?![\w:])             # :name
    | </?\w[^<>]*>                                     # <b>, </b>, <br/>
    | (?<![^\s(])&(?!\#?\w{1,31};)(?=[^\s&])            # the key of a menu: &File, (&F)
    | \\(?:[abfnrtv0]|[ux][0-9A-Fa-f]{2,8})            # \n
    """,
    re.VERBOSE | re.ASCII,  # letters of other scripts follow a placeholder without a space
)
# A message with a choice of forms, and the name of each form before its text.
_CHOICE = re.compile(r"\{\s*[^\s{},]+\s*,\s*(?:plural|select|selectordinal)\b")
_FORM = re.compile(r"[,}]\s*(=?\w+)\s*\{")


def placeholders(text: str) -> Counter[str]:
    """Counts the placeholders of a text.

    These are codes of printf, messages and templates, tags, escapes, and the marks of menu keys. In
    a message with a choice of forms, the names of the forms count, and their texts do not.

    Example:
        >>> sorted(placeholders("%1$s sent you <b>{count}</b> files."))
        ['%1$s', '</b>', '<b>', '{count}']
        >>> german = placeholders("{n, plural, one {# Datei} other {# Dateien}}")
        >>> german == placeholders("{n, plural, one {# file} other {# files}}")
        True
        >>> placeholders("100 % of AT&T, 5 < 6")
        Counter()
    """
    found = Counter[str]()
    if _CHOICE.search(text):
        found.update(f"{form} {{" for form in _FORM.findall(text))
        found["#"] = text.count("#")
        text = _FORM.sub(", ", text)
    found.update(" ".join(match[0].split()) for match in _PLACEHOLDER.finditer(text))
    return found
