"""Placeholders of texts of programs: the same ones on both sides, and none in usual text."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.text.placeholders import placeholders

# Each with another text in which it is lost or changed.
LOST = {
    "%1$s": "%1$",
    "%s": "",
    "%-5.2f": "5.2",
    "%(name)s": "%(Name)s",
    "%ld": "ld",
    "%@": "@",
    "%{name}": "{name}",
    "%name%": "%Name%",
    "%ds": "% ds",
    "%dMB": "MB",
    "%s_old": "%a_alt",
    "%5dx": "%6dx",
    "%,d": "%d",
    "%1$,.2f": "%1$.2f",
    "%'d": "'d",
    "%*d": "*d",
    "%.*f": "%.f",
    "%Lf": "%f",
    "%b": "b",
    "%1$tB": "%1$tb",
    "%(a.b)s": "%(a.c)s",
    "%#@files@": "%#@Dateien@",
    "%name": "%nom",
    "%user_name": "%user",
    "%%": "%",
    "%Y": "%J",
    "%H": "H",
    "%-d": "-d",
    "%L1": "L1",
    "%1km": "1km",
    "%1%": "%1 %",
    "@count": "@anzahl",
    "%1": "1",
    "$t(common.ok)": "$t(common.gut)",
    "$name": "name",
    "${amount}": "${amab}",
    "#{x}": "{x}",
    "{{ user.name }}": "{{ user }}",
    "{% if a %}": "{% falls a %}",
    "{0}": "{1}",
    "{}": "",
    "{:,}": "{:.}",
    "{0:,.2f}": "{0:.,2f}",
    "{0:#,##0}": "{0:#.##0}",
    "{0,10}": "{0.10}",
    "{0,-10:N2}": "{0,-10}",
    "{name,8}": "{Name,8}",
    "{0:dd MMM}": "{0:tt MMM}",
    "{0, list}": "{0, Liste}",
    "{name!r:>10}": "{name}",
    "{date, date, long}": "{date, Datum, lang}",
    "[[name]]": "[name]]",
    "__name__": "_name___",
    ":count": "count",
    "<b>": "b",
    "</a>": "<a>",
    '<a href="x">': '<a href="y">',
    "<br/>": "",
    "<%= x %>": "<%= y %>",
    "&nbsp;": " ",
    "&#160;": "",
    "&File": "File",
    "\\n": "n",
    "\\u00e9": "é",
}


@pytest.mark.parametrize("placeholder", LOST)
@settings(max_examples=25)
@given(
    st.text(string.ascii_letters + "äß ,.;!?'-()0123456789", max_size=9),
    st.text(string.ascii_letters + "äß ,.;!?'-()0123456789", max_size=9),
)
def test_each_kind_is_found_in_any_text_and_its_change_too(placeholder, before, after):
    made = {text: f"{before}: {text} {after}" for text in (placeholder, LOST[placeholder])}
    kept, lost = (placeholders(text) for text in made.values())
    assert placeholders(f"Das ist {placeholder} ja.") == kept != lost
    assert sum(kept.values()) == 1


USUAL = [
    "",
    "5 % of AT&T, R&D and Q&A (100%) are 50%.",
    "2,5 % der Häuser, 20% sind alt, ein %-Satz",
    "He paid $5, €3 and 20 US$ at 10:30 :-) :D",
    "1 < 2 and 3 > 2, x_y, snake_case, [sic], {well, no}",
    "C:/home http://example.com/a?b=c&d=e#f a@b.de",
    "&quot;It&apos;s&quot; &#91; a &#93;",  # as the tokenizer of Moses writes marks
    "A: yes, B:no; 3:2",
    "50%off, 20%ige, 20 %de, 20\xa0%ige, 20%30%, 20%bis30%, 20 %für, %-Sätze",
    "yüzde %50, %5 ve %1,5 ya da %10'u",  # as Turkish writes percentages
    "$US 10, $US970, choses,:le poids, a@b.de",
]


@pytest.mark.parametrize("text", USUAL)
def test_usual_text_has_none(text):
    assert not placeholders(text)


FILES = "{count, plural, one {# file} other {# files}}"
OFFSET = "{n, plural, offset:1 one {# file} other {# files}}"
WHO = "{who, select, male {He sees {n}} other {They see {n}}}."


@pytest.mark.parametrize(
    ("text", "translation", "is_same"),
    [
        (FILES, "{count, plural, one {# Datei} other {# Dateien}}", True),
        (FILES, "{cab, plural, eine {# file}}", False),
        (FILES, "{count, plural, eine {# Datei} other {# Dateien}}", False),
        (FILES, "{count, plural, one {Datei} other {# Dateien}}", False),
        (WHO, "{who, select, male {Er sieht {n}} other {Sie sehen {n}}}.", True),
        (WHO, "{who, select, male {Er sieht {n}} other {Sie sehen}}.", False),
        (OFFSET, "{n, plural, offset:1 one {# Datei} other {# Dateien}}", True),
        (OFFSET, "{n, plural, offset:1 eine {# Datei} other {# Dateien}}", False),
        (OFFSET, "{n, plural, offset:2 one {# Datei} other {# Dateien}}", False),
        ("%s of %s", "%s", False),
        ("%1$s of %2$s", "%2$s mit %1$s", True),
        ("<b>A</b>", "<b> A </b>", True),
        ("%s sent %d files.", "%sさんが%d個のファイルを送りました。", True),
        ("$name and {größe}", "{größe}и$nameи", True),
        ("&Über %1.", "関する(&U) %1", True),
        ("%1, %2", "%1. %3", False),
        ("Save &As", "Speichern &unter", True),
        ("%dx%d px", "%d px", False),
        ("%dx%d, %ds, %dMB", "%d x %d, %d Sek., %d Mo", True),
        ("%Y-%m-%d %H:%M", "%d.%m.%Y, %H:%M", True),
        ("%Y%m%d", "%Y%m", False),
        ("%1%2", "%2%1", True),
        ("%1%2", "%1%3", False),
        ("%1 to %10", "%1 bis %10", True),
        ("%1 to %10", "%1 bis 10", False),
        ("%first%%last%", "%last% %first%", True),
        ("%ld%% of %s", "%ld %% von %s", True),
        ("%d%%", "%d%", False),
        ("Rated 50%", "%50", True),
        ("{ name }", "{  name  }", True),
    ],
)
def test_both_sides_have_the_same_ones_in_any_order(text, translation, is_same):
    assert (placeholders(text) == placeholders(translation)) == is_same


@pytest.mark.parametrize(
    "part",
    [
        "_",
        "__a",
        "[[",
        "{",
        "<a",
        "%",
        "%a",
        "%1",
        "%0",
        "<%",
        "@",
        "$t(",
        "&a",
        ": ",
        " {",
        " ",
        "{0,",
    ],
)
def test_long_lines_take_linear_time(part):
    """A quadratic rule would need minutes."""
    for start in ("", "{", "{0", "%"):
        assert sum(placeholders(start + part * 100_000).values()) <= 100_001
