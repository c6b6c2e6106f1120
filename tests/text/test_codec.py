"""The codec: a tokenizer of both sides or one of each, in Python, in files and in the graph."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text.test_tokenizer import folded

from tf_transformer.errors import InputError
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import BYTES, Tokenizer

ENGLISH = ["a little house stands here", "the houses"] * 9
GERMAN = ["ein kleines Häuschen steht hier", "die Häuser"] * 9
FIELDS = ("source", "target")


def shared():
    return Codec(Tokenizer.train(ENGLISH + GERMAN, 340, "identity"))


def separate():
    sizes = zip(FIELDS, (ENGLISH, GERMAN), (320, 330), strict=True)
    return Codec({field: Tokenizer.train(lines, size, "identity") for field, lines, size in sizes})


@pytest.fixture(scope="module", params=[shared, separate])
def codec(request):
    return request.param()


@given(text=st.text())
@pytest.mark.parametrize("field", FIELDS)
def test_any_text_survives_but_for_spaces(codec, field, text):
    assert codec.decode(field, codec.encode(field, text)) == folded(text)


def test_each_side_has_its_own_vocabulary():
    codec, text = separate(), "house Häuschen"
    source, target = (codec.encode(field, text) for field in FIELDS)
    assert [codec.size(field) for field in FIELDS] == codec.sizes == [320, 330]
    assert source != target
    assert source == codec.tokenizers["source"].encode(text)
    assert codec.encode_batch("target", [text]) == [target]
    assert str(codec) == "vocabularies source 320, target 330"
    assert "▁house" in map(codec["source"].piece, source)
    assert "▁Häuschen" in map(codec["target"].piece, target)


def test_a_shared_vocabulary_serves_every_field():
    codec = shared()
    assert codec["source"] is codec["target"] is codec["any"]
    assert (codec.is_shared, codec.sizes, str(codec)) == (True, [340], "vocabulary 340")


@pytest.mark.parametrize("field", ["text", ""])
def test_a_field_without_a_tokenizer(field):
    with pytest.raises(InputError, match=r"no tokenizer for .*, only for source and target"):
        separate()[field]


def test_files(codec, tmp_path):
    codec.save(tmp_path)
    of_both = ["tokenizer.model"]
    of_each = ["tokenizer.source.model", "tokenizer.target.model"]
    assert sorted(path.name for path in tmp_path.iterdir()) == (
        of_both if codec.is_shared else of_each
    )
    loaded = Codec.load(tmp_path)
    assert loaded.identity == codec.identity
    assert loaded.encode("target", "die Häuser") == codec.encode("target", "die Häuser")


def test_identities():
    of_bytes = Tokenizer.train([], BYTES)
    one, two = Codec(of_bytes), Codec({"source": of_bytes, "target": of_bytes})
    english, german = separate().tokenizers.values()
    codecs = [one, two, separate(), Codec({"source": german, "target": english}), Codec(german)]
    assert len({codec.identity for codec in codecs}) == len(codecs)


def test_a_missing_side_is_an_error(tmp_path):
    separate().save(tmp_path)
    (tmp_path / "tokenizer.target.model").unlink()
    with pytest.raises(InputError, match="has only the tokenizer of source, expected one for each"):
        Codec.load(tmp_path)


def test_no_tokenizer_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"the tokenizer of a run at .*tokenizer\.model, but"):
        Codec.load(tmp_path)
