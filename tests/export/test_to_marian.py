"""Runs as Marian models: the import reads back what the export wrote.

`fixtures/make_marian.py` shows that the import agrees with Transformers.
"""

import json

import numpy as np
import pytest

from tf_transformer.commands import export, import_model
from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.export import to_marian
from tf_transformer.export.to_marian import require_supported
from tf_transformer.inference.translator import Translator
from tf_transformer.run.run import Run

TEXTS = ["twenty-one", "", "June twelfth, twenty seventeen", "½ 日本", "</s> <pad>"]


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian") / "model"
    export.main(str(run), str(folder), format="marian")
    return folder


def test_a_run_comes_back_with_its_logits(run, folder, tmp_path):
    """But those of padding and start, which an imported model never predicts."""
    import_model.main(marian=str(folder), run_dir=str(tmp_path / "run"))
    own, back = (Translator.from_run(path) for path in (run, tmp_path / "run"))
    assert back.model.config.position == "sinusoidal_halves"
    assert back.config.early_stopping == own.config.early_stopping
    inputs = np.array([[5, 6, 70, 2], [7, 2, 0, 0]]), np.array([[1, 8, 90], [1, 10, 11]])
    ours, theirs = (np.asarray(each.model(inputs))[..., 2:] for each in (own, back))
    np.testing.assert_allclose(ours, theirs, atol=1e-3)  # another ε
    assert np.ptp(ours) > 1


def test_an_imported_model_comes_back_bit_for_bit(folder, tmp_path):
    import_model.main(marian=str(folder), run_dir=str(tmp_path / "run"))
    export.main(str(tmp_path / "run"), str(tmp_path / "again"), format="marian")
    import_model.main(marian=str(tmp_path / "again"), run_dir=str(tmp_path / "twice"))
    one, two = (Translator.from_run(tmp_path / name) for name in ("run", "twice"))
    for ours, theirs in zip(one.model.get_weights(), two.model.get_weights(), strict=True):
        rows = min(len(ours), len(theirs))  # each import adds an id for the start
        np.testing.assert_array_equal(ours[4:rows], theirs[4:rows])
    assert [each.text for each in one(TEXTS)] == [each.text for each in two(TEXTS)]


def test_ids_of_the_folder_are_those_of_the_run(run, folder):
    tokenizer = Run.load(run).codec["target"]
    ids = json.loads((folder / "vocab.json").read_text("utf-8"))
    assert len(ids) == tokenizer.vocabulary_size
    assert ids["<pad>"] == 0
    assert all(tokenizer.piece(token) == piece for piece, token in ids.items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"position": "rotary"},
            "needs model.position sinusoidal or sinusoidal_halves, got rotary",
        ),
        ({"norm_first": True}, "needs model.norm_first False"),
        ({"activation": "swiglu"}, "needs model.activation relu or gelu or swish"),
        ({"normalization": "rms_norm"}, "needs model.normalization layer_norm"),
        ({"num_key_value_heads": 2}, "no shared heads"),
        ({"key_dim": 8, "value_dim": 8}, "needs heads of the size"),
    ],
)
def test_what_the_layout_cannot_hold_is_an_error(options, message):
    with pytest.raises(InputError, match=message):
        require_supported(ModelConfig(**options), "marian", to_marian.VALUES)
