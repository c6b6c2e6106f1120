"""The tokenizer: the package against tensorflow-text's op, and how text changes."""

import hashlib
import random
import re
import subprocess
import sys
import unicodedata
from functools import partial

import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from tf_transformer.data.readers.generated import generate
from tf_transformer.errors import InputError
from tf_transformer.text.graph_tokenizer import GraphTokenizer, clean
from tf_transformer.text.normalization import normalize
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from tf_transformer.text.tokenizer import BYTES, Tokenizer

BLANK_PIECE = "\u2581"  # SentencePiece's own sign for a blank
BLANK = {"Zs", "Zl", "Zp", "Cc", "Cf"}  # categories of white space and invisible characters

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
    return Tokenizer.train(lines, vocabulary_size=400, normalization="identity")


@pytest.fixture(scope="module")
def default(lines):
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
    """One blank for each run, none at the ends; then the same with U+2581 for a blank; no NUL.

    A line of white space, control and format characters is empty.
    """
    if all(unicodedata.category(character) in BLANK for character in text):
        return ""
    inner = re.sub(" +", " ", text.replace("\0", "")).strip(" ")
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
    ids = op.tokenize(clean(tf.constant([text.encode() for text in texts])))
    strings = op.detokenize(tf.cast(ids, tf.int32)).numpy()
    return ids.to_list(), [string.decode() for string in strings]


@pytest.mark.parametrize("which", ["tokenizer", "default", "rewriting", "unigram"])
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


@pytest.fixture(scope="module")
def of_bytes():
    return Tokenizer.train([], vocabulary_size=BYTES)


@pytest.mark.parametrize("which", ["default", "of_bytes"])
def test_ids_do_not_depend_on_the_form_of_unicode(which, request):
    """Over all characters that have several forms or no width, in Python and in the graph."""
    tokenizer = request.getfixturevalue(which)
    characters = [
        character
        for character in map(chr, [*range(1, 0xD800), *range(0xE000, 0x110000)])
        if unicodedata.category(character) in BLANK
        or not unicodedata.is_normalized("NFC", character)
        or not unicodedata.is_normalized("NFD", character)
    ]
    size = 64  # characters in a text
    rows = [characters[i : i + size] for i in range(0, len(characters), size)]
    texts = ["".join(f"1{character}b " for character in row) for row in rows]
    wanted = tokenizer.encode_batch(list(map(normalize, texts)))
    for form in (str, *(partial(unicodedata.normalize, name) for name in ("NFC", "NFD"))):
        of_form = ["".join(f"1{form(c)}b " for c in row) for row in rows]
        assert tokenizer.encode_batch(of_form) == wanted
        ids, _ = through_op(tokenizer, of_form)
        assert [[*row, EOS_ID] for row in ids] == wanted


def test_rules_change_no_piece_of_normal_text(lines, tokenizer, default):
    assert default.encode_batch(lines) == tokenizer.encode_batch(lines)


@pytest.mark.parametrize("which", ["tokenizer", "default", "rewriting", "of_bytes"])
def test_a_line_of_white_space_and_invisible_characters_is_empty(which, request):
    tokenizer = request.getfixturevalue(which)
    texts = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) in BLANK]
    assert set("\t\r\x1f\u00a0\u2028\u200b\ufeff") < set(texts) > set(filter(str.isspace, texts))
    texts.append("".join(texts))
    assert tokenizer.encode_batch(texts) == [[EOS_ID]] * len(texts)
    ids, _ = through_op(tokenizer, texts)
    assert ids == [[]] * len(texts)


def test_new_rules_keep_the_vocabulary(tokenizer, default):
    rewritten = tokenizer.with_nmt_nfc()
    assert rewritten.model == default.model == default.with_nmt_nfc().model
    decomposed = "Vie\u0323\u0302t\u00a0Nam\u00ad"
    assert rewritten.decode(rewritten.encode(decomposed)) == "Việt Nam"
    assert tokenizer.decode(tokenizer.encode(decomposed)) == decomposed


