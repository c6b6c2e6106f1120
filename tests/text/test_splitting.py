"""Texts are divided into sentences, and the graph finds the same sentences."""

import itertools
import re

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.text.abbreviations import BY_LANGUAGE
from tf_transformer.text.graph_splitter import has_several_sentences, split_sentences
from tf_transformer.text.splitting import SentenceSplitter

# Sentences after each of which a new one begins, whatever follows; by language.
SENTENCES = {
    "en": [
        "Tom left.",
        "Mr. Smith met Dr. J. R. Jones (Jr.) in the U.S. Senate!",
        "It costs 3.50 euros, see fig. 5 or No. 7.",
        "“Really?” he asked.",
        "She said: “I know.”",
        "He came at 5 p.m. and left",  # only a line end can follow
    ],
    "de": [
        "Am 5. Mai kam Hr. Müller, z. B. mit Prof. Dr. Maier.",
        "„Wirklich?“, fragte er.",
        "Österreich gewinnt…",
        "Wer war das?!",
    ],
    "fr": ["M. Le Pen est là.", "« Vraiment ? » demanda-t-il.", "Mme Curie, p. 5 !"],
    "cs": ["Dne 1. Května přišel prof. Novák, např. včera.", "Žádný problém."],
    "el": ["Πού μένει ο κ. Α. Παππάς;", "Ήρθε, π.χ. χθες."],
    "": ["他走了。", "「はい。」", "यह सच है।", "Привет!", "مرحبا؟"],
}
SPACES = ["\n", " \n\n\t", "\r\n", "\u2028", " \v"]
TAGS = ["<br>", "<BR />", "</p>", "<p>", '<h1 id="a b">', "</li>"]  # as a line end
WORDS = st.sampled_from(
    ["Mr.", "Dr", "a", "B", "The", "the", "5.", "12", "...", "U.S.", "J.-P.", "z.B.", "etc."]
) | st.sampled_from("“”».!?。」()-–éÉǅ字\ufeff")
CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=["Cs"])


@given(
    st.lists(
        st.lists(
            WORDS | st.sampled_from([" ", "\u00a0", "\n", "  ", "<b>", "<pa>", *TAGS]), max_size=9
        ).map("".join)
        | st.text(CHARACTERS),
        max_size=4,
    ),
    st.sampled_from([*BY_LANGUAGE, ""]),
)
def test_the_graph_finds_the_same_sentences_and_nothing_is_dropped(texts, language):
    splitter = SentenceSplitter(language)
    pieces = list(map(splitter.split, texts))
    assert list(map("".join, pieces)) == texts
    in_graph = split_sentences(tf.constant(texts, tf.string), language).to_list()
    assert [[piece.decode() for piece in row] for row in in_graph] == pieces


@given(st.data(), st.sampled_from(sorted(SENTENCES)))
def test_any_sentences_that_are_joined_by_line_ends_are_found(data, language):
    sentences = data.draw(st.lists(st.sampled_from(SENTENCES[language]), min_size=1, max_size=5))
    tags = st.lists(st.sampled_from([*TAGS, *SPACES, " "]), max_size=3).map("".join)
    ends = st.builds("".join, st.tuples(tags, st.sampled_from([*SPACES, *TAGS]), tags))
    spaces = [data.draw(ends) for _ in sentences[1:]]
    joined = [piece for pair in zip(sentences, [*spaces, ""], strict=True) for piece in pair][:-1]
    assert SentenceSplitter(language).split("".join(joined)) == joined
    assert SentenceSplitter(language, KEPT).split("".join(joined)) == joined


