"""Placeholders of texts of programs: the same ones on both sides, and none in usual text."""

import string

import pytest
from hypothesis import given
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
    "%1": "1",
    "$t(common.ok)": "$t(common.gut)",
    "$name": "name",
    "${amount}": "${amab}",
    "#{x}": "{x}",
    "{{ user.name }}": "{{ user }}",
    "{% if a %}": "{% falls a %}",
    "{0}": "{1}",
    "{}": "",
    "{date, date, long}": "{date, Datum, lang}",
    "[[name]]": "[name]]",
    "__name__": "_name___",
    ":count": "count",
    "<b>": "b",
    "</a>": "<a>",
    '<a href="x">': '<a href="y">',
    "<br/>": "",
    "&File": "File",
    "\\n": "n",
    "\\u00e9": "é",
}


@given(
    st.sampled_from(sorted(LOST)),
    st.text(string.ascii_letters + "äß ,.;!?'-()0123456789", max_size=9),
    st.text(string.ascii_letters + "äß ,.;!?'-()0123456789", max_size=9),
)
def test_each_kind_is_found_in_any_text_and_its_change_too(placeholder, before, after):
    made = {text: f"{before} {text} {after}" for text in (placeholder, LOST[placeholder])}
    kept, lost = (placeholders(text) for text in made.values())
    assert placeholders(f"Das ist {placeholder} ja.") == kept != lost
    assert sum(kept.values()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5 % of AT&T, R&D and Q&A (100%) are 50%.",
        "2,5 % der Häuser, 20% sind alt, ein %-Satz",
        "He paid $5, €3 and 20 US$ at 10:30 :-) :D",
        "1 < 2 and 3 > 2, x_y, snake_case, [sic], {well, no}",
        "C:/home http://example.com/a?b=c&d=e#f a@b.de",
        "&quot;It&apos;s&quot; &#91; a &#93;",  # as the tokenizer of Moses writes marks
        "A: yes, B:no; 3:2",
    ],
)
def test_usual_text_has_none(text):
    assert not placeholders(text)


FILES = "{count, plural, one {# file} other {# files}}"
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
        ("%s of %s", "%s", False),
        ("%1$s of %2$s", "%2$s mit %1$s", True),
        ("<b>A</b>", "<b> A </b>", True),
        ("%s sent %d files.", "%sさんが%d個のファイルを送りました。", True),
        ("$name and {größe}", "{größe}и$nameи", True),
        ("&Über %1.", "関する(&U) %1", True),
        ("%1, %2", "%1. %3", False),
        ("Save &As", "Speichern &unter", True),
        ("{ name }", "{  name  }", True),
    ],
)
def test_both_sides_have_the_same_ones_in_any_order(text, translation, is_same):
    assert (placeholders(text) == placeholders(translation)) == is_same


@pytest.mark.parametrize("part", ["_", "__a", "[[", "{", "<a", "%", "%a", "$t(", "&a", ": ", " {"])
def test_long_lines_take_linear_time(part):
    """A quadratic rule would need minutes."""
    assert sum(placeholders(part * 100_000).values()) <= 100_000
