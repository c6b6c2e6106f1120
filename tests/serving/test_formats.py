"""Dividing texts: nothing is lost, and parts are what a model should read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.serving.formats import HTML, XML_RULES, lines_of, markup


@given(st.text(st.sampled_from("ab \t\n\r\x0b\x85\u2028\u3000")))
def test_lines_and_what_stands_around_them_are_the_text(text):
    divided = lines_of(text)
    assert divided.join(divided.parts) == text
    assert all(part and part == part.strip() for part in divided.parts)
    assert not any("\n" in part or "\r" in part for part in divided.parts)
    assert not divided.join([""] * len(divided.parts)).strip()


PIECES = [
    *("word", " ", "\n", "é", "7", "<b>", "</b>", "<p>", "</p>", "<br>", "<pre>", "</pre>"),
    *('<img src="x">', '<i translate="no">', "</i>", "<!-- c -->", "<", ">", "&", "&amp;", "&lt;"),
    *("&nbsp;", "&eacute;", "lt;", "#39;", "&#39;", "\0"),
]


@pytest.mark.parametrize("form", [HTML, markup(XML_RULES)], ids=["html", "xml"])
@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_markup_with_equal_parts_is_equal(form, text):
    divided = form(text)
    assert divided.join(divided.parts) == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<p>One <b>two</b>.</p> <p>Three.</p>", ["One <a>two</a>.", "Three."]),
        ("<div>\n  <h1>One\n  two</h1>\n</div>", ["One two"]),
        ("One<br>two<hr/>three", ["One", "two", "three"]),
        ("One <script>if (a<b) f('<p>')</script> two", ["One", "two"]),
        ("One <i class='x notranslate'>a <i>b</i> c</i> two", ["One <a/> two"]),
        ('One <i translate="no"></i> two', ["One <a/> two"]),
        ("<pre>One", []),
        ("<td>7</td><td> 5 &lt; 6 </td>", []),
        ("R&amp;D and &quot;Caf&eacute;&quot;", ['R&D and "Café"']),
        ("&amp;lt;b&amp;gt; is <b>&nbsp;x", ["&lt;b&gt; is <a/>\xa0x"]),
    ],
)
def test_sentences_end_at_blocks_and_entities_are_characters(text, parts):
    assert HTML(text).parts == parts


def test_the_content_of_cdata_stays_in_xml():
    text = "One <![CDATA[a > b & c]]> two <script>three</script>"
    divided = markup(XML_RULES)(text)
    assert divided.parts == ["One <a/> two <b>three</b>"]
    assert divided.join([divided.parts[0].upper()]) == (
        "ONE <![CDATA[a > b & c]]> TWO <script>THREE</script>"
    )


@pytest.mark.parametrize(
    ("text", "translation", "expected"),
    [
        ("One & <b>two</b>", "<a>zwei</a> & < eins", "<b>zwei</b> &amp; &lt; eins"),
        ("One <i>a</i> &lt;b&gt;", "<b> <a>a</a> eins", "&lt;b&gt; <i>a</i> eins"),
        ("One <code>&lt;</code> two", "eins <a/> zwei", "eins <code>&lt;</code> zwei"),
    ],
)
def test_translations_become_markup(text, translation, expected):
    assert HTML(text).join([translation]) == expected
