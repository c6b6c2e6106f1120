"""The notice of several sentences in a line: a rule, not a splitter."""

import pytest

from tf_transformer.text.sentences import has_several_sentences


@pytest.mark.parametrize(
    "text",
    [
        "Tom left. Mary stayed.",
        "Really? Yes!",
        "“I know.” She smiled.",
        "Wait... What is it?",
        "Es ist 5 Uhr. Österreich gewinnt.",
        "他走了。她来了。",
        "彼は「はい。」と言った。",
        "Привет! Как дела?",
        "¿Qué? ¡Nada!",
        "I saw him.  (He was late.)",
        "مرحبا. كيف حالك",
    ],
)
def test_several(text):
    assert has_several_sentences(text)


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
        "Stop!!!",
        "...",
        "\t",
    ],
)
def test_one(text):
    assert not has_several_sentences(text)


def test_long_lines_take_linear_time():
    assert not has_several_sentences("a" * 200_000 + ". b" + "." * 200_000)
