"""Dividing texts: nothing is lost, and parts are what a model should read."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.serving.formats import lines_of
from tf_transformer.serving.markup import HTML
from tf_transformer.text.kept_spans import spans


@given(st.text(st.sampled_from("ab \t\n\r\x0b\x85\u2028\u3000")))
def test_lines_and_what_stands_around_them_are_the_text(text):
    divided = lines_of(text)
    assert divided.join(divided.parts) == text
    assert all(part and part == part.strip() for part in divided.parts)
    assert not any("\n" in part or "\r" in part for part in divided.parts)
    assert not "".join(divided.around).strip()


PIECES = [
    *("word", " ", "\n", "é", "7", "<b>", "</b>", "<p>", "</p>", "<br>", "<pre>", "</pre>"),
    *('<img src="x">', '<i translate="no">', "</i>", "<!-- c -->", "<", ">", "&", "&amp;", "&lt;"),
    *("&nbsp;", "&eacute;", "lt;", "#39;", "&#39;", "\0"),
]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_markup_with_equal_parts_shows_the_same(text):
    """Tags are the same. Between them, a reader of HTML sees the same words."""
    divided = HTML.divide(text)
    joined = divided.join([HTML.finish(part, part) for part in divided.parts])

    def tags_and_words(markup):
        tags = [span for span in spans(markup, ("tags",)) if span.startswith("<")]
        words = html.unescape(re.sub("<[/!a-z][^<>;]*>", " | ", markup))
        return tags, words.split()

    assert tags_and_words(joined) == tags_and_words(text.replace("\0", ""))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<p>One <b>two</b>.</p> <p>Three.</p>", ["One <b>two</b>.", "Three."]),
        ("<div>\n  <h1>One\n  two</h1>\n</div>", ["One two"]),
        ("One<br>two<hr/>three", ["One", "two", "three"]),
        ("One <script>if (a<b) f('<p>')</script> two", ["One", "two"]),
        ("One <i class='x notranslate'>a <i>b</i> c</i> two", ["One", "two"]),
        ('One <i translate="no"></i> two', ['One <i translate="no"></i> two']),
        ("<pre>One", []),
        ("<td>7</td><td> 5 &lt; 6 </td>", []),
        ("R&amp;D and &quot;Caf&eacute;&quot;", ['R&D and "Café"']),
        ("&amp;lt;b&amp;gt; is <b>&nbsp;x", ["&amp;lt;b&amp;gt; is <b>&nbsp;x"]),
    ],
)
def test_sentences_end_at_blocks_and_entities_are_characters(text, parts):
    assert HTML.divide(text).parts == parts


@pytest.mark.parametrize(
    ("part", "translation", "expected"),
    [
        ("One & <b>two</b>", "<b>zwei</b> & < eins", "<b>zwei</b> &amp; &lt; eins"),
        ("One &lt; two", "eins\n&lt; zwei", "eins &lt; zwei"),
    ],
)
def test_translations_become_markup(part, translation, expected):
    assert HTML.finish(part, translation) == expected
