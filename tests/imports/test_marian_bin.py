"""Marian's binary files, as `marian_files.write` makes them.

For a model of Marian, its converter wrote the same bytes, but for the text of the options.
"""

import io
import json
import shutil
import struct

import numpy as np
import pytest
import sentencepiece
from imports.marian_files import FIREFOX, FIXTURES, MARIAN, edit_text, folder_at, write

from tf_transformer.commands import import_model
from tf_transformer.errors import InputError
from tf_transformer.imports import marian_npz
from tf_transformer.imports.layouts import marian
from tf_transformer.imports.marian_bin import read_binary
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import as_strings, clean
from tf_transformer.text.special_ids import EOS_ID

BIAS = marian(norm_first=False, has_ssru=False).bias
ARRAYS = {
    "encoder_Wemb": np.random.default_rng(1).normal(size=(7, 4)).astype("float32"),
    "encoder_l1_self_Wq": np.random.default_rng(2).normal(size=(4, 6)).astype("float32"),
    "encoder_l1_self_bq": np.random.default_rng(3).normal(size=(1, 6)).astype("float32"),
    "special:model.yml": np.frombuffer(b"type: transformer\n\0", "int8"),
}


def stored():
    with np.load(FIXTURES / "npz" / "model.npz") as arrays:
        return dict(arrays)


def test_a_file_of_float32_has_the_arrays_of_the_npz_file(tmp_path):
    write(tmp_path / "model.bin", stored())
    found = read_binary(tmp_path / "model.bin")
    assert found.keys() == stored().keys()
    for name, array in stored().items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("types", [FIREFOX, MARIAN], ids=["Firefox", "Marian"])
@pytest.mark.parametrize("kind", ["i1", "i2"])
def test_integers_become_the_nearest_multiples_of_a_step(kind, types, tmp_path):
    """A step is the largest number / 127, or 1 / 1024."""
    write(tmp_path / "model.bin", ARRAYS, kind, types)
    found = read_binary(tmp_path / "model.bin")
    for name, array in ARRAYS.items():
        is_exact = name.endswith(("bq", "yml")) or ("Wemb" in name and types is MARIAN)
        step = np.abs(array).max() / 127 if kind == "i1" else 1 / 1024
        error = np.abs(found[name] - array.astype("float64"))
        assert found[name].shape == array.shape
        assert error.max() <= (0 if is_exact else 0.501 * step)
        assert is_exact or error.max() > 0


def firefox_folder(to, kind="i1", vocabularies=("srcvocab.ende.spm", "trgvocab.ende.spm")):
    """A folder with the names of Firefox's files, with scales of activations and a shortlist."""
    to.mkdir()
    for side, name in zip(("source", "target"), vocabularies, strict=True):
        shutil.copy(FIXTURES / f"{side}.spm", to / name)
    scales = {"encoder_l1_self_Wq_QuantMultA": np.float32([3.0]), "none_QuantMultA": np.ones(1)}
    write(to / "model.ende.intgemm.alphas.bin", stored() | scales, kind)
    (to / "lex.50.50.ende.s2t.bin").write_bytes(b"shortlist")
    return to


def test_a_folder_of_firefox_is_a_run_with_its_options(tmp_path, capsys):
    folder = firefox_folder(tmp_path / "ende")
    import_model.main(marian=str(folder), run_dir=str(tmp_path / "run"))
    printed = capsys.readouterr().out
    assert "note: ende: not read: shortlist" in printed
    assert "model.ende.intgemm.alphas.bin: the run has float32 weights" in printed
    found = marian_npz.read(folder)
    decode = found.config.decode
    assert (decode.beam_size, decode.length_penalty, decode.max_length_ratio) == (1, 1.0, 2.0)
    # Near the model whose matrices were float32.
    whole = marian_npz.read(folder_at(tmp_path / "npz")).model
    inputs = np.array([[5, 6, 2]]), np.array([[1, 7]])
    expected = np.asarray(whole(inputs))
    np.testing.assert_allclose(np.asarray(found.model(inputs)), expected, rtol=0, atol=0.2)