@pytest.mark.parametrize("which", ["tokenizer", "unigram", "of_bytes"])
def test_decoded_text_has_whole_characters_only(which, request):
    """Random ids, most of them bytes of characters of several bytes."""
    tokenizer = request.getfixturevalue(which)
    rng = random.Random(4)
    byte_ids = [i for i, byte in tokenizer.byte_of.items() if byte >= 0x80]
    others = [*tokenizer.encode("a house"), *tokenizer.byte_of]
    whole = [tokenizer.encode(text)[-n - 1 : -1] for text, n in (("é", 2), ("猫", 3), ("🙂", 4))]
    rows = [
        [
            i
            for _ in range(rng.randrange(12))
            for i in rng.choice([[rng.choice(byte_ids)], [rng.choice(others)], *whole])
        ]
        for _ in range(3000)
    ]
    texts = list(map(tokenizer.decode, rows))
    assert not any("\ufffd" in text for text in texts)
    sizes = tf.constant(list(map(len, rows)))
    ids = tf.ragged.constant(rows, dtype=tf.int32).to_tensor(PAD_ID)
    in_graph = GraphTokenizer(tokenizer)
    found = in_graph.decode(in_graph.text_ids(ids, sizes))
    assert [text.decode() for text in found.numpy()] == texts
    for row, text in zip(rows, texts, strict=True):
        is_bytes_only = EOS_ID not in row and all(i in tokenizer.byte_of for i in row)
        if is_bytes_only:
            values = bytes(tokenizer.byte_of[i] for i in row)
            assert text == values.decode("utf-8", "ignore").replace("\0", "")  # no text has NUL


@pytest.mark.parametrize("which", ["tokenizer", "default", "of_bytes"])
def test_words_of_pieces_are_those_of_split(which, request):
    """The pieces of a word make its text; of words, where a reader and SentencePiece agree."""
    tokenizer = request.getfixturevalue(which)
    odd = [
        "a\u2581b c",
        " one\u00a0two\t猫 ",
        "a \u200b b",
        "\u2581",
        "x \0 y",
        "e\u0301 f\x1cg",
        "\ufeffa",
    ]
    for text in [*odd, *DIFFICULT.values(), *random_texts(500, seed=6)]:
        words, ids = text.split(), tokenizer.encode(text)[:-1]
        places = tokenizer.word_of_pieces(text)
        assert len(places) == len(ids)
        assert places == sorted(places)
        assert not places or 0 <= places[0] <= places[-1] < len(words)
    text = "one two,  \u732b\u732b \u00e9t\u00e9 \U0001f642!"
    ids, places = tokenizer.encode(text)[:-1], tokenizer.word_of_pieces(text)
    for place, word in enumerate(text.split()):
        of_word = [token for token, number in zip(ids, places, strict=True) if number == place]
        assert tokenizer.decode(of_word).strip() == word


def test_unknown_token_is_never_produced(tokenizer):
    for text in [*DIFFICULT.values(), *random_texts(100, seed=3)]:
        ids = tokenizer.encode(text)
        assert not {PAD_ID, BOS_ID, UNK_ID} & set(ids)
        assert ids.index(EOS_ID) == len(ids) - 1


