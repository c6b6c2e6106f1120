"""Target tags at the start of a text, in Python and in graphs."""

import re
import sys
import unicodedata

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.text.graph_tokenizer import GraphTokenizer, as_strings, clean
from tf_transformer.text.normalization import BLANK, WHITE_SPACE
from tf_transformer.text.special_ids import EOS_ID
from tf_transformer.text.target_tag import split_tag, wrong_tag
from tf_transformer.text.tokenizer import Tokenizer

TAGS = (">>deu<<", ">>zho_Hans<<")
CHARACTERS = list(map(chr, range(sys.maxunicode + 1)))
WHITE = list(filter(str.isspace, CHARACTERS))
BLANKS = [c for c in CHARACTERS if unicodedata.category(c) in BLANK]
REST = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(scope="module", params=["nmt_nfkc", "nmt_nfc"])
def tokenizers(request):
    lines = ["a small house", "the old house", "two dogs run", "> a < b"] * 9
    tokenizer = Tokenizer.train(lines, 300, request.param, symbols=TAGS)
    return tokenizer, GraphTokenizer(tokenizer)


def in_graph(tokenizer, texts):
    rows = tokenizer.encode(clean(as_strings(texts))).to_list()
    return [[*row, EOS_ID] for row in rows]


@given(tag=st.sampled_from(TAGS), before=st.text(BLANKS), between=st.text(WHITE), rest=REST)
def test_blanks_around_a_tag_change_nothing(tokenizers, tag, before, between, rest):
    """The oracle: the id of the tag, and the ids of the rest alone."""
    tokenizer, of_graph = tokenizers
    texts = [before + tag + between + rest, tag + rest, f"{tag}\n{rest}"]
    expected = [tokenizer.tags[tag], *tokenizer.encode(rest.lstrip())]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(x) for x in texts] == [expected] * 3
    assert in_graph(of_graph, texts) == [expected] * 3
    assert all(wrong_tag(text, TAGS) is None for text in texts)


@given(
    st.lists(
        st.sampled_from([*TAGS, *"<>a1 \n\0", "\ufeff", "\u00a0", "\u0600", "deu"]), max_size=9
    )
)
def test_python_and_the_graph_divide_each_text_alike(tokenizers, parts):
    tokenizer, of_graph = tokenizers
    text = "".join(parts)
    assert in_graph(of_graph, [text]) == [tokenizer.encode(text)]
    cleaned = clean(tf.constant([text]))
    divided = [part.numpy()[0].decode() for part in of_graph.split_tag(cleaned)]
    assert divided == list(split_tag(cleaned.numpy()[0].decode(), TAGS))


def test_white_space_is_that_of_python():
    assert re.findall(WHITE_SPACE, "".join(CHARACTERS)) == WHITE


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (">>eng<< a", ">>eng<<"),
        ("\ufeff\n>>DEU<< a", ">>DEU<<"),
        (" >> deu << a", ">> deu <<"),
        (">>deu a house by the sea of trees", ">>deu a house by the"),
        (">>deu< a", ">>deu< a"),
        (">>deu<< a", None),
        (">>> a", None),
        (">> a <b>", None),
        ("a >>eng<<", None),
    ],
)
def test_an_unknown_tag_and_a_part_of_a_tag_are_wrong(text, wrong):
    assert wrong_tag(text, TAGS) == wrong


def test_the_tag_belongs_to_its_word(tokenizers):
    tokenizer, _ = tokenizers
    for text in (">>deu<< two dogs", "\u200b >>deu<<\n two dogs"):
        words, ids = tokenizer.word_of_pieces(text), tokenizer.encode(text)
        assert len(words) == len(ids) - 1
        assert text.split()[words[ids.index(tokenizer.tags[">>deu<<"])]] == ">>deu<<"
        assert text.split()[words[-1]] == "dogs"
