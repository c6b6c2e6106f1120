"""Runs in Marian's own files. The stored model of `fixtures/make_marian_npz.py` is the oracle."""

import pathlib
import shutil

import numpy as np
import pytest

from tf_transformer.commands import export, import_model
from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.export.to_marian_npz import require_supported
from tf_transformer.imports import marian_npz
from tf_transformer.imports.layouts import marian
from tf_transformer.imports.marian_options import OPTIONS, model_options
from tf_transformer.models.transformer import Transformer
from tf_transformer.run.run import Run
from tf_transformer.text.sentencepiece_file import read_pieces

BIAS = marian(norm_first=False, has_ssru=False).bias
FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "marian"


def order(folder, side):
    """The ids of a vocabulary, sorted by their tokens."""
    texts = [piece.text for piece in read_pieces((folder / f"{side}.spm").read_bytes())]
    return np.argsort(texts)


@pytest.fixture(scope="module", params=["npz", "npz_ssru", "npz_ssru_pre_norm"])
def folders(tmp_path_factory, request):
    """A model that Marian trained, and what the export makes of its import."""
    root = tmp_path_factory.mktemp("marian_npz")
    shutil.copytree(FIXTURES / request.param, root / "marian")
    for side in ("source", "target"):
        shutil.copy(FIXTURES / f"{side}.spm", root / "marian")
    import_model.main(marian=str(root / "marian"), run_dir=str(root / "run"))
    export.main(str(root / "run"), str(root / "again"), format="marian_npz")
    return root


def test_a_model_of_marian_comes_back_bit_for_bit(folders):
    before, after = (
        marian_npz.read_arrays(folders / name / "model.npz") for name in ("marian", "again")
    )
    assert before.keys() == after.keys()
    rows = {"encoder_Wemb": "source", "decoder_Wemb": "target", BIAS: "target"}
    for name in before.keys() - {OPTIONS}:
        arrays = before[name], after[name]
        if name in rows:
            axis = -1 if name == BIAS else 0
            arrays = (
                np.moveaxis(array, axis, 0)[order(folders / of, rows[name])]
                for array, of in zip(arrays, ("marian", "again"), strict=True)
            )
        np.testing.assert_array_equal(*arrays, err_msg=name)


def test_the_options_are_those_that_marian_wrote(folders):
    before, after = (
        model_options(marian_npz.read_arrays(path), path)[0]
        for path in (folders / name / "model.npz" for name in ("marian", "again"))
    )
    differing = {"version", "transformer-decoder-dim-ffn"}  # Marian: 0, like the encoder
    assert before.keys() - differing <= after.keys()
    assert {key: after[key] for key in before.keys() - differing} == {
        key: before[key] for key in before.keys() - differing
    }
    searches = [marian_npz.read(folders / name).config.decode for name in ("marian", "again")]
    assert searches[0] == searches[1]


def test_the_vocabularies_give_the_same_ids(folders):
    import sentencepiece

    codec = Run.load(folders / "run").codec
    for side, text in (("source", "the old house ½"), ("target", "das alte Haus ½")):
        processor = sentencepiece.SentencePieceProcessor(str(folders / "again" / f"{side}.spm"))
        assert (processor.eos_id(), processor.unk_id(), processor.pad_id()) == (0, 1, -1)
        expected = [token - 2 for token in codec[side].encode(text)]
        assert [*processor.encode(text), processor.eos_id()] == expected


def model_with(**options):
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 2, "position": "marian"}
    model = Transformer(7, ModelConfig(**sizes | options))
    model.build()
    return model


def test_what_marian_cannot_hold_is_an_error():
    require_supported(model_with(zero_start=True, output_bias=True))
    with pytest.raises(InputError, match="needs a target that starts with a zero embedding"):
        require_supported(model_with())
    with pytest.raises(InputError, match=r"needs model[.]position marian, got sinusoidal"):
        require_supported(model_with(position="sinusoidal"))
