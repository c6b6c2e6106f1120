"""SentencePiece models of a user: pieces, symbols and normalization stay, ids change."""

import io
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text as tf_text
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tf_transformer.data.readers.generated import generate
from tf_transformer.errors import InputError
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import GraphTokenizer, as_strings, clean
from tf_transformer.text.own_tokenizer import load_own
from tf_transformer.text.sentencepiece_file import (
    Kind,
    Piece,
    SpecialPieces,
    read_pieces,
    with_pieces,
)
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer

SYMBOLS = ["<2de>", "<ph>"]
MODELS = {
    "bpe": {"model_type": "bpe", "user_defined_symbols": SYMBOLS},
    "unigram": {"model_type": "unigram", "user_defined_symbols": SYMBOLS, "byte_fallback": True},
    "other ids": {
        **{"model_type": "bpe", "user_defined_symbols": [*SYMBOLS, "</s>", "<pad>"]},
        **{"unk_id": 5, "bos_id": -1, "eos_id": -1, "control_symbols": ["<mask>"]},
    },
    "all special": {"model_type": "unigram", "pad_id": 3, "eos_id": 0, "unk_id": 2},
    "characters": {"model_type": "char", "vocab_size": 40, "normalization_rule_name": "identity"},
}


LINES = [
    *(
        generate(60, "en", "de", seed=1)[side][n]
        for side in ("source", "target")
        for n in range(60)
    ),
    *[
        "10,000 and 1000",
        "  Kunststofffolie  aaa",
        "日本 の 猫",
        "a\u0301 \u00bd ﬁ",
        "x   y",
        "<ph> <2de>",
    ],
]


def model_of(**options: Any) -> bytes:
    """A SentencePiece model as a user trains it."""
    model, small = io.BytesIO(), {"vocab_size": 420, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=model, **(small | options)
    )
    return model.getvalue()


