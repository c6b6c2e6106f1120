"""Placeholders in the texts of programs: parts that a translation keeps as they are."""

import re
from collections import Counter

# Codes with a percent sign, and no percentages such as 50%off, 20 %ige or %-Satz.
_PERCENT = r"""
      %% | %[{<]\w{1,40}[}>]                           # %%, %{name}, %<name>
    | %(?:\d{1,2}\$)?\#@\w{1,40}@                      # %#@files@
    | (?<!\d)%[A-Za-z_]\w{1,39}%(?![\w(@]|%(?!\w))     # %name%, but not the start of %dx%d
    # %name, of at least four letters, because %dkm is %d with a unit
    | (?<![\w%])(?<!\d[\s\xa0\u202f])%[A-Za-z][a-z][A-Za-z\d]{2}\w{0,36}
    # a conversion of printf or strftime, which these lines restrict by its start or its context
    | %(?:
          \d{1,2}\$ | \([\w.-]{1,40}\)                 # %1$s, %(name)s
        | (?<!\d%)(?=-?[+\#\d,'*.]{1,9}(?:hh|ll|[hlLqjzt])?[@diouxXeEfFgGaAbBcCsSpn])     # %5d, %,d
        | (?<!\d%)(?<!\d[\s\xa0\u202f]%)(?=[A-Za-z@])(?!L\d)      # %dMB, %Y%m
        | (?=-?l?[A-Za-z@](?![\w\xc0-\u024f]))         # %s, %-d
      )
      [-+\#0,']{0,4}(?:\d{1,3}|\*)?(?:\.(?:\d{1,2}|\*))?(?:hh|ll|[hlLqjztT])?[A-Za-z@]
    | (?P<number>%L?[1-9]\d?(?:%(?![\d%]))?)           # %1, %10, %L1, %1%
"""
_BRACES = r"""
      \{\{[^{}]*\}\} | \{%[^{}]*%\} | [$\#]\{[^{}]*\}   # {{name}}, {% if %}, ${name}, #{name}
    | \{\s*+[^\s{},]*+\s*+\}                           # {name}, {0}, {}
    | \{[\w.\[\]!]*(?:,[ ]?-?\d+)?:(?!\s)[^{}]*\}      # {:,}, {0:#,##0}, {0,10:N2}
    | \{\s*(?:\d+\s*,\s*-?\w+|[\w.]+\s*,\s*-?\d+)\s*\}  # {0, list}, {name,10}
    | \{\s*[^\s{},]+\s*,\s*(?:number|date|time|spellout|ordinal|duration)\s*(?:,[^{}]*)?\}
    | \{\s*[^\s{},]+\s*,\s*(?:plural|select|selectordinal|choice)\b      # {count, plural
"""
_OTHER = r"""
      \$t\([^()]*\) | \$(?!US(?![A-Za-z_]))[A-Za-z_]\w{0,40}     # $t(key), $name, but not $US 10
    | \[\[[^\[\]]*\]\] | \b__\w{1,40}?__\b             # [[name]], __name__
    | (?<![\w:/.,]):[a-z_]\w{1,40}(?![\w:])            # :name
    | (?<![\w@./])@[a-z]\w{1,40}                       # @count
    | <%[^%]*%> | </?\w[^<>]*>                         # <%= name %>, <b>, </b>, <br/>
    # &nbsp;, but not the marks that the tokenizer of Moses writes so
    | &(?!(?:amp|lt|gt|quot|apos|\#91|\#93|\#124);)\#?\w{1,31};
    | (?<![^\s(])&(?!\#?\w{1,31};)(?=[^\s&])           # the key of a menu: &File, (&F)
    | \\(?:[abfnrtv0]|[ux][0-9A-Fa-f]{2,8})            # \n
"""
_PLACEHOLDER = re.compile(
    f"{_PERCENT}|{_BRACES}|{_OTHER}",
    re.VERBOSE | re.ASCII,  # letters of other scripts follow a placeholder without a space
)
# Numbers count only beside the first one, because Turkish writes 50% as %50.
_FIRST_NUMBER = re.compile(r"%L?1(?![.,]?\d)")
# A message with a choice of forms, and the name of each form before its text.
_CHOICE = re.compile(r"\{\s*[^\s{},]+\s*,\s*(?:plural|select|selectordinal)\b")
_FORM = re.compile(r"[,}]\s*((?:offset:\d+\s+)?=?\w+)\s*\{")


def placeholders(text: str) -> Counter[str]:
    """Counts the placeholders of a text.

    These are codes of printf, strftime, messages and templates, tags, entities, escapes, and the
    marks of menu keys. In a message with a choice of forms, the names of the forms count, and their
    texts do not.

    Example:
        >>> sorted(placeholders("%1$s sent you <b>{count}</b> files, 100 % of AT&T."))
        ['%1$s', '</b>', '<b>', '{count}']
        >>> german = placeholders("{n, plural, one {# Datei} other {# Dateien}}")
        >>> german == placeholders("{n, plural, one {# file} other {# files}}")
        True
    """
    found = Counter[str]()
    if _CHOICE.search(text):
        found.update(f"{' '.join(form.split())} {{" for form in _FORM.findall(text))
        found["#"] = text.count("#")
        text = _FORM.sub(", ", text)
    is_numbered = _FIRST_NUMBER.search(text)
    found.update(
        " ".join(match[0].split())
        for match in _PLACEHOLDER.finditer(text)
        if is_numbered or not match["number"]
    )
    return found
