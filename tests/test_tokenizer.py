"""The tokenizer: the package against tensorflow-text's op, and how text changes."""

import random
import re

import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from tf_transformer.data.generated import generate
from tf_transformer.errors import InputError
from tf_transformer.special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from tf_transformer.tokenizer import BYTES, Tokenizer

BLANK_PIECE = "\u2581"  # SentencePiece's own sign for a blank

DIFFICULT = {
    "empty": "",
    "blanks": "   ",
    "runs of blanks": "  a   house ",
    "control characters": "".join(map(chr, range(1, 32))) + "\x7f",
    "NUL": "one\x00two",
    "tab": "one\ttwo",
    "carriage return": "one\r",
    "emoji with modifiers": "👩🏽‍🚀 👨‍👩‍👧‍👦 🇩🇪 ❤️",
    "Hebrew and Arabic": "שָׁלוֹם עולם مرحبا بالعالم",
    "Japanese": "吾輩は猫である。名前はまだ無い。",
    "combining accents": "e\u0301 n\u0303 Z\u0351\u036b\u0343",
    "next line": "one\u0085two",
    "line separator": "one\u2028two",
    "byte order mark": "\ufefftwenty",
    "no-break and wide blanks": "1\u00a0000\u3000km",
    "zero-width space": "one\u200btwo",
    "private use and last code point": "\ue000\U0010ffff",
    "names of special tokens": "<s> </s> <pad> <unk> <0x41>",
    "compatibility characters": "½ ﬁ ① Ⅷ",
    "10,000 characters": "twenty-one 🙂 " * 769 + "end",
    "10,000 unknown characters": "猫" * 10_000,
}


@pytest.fixture(scope="module")
def lines():
    corpus = generate(200, "en", "de", seed=1)
    return corpus["source"] + corpus["target"]


@pytest.fixture(scope="module")
def tokenizer(lines):
    return Tokenizer.train(lines, vocabulary_size=400)


@pytest.fixture(scope="module")
def rewriting(lines):
    return Tokenizer.train(lines, vocabulary_size=400, normalization="nmt_nfkc")


@pytest.fixture(scope="module")
def unigram(lines):
    return Tokenizer.train(lines, vocabulary_size=400, segmentation="unigram")


def test_unigrams_divide_words_in_another_way(tokenizer, unigram, lines):
    assert unigram.encode_batch(lines) != tokenizer.encode_batch(lines)


def folded(text: str) -> str:
    """One blank for each run, none at the ends; then the same with U+2581 for a blank."""
    inner = re.sub(" +", " ", text).strip(" ")
    return inner.replace(BLANK_PIECE, " ").strip(" ")


def random_texts(count: int, seed: int) -> list[str]:
    """Strings of random code points from all planes, half of them from the first 256."""
    rng = random.Random(seed)

    def character() -> str:
        code = rng.randrange(256) if rng.random() < 0.5 else rng.randrange(0x110000)
        return " " if 0xD800 <= code < 0xE000 else chr(code)  # surrogates are not text

    return ["".join(character() for _ in range(rng.randrange(40))) for _ in range(count)]


def through_op(tokenizer: Tokenizer, texts: list[str]) -> tuple[list[list[int]], list[str]]:
    """Ids and strings by tensorflow-text."""
    op = tf_text.SentencepieceTokenizer(model=tokenizer.model)
    ids = op.tokenize(tf.constant([text.encode() for text in texts]))
    strings = op.detokenize(tf.cast(ids, tf.int32)).numpy()
    return ids.to_list(), [string.decode() for string in strings]


@pytest.mark.parametrize("which", ["tokenizer", "rewriting", "unigram"])
@pytest.mark.parametrize("texts", [list(DIFFICULT.values()), random_texts(300, seed=1)])
def test_op_gives_the_ids_and_strings_of_the_wheel(which, texts, request):
    tokenizer = request.getfixturevalue(which)
    ids, strings = through_op(tokenizer, texts)
    encoded = [tokenizer.encode(text) for text in texts]
    assert [[*row, EOS_ID] for row in ids] == encoded
    assert strings == [tokenizer.decode(row) for row in encoded]