def loaded(model: bytes) -> Tokenizer:
    """The model as `data.tokenizer` reads it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "own.model")
        path.write_bytes(model)
        return load_own(str(path))


def is_refused(
    model_type: str,
    add_dummy_prefix: bool = True,
    treat_whitespace_as_suffix: bool = False,
    control_symbols: Sequence[str] = (),
    **others: Any,
) -> bool:
    """Whether a text can have a special piece, or a prefix cannot end inside a word."""
    if treat_whitespace_as_suffix or (model_type == "word" and not add_dummy_prefix):
        return True
    return model_type in ("bpe", "char") and "^" in control_symbols


OPTIONS = st.fixed_dictionaries(
    {
        "model_type": st.sampled_from(["unigram", "bpe", "char", "word"]),
        "normalization_rule_name": st.sampled_from(["identity", "nfkc", "nmt_nfkc", "nmt_nfkc_cf"]),
        "user_defined_symbols": st.lists(
            st.sampled_from(["<ph>", "a", "aa", "en", "▁the", "zwei und", "00", " x"]), unique=True
        ),
        "control_symbols": st.sampled_from([[], ["<mask>"], ["^", "<mask>"]]),
    }
    | {
        name: st.booleans()
        for name in (
            *("add_dummy_prefix", "remove_extra_whitespaces", "treat_whitespace_as_suffix"),
            *("byte_fallback", "split_by_whitespace", "allow_whitespace_only_pieces"),
        )
    }
)
PARTS = st.sampled_from(
    [
        *[
            "a",
            "aa",
            "e",
            "n",
            "00",
            "0",
            "1",
            ",",
            " ",
            "  ",
            "▁",
            "é",
            "½",
            "日",
            "^",
            "\t",
            "ab",
        ],
        *["the", "zwei und", "twenty-one", "<s>", "</s>", "<unk>", "<pad>", "<0x41>", "<ph>"],
    ]
)
ROWS = st.lists(st.lists(st.integers(0, 10_000), max_size=5), max_size=5)
KEEPS_SPACES = {"model_type": "unigram", "remove_extra_whitespaces": False}


@settings(max_examples=60)
@given(OPTIONS, st.lists(st.lists(PARTS, max_size=9).map("".join), max_size=20), ROWS)
@example(KEEPS_SPACES, ["   a", " ", "a  b "], [[4, 4, 5]])
@example(KEEPS_SPACES | {"byte_fallback": True}, ["  é"], [[0x24, 0xC3, 0xA9]])
@example({"model_type": "word", "add_dummy_prefix": False}, ["<s>"], [])
@example({"model_type": "char", "control_symbols": ["^"]}, ["^"], [])
def test_a_model_of_any_options_is_refused_or_equal_in_python_and_in_the_graph(
    options, texts, rows
):
    if is_refused(**options):
        with pytest.raises(InputError, match=r"data\.tokenizer"):
            loaded(model_of(**options))
        return
    tokenizer = loaded(model_of(**options))
    graph = GraphTokenizer(tokenizer)
    encoded = tokenizer.encode_batch(texts)
    assert graph.encode(clean(as_strings(texts))).to_list() == [row[:-1] for row in encoded]
    rows = [*encoded, *([i % tokenizer.vocabulary_size for i in row] for row in rows)]
    ids = tf.ragged.constant(rows, dtype=tf.int32, ragged_rank=1)
    strings = graph.decode(graph.text_ids(ids.to_tensor(), tf.cast(ids.row_lengths(), tf.int32)))
    assert [text.decode() for text in strings.numpy()] == list(map(tokenizer.decode, rows))


@pytest.mark.parametrize(
    ("kind", "piece", "message"),
    [
        ("bpe", "\u263a", "has the special piece '\u263a', which is a character of texts. Give"),
        ("char", "\u263a", "has the special piece '\u263a', which is a character of texts. Give"),
        ("word", "▁house", "has unused words. Train the SentencePiece model without them"),
    ],
)
def test_pieces_that_python_and_the_graph_read_in_two_ways_are_an_error(kind, piece, message):
    model = model_of(model_type=kind)
    pieces = [*read_pieces(model), Piece(piece, 0.0, Kind.UNUSED)]
    special = SpecialPieces("<unk>", "<s>", "</s>", "<pad>")
    with pytest.raises(InputError, match=r"data.tokenizer: .*own.model") as error:
        loaded(with_pieces(model, pieces, len(pieces), special))
    assert message in str(error.value)


def test_a_model_whose_spaces_are_no_pieces_is_an_error():
    """Field 5 of the normalizer, which is field 3 of a model, is escape_whitespaces."""
    with pytest.raises(InputError, match="escape_whitespaces=true"):
        loaded(model_of(model_type="bpe") + b"\x1a\x02\x28\x00")


@pytest.fixture(scope="module", params=MODELS)
def path(request, tmp_path_factory):
    """A model file of a kind that other programs make."""
    corpus, model = generate(200, "en", "de", seed=1), io.BytesIO()
    options = {"vocab_size": 400, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus["source"] + corpus["target"]),
        model_writer=model,
        **(options | MODELS[request.param]),
    )
    path = tmp_path_factory.mktemp("own") / "own.model"
    path.write_bytes(model.getvalue())
    return path


@given(st.text(st.sampled_from("aehinortvw zäß½ <2de>‹ph›—日")))
def test_texts_have_the_pieces_of_sentencepiece(path, text):
    original = tf_text.SentencepieceTokenizer(model=path.read_bytes())
    tokenizer = load_own(str(path))
    (*ids, end) = tokenizer.encode(text)
    assert end == EOS_ID
    expected = original.tokenize(text if text.strip() else "")
    pieces = [piece.decode() for piece in original.id_to_string(expected).numpy()]
    assert [i == UNK_ID for i in ids] == [piece == tokenizer.piece(UNK_ID) for piece in pieces]
    assert [tokenizer.piece(i) for i in ids] == pieces
    assert not {PAD_ID, BOS_ID} & set(ids)


def test_each_piece_keeps_an_id_of_its_own(path):
    tokenizer = load_own(str(path))
    original, own = read_pieces(path.read_bytes()), read_pieces(tokenizer.model)
    assert {piece.text for piece in original} <= {piece.text for piece in own}
    assert len({piece.text for piece in own}) == len(own) == tokenizer.vocabulary_size
    kinds = [piece.kind for piece in own[:4]]
    assert kinds == [Kind.CONTROL, Kind.CONTROL, Kind.CONTROL, Kind.UNKNOWN]
    assert not tokenizer.is_symbol(UNK_ID + 1)


def test_symbols_survive_in_python_and_in_the_graph(path, tmp_path):
    codec = Codec(load_own(str(path)))
    texts = ["<2de> twenty <ph> one", "twenty-one", ""]
    rows = codec.encode_batch("source", texts)
    assert codec.in_graph()["source"].encode(tf.constant(texts)).to_list() == [
        row[:-1] for row in rows
    ]
    if (symbol := codec["source"].piece_to_id_or_unknown("<2de>")) != UNK_ID:
        assert symbol in rows[0]
        assert codec.decode("target", rows[0]) == texts[0]
    codec.save(tmp_path)
    assert Codec.load(tmp_path).encode_batch("source", texts) == rows


def test_a_file_that_cannot_be_used_is_an_error(tmp_path):
    path = tmp_path / "own.model"
    with pytest.raises(InputError, match=r"data.tokenizer: .*own.model is missing or no Sentence"):
        load_own(str(path))
    path.write_bytes(b"\x0a\x05text")
    with pytest.raises(InputError, match="no SentencePiece model"):
        load_own(str(path))
    model = Tokenizer.train(["a house"], 300).model
    pieces = [
        piece._replace(kind=Kind.NORMAL) if piece.kind == Kind.UNKNOWN else piece
        for piece in read_pieces(model)
    ]
    special = SpecialPieces("<unk>", "<s>", "</s>", "<pad>")
    path.write_bytes(with_pieces(model, pieces, len(pieces), special))
    with pytest.raises(InputError, match=r"own\.model"):
        load_own(str(path))