def test_no_piece_of_a_large_vocabulary_is_unknown_when_it_repeats():
    """Scores of byte pairs are ranks, so each integer is the score of a piece."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghij", k=6)) for _ in range(3000)]
    tokenizer = Tokenizer.train(words, 1500)
    assert tokenizer.vocabulary_size == 1500
    pieces = (tokenizer.piece(token).strip("▁") for token in range(260, 1500))
    texts = [text for x in pieces for text in (x * 3, f"{x} {x} {x}".strip())]
    for ids, text in zip(tokenizer.encode_batch(texts), texts, strict=True):
        assert UNK_ID not in ids
        assert tokenizer.decode(ids) == text


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


def test_training_is_a_function_of_the_lines(lines, default):
    assert Tokenizer.train(lines, vocabulary_size=400).model == default.model


@pytest.mark.parametrize("segmentation", ["bpe", "unigram"])
def test_the_model_does_not_depend_on_the_machine(lines, segmentation, monkeypatch):
    models = set()
    for cores in (1, 2, 4, 8):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        models.add(Tokenizer.train(lines, 330, segmentation=segmentation).model)
    assert len(models) == 1


@pytest.mark.parametrize("segmentation", ["bpe", "unigram"])
def test_a_sample_of_the_lines_is_the_same_in_every_process(lines, segmentation):
    """And it is a sample: other lines give other pieces."""
    options = {"segmentation": segmentation, "max_lines": 50}
    model = Tokenizer.train(lines, 320, **options)
    assert model.model != Tokenizer.train(lines[:50], 320, segmentation=segmentation).model
    program = (
        "import hashlib, sys; from tf_transformer.text.tokenizer import Tokenizer; "
        "lines = sys.stdin.read().split('\\n'); "
        f"model = Tokenizer.train(lines, 320, **{options}).model; "
        "print(hashlib.sha256(model).hexdigest())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input="\n".join(lines), capture_output=True, text=True
    )
    assert done.stdout.split() == [hashlib.sha256(model.model).hexdigest()]


@pytest.mark.parametrize("space", [" ", ""])
def test_long_lines_are_learned_from(space):
    """Also a line of one word; its pieces are those of the same words in short lines."""
    words = [f"слово{chr(0x430 + n % 32)}{chr(0x430 + n // 32)}" for n in range(900)]
    long = [space.join(words)] * 3
    tokenizer = Tokenizer.train([*long, *["a house"] * 5], 400)
    assert len(tokenizer.encode(long[0])) < len(long[0])
    if space:
        short = [" ".join(words[i : i + 9]) for i in range(0, len(words), 9)] * 3
        same = Tokenizer.train([*short, *["a house"] * 5], 400)
        pieces = {tokenizer.piece(i) for i in range(tokenizer.vocabulary_size)}
        assert pieces == {same.piece(i) for i in range(same.vocabulary_size)}


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


@pytest.mark.parametrize("text", ["", " two  blanks\t", "é 日本\x01\r \U0001f44d\u2028", "\ue000"])
def test_each_byte_is_a_token_of_a_vocabulary_of_bytes(text):
    tokenizer = Tokenizer.train([], vocabulary_size=BYTES, normalization="identity")
    assert tokenizer.vocabulary_size == BYTES
    ids = tokenizer.encode(text)
    assert len(ids) == len(text.encode()) + 1
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize(("line", "rest"), [("a ho", "use"), ("a", " house"), ("a house", "")])
@pytest.mark.parametrize("normalization", ["identity", "nmt_nfkc", "nmt_nfc"])
def test_a_continuation_has_no_blank_of_its_own(lines, line, rest, normalization):
    tokenizer = Tokenizer.train(lines, 400, normalization)
    (ids,) = GraphTokenizer(tokenizer).encode_continuation([rest]).to_list()
    assert tokenizer.decode([*tokenizer.encode(line)[:-1], *ids]) == line + rest


@pytest.mark.parametrize("segmentation", ["bpe", "unigram"])
def test_a_character_that_sentencepiece_reserves_costs_no_line(segmentation):
    """It drops lines with U+2585, which stands for unknown characters."""
    lines = [f"twenty {word} \u2585" for word in ("houses", "horses", "mice")] * 9
    tokenizer = Tokenizer.train(lines, 320, segmentation=segmentation)
    assert {"y", "h"} < {tokenizer.piece(i) for i in range(tokenizer.vocabulary_size)}
    assert tokenizer.decode(tokenizer.encode(lines[0])) == lines[0]


def test_a_text_without_a_vocabulary_is_an_error():
    """nmt_nfkc removes U+FFFD, and nothing is left."""
    with pytest.raises(InputError) as error:
        Tokenizer.train(["\ufffd"], 300, "nmt_nfkc")
    assert str(error.value).startswith(
        "SentencePiece cannot learn a vocabulary from this text. Check the files of the training "
        "text. SentencePiece says: "
    )


@pytest.mark.parametrize(
    "lines", [[], ["", "  ", "\t"], ["\u2585"] * 5, ["\u2581", " \u2585\u2581"]]
)
def test_nothing_to_train_on(lines):
    with pytest.raises(InputError) as error:
        Tokenizer.train(lines, vocabulary_size=300)
    assert str(error.value) == (
        "there is no text to train a tokenizer on: every line is empty. Check the files of the "
        "training text."
    )


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
    """500 Chinese characters and the space; 260 ids are bytes and special ids."""
    with pytest.raises(InputError) as error:
        Tokenizer.train(["".join(map(chr, range(0x4E00, 0x4E00 + 500)))], vocabulary_size=300)
    assert str(error.value) == (
        "the bytes and characters of this text need a vocabulary of 761 ids, got "
        "data.vocabulary_size=300. Give 761, and more for longer pieces."
    )


def test_file_that_is_missing(tmp_path):
    with pytest.raises(InputError) as error:
        Tokenizer.load(tmp_path / "tokenizer.model")
    path = tmp_path / "tokenizer.model"
    assert str(error.value) == f"expected the tokenizer of a run at {path}, but there is no file."


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
    in_graph = GraphTokenizer(tokenizer)
    assert in_graph.encode(texts).to_list() == [row[:-1] for row in rows]
    rows += [[*row, EOS_ID] for row in in_graph.encode_continuation(texts).to_list()]
    assert min(i for row in rows for i in row[:-1]) > tokenizer.piece_to_id(symbols[-1])
    for text, row in zip(texts, rows, strict=False):
        assert tokenizer.decode(row).split() == text.replace(BLANK_PIECE, " ").split()


def test_a_tokenizer_in_a_graph_outlives_the_caches_of_tensorflow():
    """Seeds clear them, and with them the models that operations own."""
    tokenizer = Tokenizer.train(["a house", "ein Haus"], vocabulary_size=300)
    in_graph = GraphTokenizer(tokenizer)
    encode = tf.function(lambda text: in_graph.encode(text).flat_values, autograph=False)
    expected = encode(tf.constant(["a house"])).numpy().tolist()
    tf.random.set_seed(1)
    assert encode(tf.constant(["a house"])).numpy().tolist() == expected