@given(st.data(), st.sampled_from(sorted(set(SENTENCES) - {""})))
def test_any_sentences_that_are_joined_by_spaces_are_found(data, language):
    whole = [text for text in SENTENCES[language] if not text.endswith("left")]
    sentences = data.draw(st.lists(st.sampled_from(whole), min_size=1, max_size=5))
    space = data.draw(st.sampled_from([" ", "  ", "\u00a0"]))
    assert SentenceSplitter(language).split(space.join(sentences))[::2] == sentences


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("en", "He lives in the U.S. He likes it.", 2),
        ("en", "The U.S. President spoke.", 1),
        ("en", "So do I. The end.", 2),
        ("en", "He met J. A. Smith.", 1),
        ("", "Am 5. Mai kam er.", 1),
        ("", "He is 45. She is 40.", 2),
        ("en", "No. He left.", 2),
        ("en", "Visit example.com. now", 1),
        ("de", "Es war der 5. Das war gut.", 2),
        ("de", "Er kam am 5. Juni.", 1),
        ("deu", "Er kam am 5. Juni.", 1),
        ("en-GB", "Er kam am 5. Juni.", 2),
        ("fr", "M. Dupont est là. Il part.", 2),
        ("", "他走了。她来了。", 2),
        ("", "他走了。 她来了。\n", 2),
        ("", "彼は「はい。」と言った。「いいえ。」", 2),
        ("", "", 0),
        ("", " \n", 0),
        ("en", " Tom left. ", 1),
        ("de", "„Wo ist er?“ – „Ich weiß es nicht.“ Er ging.", 2),
        ("", "Where is he? – I do not know.", 2),
        ("el", "Πού είναι ο κ. Νίκος; Δεν ξέρω.", 2),
        ("", "Πού είναι\u037e Δεν ξέρω.", 2),
        ("", "Ask Tom; He knows.", 1),
        ("en", "“Where is he?”\n– “Here.”", 2),
    ],
)
def test_sentences(language, text, sentences):
    assert len([x for x in SentenceSplitter(language).split(text)[::2] if x]) == sentences


KEPT = r"\{[^{}]*\}|<[^<>]*>|https?://[^\s]+"  # placeholders, tags and addresses
SPANS = st.sampled_from(
    [*TAGS, "{one.<br>Two! 三。 }", "{a}", '<a title="Go.\nNow">', "http://a.b/?C.", "{"]
)


@given(st.lists(st.lists(WORDS | SPANS | st.sampled_from([" ", "\n"])).map("".join), max_size=3))
def test_no_sentence_ends_inside_a_kept_span(texts):
    splitter = SentenceSplitter("en", KEPT)
    pieces = list(map(splitter.split, texts))
    assert list(map("".join, pieces)) == texts
    for text, row in zip(texts, pieces, strict=True):
        ends = set(itertools.accumulate(map(len, row)))
        spans = [match.span() for match in re.finditer(KEPT, text)]
        assert not any(start < end < stop for end in ends for start, stop in spans)
    in_graph = split_sentences(tf.constant(texts, tf.string), "en", KEPT).to_list()
    assert [[piece.decode() for piece in row] for row in in_graph] == pieces


def test_text_around_kept_spans_is_divided():
    text = "Go to http://a.b/?x=1. <b>Then</b> stop. {Who? Me} 走。{a} 来。<i>Hm.</i> Yes."
    ends = SentenceSplitter("en", r"\{[^{}]*\}").split(text)[::2]
    assert ends == [
        "Go to http://a.b/?x=1.",
        "<b>Then</b> stop.",
        "{Who? Me} 走。",
        "{a} 来。",
        "<i>Hm.</i>",
        "Yes.",
    ]


def test_tags_of_blocks_divide_any_text():
    text = "<ul>\n<li>Red <b>wine</b></li><li>water</li></ul>Go.<br/><br/>now"
    assert SentenceSplitter("en").split(text) == [
        *("", "<ul>\n<li>", "Red <b>wine</b>", "</li><li>", "water", "</li></ul>"),
        *("Go.", "<br/><br/>", "now"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Tom left. Mary stayed.",
        "Really? Yes!",
        "“I know.” She smiled.",
        "Wait... What is it?",
        "Es ist 5 Uhr. Österreich gewinnt.",
        "他走了。她来了。",
        "Привет! Как дела?",
        "¿Qué? ¡Nada!",
        "I saw him.  (He was late.)",
        "مرحبا. كيف حالك",
    ],
)
def test_several_sentences_in_any_language(text):
    assert has_several_sentences(["", text, "One."]).numpy().tolist() == [False, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Tom left.",
        "Where is the train station?",
        "Mr. Smith and Mrs. Brown met Dr. Jones.",
        "J. R. R. Tolkien wrote it.",
        "The U.S. President and the z.B. Example",
        "It costs 3.50 euros. ",
        "Visit www.example.com today.",
        "He said no. and left",
        "他走了。",
        "彼は「はい。」と言った。",
        "Stop!!!",
        "...",
        "\t",
    ],
)
def test_one_sentence_in_any_language(text):
    assert not has_several_sentences(["One. Two.", text])[1]


@pytest.mark.parametrize(
    "text", ["a." * 100_000, "。" * 100_000 + "x", " " * 100_000 + ".)" * 100_000]
)
def test_long_texts_take_linear_time(text):
    assert "".join(SentenceSplitter("en").split(text + " B")) == text + " B"
