"""The spans that a translation keeps: equal in Python and in graphs."""

import random

import pytest
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.inference.kept_graph import divide as divide_in_graph
from tf_transformer.text.kept_spans import COMMON, KINDS, divide, pattern_of, spans

SPANS = {
    "addresses": [
        "https://example.org/a?b=c&d=%20e#f",
        "http://example.org:8080/~x/",
        "ftp://example.org/wiki/Word_(computing)",
        "www.example.org",
        "first.last+tag@mail.example.org",
    ],
    "tags": [
        *("<b>", "</b>", "<br/>", '<x id="1"/>', "<a href='u' data-x=1 hidden>", "<!-- no -->"),
        *("<%= name %>", "&nbsp;", "&#8230;", "&#x2026;"),
    ],
    "placeholders": [
        *("{name}", "{}", "{0}", "{:.2f}", "{{name}}", "{% if x %}", "${name}", "#{a}"),
        *("%s", "%1$s", "%(count)d", "%.2f", "%{name}", "%5d", "%lld", "%@", "%1", "$t(key.name)"),
        *("{0, plural, one {# file} other {{n} files}}", "{day, date, long}"),
    ],
    "units": ["5 km", "5km", "1,000.5 kg", "-3 °C", "20\u00a0MB", "12 m²", "100 km/h", "50 Hz"],
    "emoji": ["🙂", "👍🏽", "👩\u200d👩\u200d👧", "🇩🇪", "❤\ufe0f", "1\ufe0f\u20e3", "✓"],
}
WORDS = [
    "a",
    "Ü",
    "house",
    "5",
    "1980s",
    "20 %",
    "50%ige",
    "5 Äpfel",
    "5 käse",
    "AT&T",
    "R&D",
    "日本",
    "मैं",
]
WORDS += [".", ",", "(", ")", "“", "”", "!", "–", "{", "}", "<", ">", "%", "&", "@", "$", "/", "\t"]
WORDS += ["\u00a0", "\u3000", "\u200b", "a<b", "x > y", "5 m", "e\u0301", "\U0010ffff"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_span_is_found_whole_between_words_and_before_marks(kind):
    for span in SPANS[kind]:
        for text in (span, f"See {span} now", f"See {span}, then", f"({span})", f"“{span}”"):
            assert spans(text) == [span], text
            assert spans(text, (kind,)) == [span], text


@pytest.mark.parametrize(
    "text",
    [
        *("It costs 20 %.", "50%ige Lösung", "the 1980s", "5 mä", "5 kmh", "a < b and c > d"),
        *("AT&T", "me@home", "R&D;", "100 %s", "x:y", "15 %discount", "https://", "{not a name}"),
    ],
)
def test_usual_text_has_no_spans(text):
    assert spans(text) == []


def test_python_and_the_graph_divide_random_joins_alike():
    rng = random.Random(0)
    known = [*WORDS, *[" "] * 20, *[span for kind in SPANS.values() for span in kind]]
    texts = ["".join(rng.choices(known, k=rng.randrange(12))) for _ in range(4_000)]
    characters = "".join(known)
    texts += ["".join(rng.choices(characters, k=rng.randrange(30))) for _ in range(4_000)]
    for keep in ((COMMON,), ("units", r"\b[A-Z]{2}-\d+\b|house"), ("emoji",)):
        pattern = pattern_of(keep)
        in_graph = divide_in_graph(tf.constant(texts), pattern)
        for text, row in zip(texts, in_graph.to_list(), strict=True):
            parts = divide(text, pattern)
            assert [part.decode() for part in row] == parts
            assert "".join(parts) == text


def test_each_span_that_stands_in_a_text_is_found_alone():
    rng = random.Random(1)
    characters = "".join([*WORDS, *[span for kind in SPANS.values() for span in kind]])
    for _ in range(4_000):
        for span in spans("".join(rng.choices(characters, k=40))):
            assert spans(f"a {span} b") == [span]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("(a)", "captures"), ("a*", "empty text"), ("a(", "is wrong")],
)
def test_a_pattern_that_cannot_find_spans_is_an_error(pattern, message):
    with pytest.raises(InputError, match=message):
        pattern_of((pattern,))


def test_long_texts_take_linear_time():
    for part in ("{", "<a ", "a.", "5 ", "%(", "{a, plural, {", "http://(", "👩‍", "&#"):
        assert "".join(divide(part * 20_000, pattern_of((COMMON,)))) == part * 20_000