@pytest.mark.parametrize("name", DIFFICULT)
def test_round_trip_keeps_everything_but_blanks(tokenizer, name):
    text = DIFFICULT[name]
    assert tokenizer.decode(tokenizer.encode(text)) == folded(text)


def test_round_trip_of_random_unicode(tokenizer):
    for text in random_texts(1000, seed=2):
        assert tokenizer.decode(tokenizer.encode(text)) == folded(text), repr(text)


def test_the_sign_for_a_blank_is_decoded_as_a_blank(tokenizer):
    assert tokenizer.decode(tokenizer.encode(f"one{BLANK_PIECE}two")) == "one two"


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("½", "1⁄2"),
        ("ﬁne", "fine"),
        ("one\ttwo", "one two"),
        ("one\u200btwo", "one two"),
        ("one\x01two\x7f", "onetwo"),
        ("one   two", "one two"),
    ],
)
def test_nmt_nfkc_rewrites_as_documented(rewriting, text, rewritten):
    assert rewriting.decode(rewriting.encode(text)) == rewritten


def test_unknown_token_is_never_produced(tokenizer):
    for text in [*DIFFICULT.values(), *random_texts(100, seed=3)]:
        ids = tokenizer.encode(text)
        assert not {PAD_ID, BOS_ID, UNK_ID} & set(ids)
        assert ids.index(EOS_ID) == len(ids) - 1


def test_special_ids_are_those_of_the_model_file(tokenizer):
    op = tf_text.SentencepieceTokenizer(model=tokenizer.model)
    pieces = op.id_to_string([PAD_ID, BOS_ID, EOS_ID, UNK_ID]).numpy().tolist()
    assert pieces == [b"<pad>", b"<s>", b"</s>", b"<unk>"]
    assert op.vocab_size() == tokenizer.vocabulary_size == 400


def test_decode_stops_at_the_first_end(tokenizer):
    ids = tokenizer.encode("twenty-one")
    assert tokenizer.decode([*ids, *tokenizer.encode("zwei"), PAD_ID]) == "twenty-one"
    assert tokenizer.decode(ids[:-1]) == "twenty-one"  # the end may be missing
    assert tokenizer.decode([EOS_ID]) == tokenizer.decode([]) == ""


def test_decode_takes_arrays(tokenizer):
    ids = tf.constant(tokenizer.encode("twenty-one"))
    assert tokenizer.decode(ids.numpy()) == "twenty-one"


def test_encode_batch_is_encode_of_every_line(tokenizer):
    texts = list(DIFFICULT.values())
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


def test_broken_utf8_in_the_op_becomes_replacement_characters(tokenizer):
    op = tf_text.SentencepieceTokenizer(model=tokenizer.model)
    ids = op.tokenize([b"\xff two", b"\xc3", b"ok\xf0\x9f"])
    strings = [s.decode() for s in op.detokenize(tf.cast(ids, tf.int32)).numpy()]
    assert strings == ["\ufffd two", "\ufffd", "ok\ufffd\ufffd"]


def test_training_is_a_function_of_the_lines(lines, tokenizer):
    assert Tokenizer.train(lines, vocabulary_size=400).model == tokenizer.model


def test_small_text_gives_a_small_vocabulary():
    """4 special ids, 256 bytes, and the pieces "▁a", "▁" and "a"."""
    assert Tokenizer.train(["a", "", " "], vocabulary_size=8000).vocabulary_size == 263


