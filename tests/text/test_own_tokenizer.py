"""SentencePiece models of a user: pieces, symbols and normalization stay, ids change."""

import io

import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.data.generated import generate
from tf_transformer.errors import InputError
from tf_transformer.text.codec import Codec
from tf_transformer.text.own_tokenizer import load_own
from tf_transformer.text.sentencepiece_file import Kind, SpecialPieces, read_pieces, with_pieces
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
    original = sentencepiece.SentencePieceProcessor(model_file=str(path))
    tokenizer = load_own(str(path))
    (*ids, end) = tokenizer.encode(text)
    assert end == EOS_ID
    expected = original.encode(text if text.strip() else "")
    unknown = original.unk_id()
    assert [i == UNK_ID for i in ids] == [i == unknown for i in expected]
    assert [tokenizer.piece(i) for i in ids] == [original.id_to_piece(i) for i in expected]
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