def test_a_vocabulary_of_firefox_gives_the_ids_of_sentencepiece(tmp_path):
    """It divides unknown characters into bytes. Its symbols are of training; here they are text."""
    folder = tmp_path / "ende"
    folder.mkdir()
    pairs = json.loads((FIXTURES / "npz" / "expected.json").read_text("utf-8"))
    sentences = [pair[side] for pair in pairs for side in ("text", "translation")]
    buffer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=buffer,
        **{"bos_id": -1, "eos_id": 0, "unk_id": 1, "vocab_size": 300, "byte_fallback": True},
        **{"user_defined_symbols": ["__source__", "__end__"], "minloglevel": 2},
    )
    (folder / "vocab.ende.spm").write_bytes(buffer.getvalue())
    random = np.random.default_rng(1)
    arrays = stored() | {
        "encoder_Wemb": random.normal(size=(300, 16)).astype("float32"),
        "decoder_Wemb": random.normal(size=(300, 16)).astype("float32"),
        BIAS: np.zeros((1, 300), "float32"),
    }
    write(folder / "model.ende.intgemm.alphas.bin", arrays, "i1")
    tokenizer = marian_npz.read(folder).codec["source"]
    processor = sentencepiece.SentencePieceProcessor(model_proto=buffer.getvalue())
    texts = [*sentences, "a 😀 house", "数の家", "½ ﬁ", "</s> <unk>", "__sea__ end"]
    expected = [[token + 2 for token in [*processor.encode(text), 0]] for text in texts]
    assert tokenizer.encode_batch(texts) == expected
    in_graph = Codec(tokenizer).in_graph()[""].encode(clean(as_strings(texts))).to_list()
    assert [[*row, EOS_ID] for row in in_graph] == expected
    text = "x __source__ y"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert processor.piece_to_id("__source__") + 2 not in tokenizer.encode(text)


def test_decoder_yml_may_name_a_binary_file(tmp_path):
    folder = folder_at(tmp_path / "model")
    write(folder / "model.bin", stored())
    expected = marian_npz.read(folder).model
    edit_text("decoder.yml", "model.npz", "model.bin")(folder)
    (folder / "decoder.yml").rename(folder / "config.intgemm8bitalpha.yml")
    (folder / "config.intgemm8bit.yml").touch()
    found = marian_npz.read(folder).model
    inputs = np.array([[5, 6, 2]]), np.array([[1, 7]])
    np.testing.assert_array_equal(np.asarray(found(inputs)), np.asarray(expected(inputs)))


def test_a_file_that_is_cut_short_anywhere_is_an_error(tmp_path):
    write(tmp_path / "model.bin", ARRAYS, "i1")
    content = (tmp_path / "model.bin").read_bytes()
    for size in range(0, len(content), 7):
        (tmp_path / "model.bin").write_bytes(content[:size])
        with pytest.raises(InputError, match="is cut short, or no binary file of Marian"):
            read_binary(tmp_path / "model.bin")


def damaged(place, number, form="<Q"):
    """An edit of a file: a number at a place."""

    def edit(content):
        return (
            content[:place] + struct.pack(form, number) + content[place + struct.calcsize(form) :]
        )

    return edit


FIRST = 16  # the place of the first header: sizes of name, type, shape and data
BROKEN = {
    "another version": (damaged(0, 2), "expected version 1 of Marian's binary files, got 2"),
    "no file of Marian": (lambda content: b"PK\3\4" + content, "expected version 1 of Marian's"),
    "too many items": (damaged(8, 2**60), "expected 36,893,488,147,419,103,232 bytes from byte 16"),
    "a long name": (damaged(FIRST, 2**40), r"expected 1,099,511,627,776 bytes"),
    "packed": (damaged(FIRST + 8, 0x1801), r"encoder_Wemb has numbers of the type 0x1801, which"),
    "little data": (damaged(FIRST + 24, 8), r"encoder_Wemb has the shape \(7, 4\), which needs 32"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_damaged_file_is_an_error(fault, tmp_path):
    path = tmp_path / "model.bin"
    write(path, ARRAYS, "i1")
    edit, message = BROKEN[fault]
    path.write_bytes(edit(path.read_bytes()))
    with pytest.raises(InputError, match=message):
        read_binary(path)


def test_a_shape_that_does_not_fit_the_data_is_an_error(tmp_path):
    write(tmp_path / "model.bin", {"b": np.ones((1, 3), "float32")})
    content = (tmp_path / "model.bin").read_bytes()
    shape = struct.pack("<2i", 1, 3)
    for other in (struct.pack("<2i", -1, -3), struct.pack("<2i", 2**30, 2**30)):
        (tmp_path / "model.bin").write_bytes(content.replace(shape, other))
        with pytest.raises(
            InputError, match=r"b has the shape \(.*, got 256\. The file is damaged"
        ):
            read_binary(tmp_path / "model.bin")


def test_a_folder_without_the_files_of_a_model_is_an_error(tmp_path):
    folder = firefox_folder(tmp_path / "ende")
    (folder / "trgvocab.ende.spm").unlink()
    (folder / "srcvocab.ende.spm").unlink()
    with pytest.raises(InputError, match=r"must have Firefox's files: .* Got model\.ende\.intg"):
        marian_npz.read(folder)