def test_saved_model_is_loaded_again(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.model")
    assert Tokenizer.load(tmp_path / "tokenizer.model").model == tokenizer.model
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.model"]


def test_vocabulary_too_small_for_the_bytes(lines):
    with pytest.raises(InputError) as error:
        Tokenizer.train(lines, vocabulary_size=299)
    assert str(error.value) == (
        "data.vocabulary_size must be at least 300 (256 bytes, 4 special tokens and some "
        "pieces), or 261 for bytes alone, got 299."
    )


@pytest.mark.parametrize(
    "text", ["", " ", " two  blanks\t", "é 日本\x00\r \U0001f44d\u2028", "\ue000"]
)
def test_each_byte_is_a_token_of_a_vocabulary_of_bytes(text):
    tokenizer = Tokenizer.train([], vocabulary_size=BYTES)
    assert tokenizer.vocabulary_size == BYTES
    ids = tokenizer.encode(text)
    assert len(ids) == len(text.encode()) + 1
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize(("line", "rest"), [("a ho", "use"), ("a", " house"), ("a house", "")])
@pytest.mark.parametrize("normalization", ["identity", "nmt_nfkc"])
def test_a_continuation_has_no_blank_of_its_own(lines, line, rest, normalization):
    tokenizer = Tokenizer.train(lines, 400, normalization)
    ids = [*tokenizer.encode(line)[:-1], *tokenizer.encode_continuation(rest)]
    assert tokenizer.decode(ids) == line + rest


@pytest.mark.parametrize("lines", [[], ["", "  ", "\t"]])
def test_nothing_to_train_on(lines):
    with pytest.raises(InputError) as error:
        Tokenizer.train(lines, vocabulary_size=300)
    assert str(error.value) == ("there is no text to train a tokenizer on: every line is empty.")


def test_a_file_that_is_not_a_model(tmp_path):
    path = tmp_path / "tokenizer.model"
    path.write_text("not a model")
    with pytest.raises(InputError, match=r"tokenizer\.model is not a SentencePiece model: "):
        Tokenizer.load(path)


def test_model_with_other_ids(lines, tmp_path):
    import sentencepiece

    prefix = tmp_path / "foreign"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(prefix), vocab_size=60, minloglevel=2
    )
    with pytest.raises(InputError) as error:
        Tokenizer.load(f"{prefix}.model")
    assert str(error.value) == (
        f"{prefix}.model has the ids (-1, 1, 2, 0) for padding, start, end and unknown; "
        "expected (0, 1, 2, 3). Train the tokenizer with this project."
    )


def test_vocabulary_too_small_for_the_characters():
    """500 Chinese characters; 260 of the 300 ids are bytes and special ids."""
    with pytest.raises(InputError) as error:
        Tokenizer.train(["".join(map(chr, range(0x4E00, 0x4E00 + 500)))], vocabulary_size=300)
    message = "data.vocabulary_size=300 is too small for the characters of this text; raise it."
    assert str(error.value).startswith(message)


def test_file_that_is_missing(tmp_path):
    with pytest.raises(InputError) as error:
        Tokenizer.load(tmp_path / "tokenizer.model")
    assert str(error.value).endswith(
        "tokenizer.model is not a file; it should be a run's tokenizer."
    )


@pytest.mark.parametrize("segmentation", ["bpe", "unigram"])
def test_no_text_has_an_id_that_is_not_text(lines, segmentation):
    """All pieces as texts, in Python and by the op of the graph; also symbols of a stored model."""
    symbols = ["<word>", "<(S>", "<)>"]
    tokenizer = Tokenizer.train(
        [*lines, *["<word> some <(S> words <)>"] * 50],
        400,
        segmentation=segmentation,
        symbols=symbols,
    )
    assert [i for i in range(tokenizer.vocabulary_size) if tokenizer.is_symbol(i)] == [4, 5, 6]
    assert [tokenizer.piece_to_id(symbol) for symbol in symbols] == [4, 5, 6]
    pieces = list(map(tokenizer.piece, range(tokenizer.vocabulary_size)))
    texts = [text.format(piece) for piece in pieces for text in ("{}", "a {} b", "x{}y")]
    rows = tokenizer.encode_batch(texts)
    assert rows == list(map(tokenizer.encode, texts))
    found = tf_text.SentencepieceTokenizer(tokenizer.model).tokenize(texts).to_list()
    assert found == [row[:-1] for row in rows]
    rows += map(tokenizer.encode_continuation, texts)
    assert min(i for row in rows for i in row[:-1]) > tokenizer.piece_to_id(symbols[-1])
    for text, row in zip(texts, rows, strict=False):
        assert tokenizer.decode(row).split() == text.replace(BLANK_PIECE, " ").split()
