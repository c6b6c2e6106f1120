"""Models of OpenNMT-tf; `fixtures/make_opennmt_tf.py` has stored what OpenNMT-tf computes."""

import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.commands import import_model
from tf_transformer.errors import InputError
from tf_transformer.imports import opennmt_tf_folder
from tf_transformer.imports.layouts import opennmt_tf
from tf_transformer.imports.opennmt_tf_folder import SOURCE
from tf_transformer.inference.translator import Translator

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"
HEADS = 4
BIAS = opennmt_tf(norm_first=True).bias


def folder_of(name, to):
    """A copy of a stored folder with the SentencePiece models."""
    folder = pathlib.Path(shutil.copytree(FIXTURES / "opennmt_tf" / name, to))
    for side in ("source", "target"):
        shutil.copy(FIXTURES / "marian" / f"{side}.spm", folder)
    return folder


@pytest.mark.parametrize("name", ["untied", "shared"])
def test_log_probabilities_are_those_of_opennmt_tf(name, tmp_path):
    folder = folder_of(name, tmp_path / "model")
    run_dir = tmp_path / "run"
    import_model.main(opennmt_tf=str(folder), num_heads=HEADS, run_dir=str(run_dir))
    translator = Translator.from_run(run_dir)
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    scores = translator.score(expected["sources"], expected["targets"])
    found = [score.log_probability for score in scores]
    np.testing.assert_allclose(found, expected["log_probabilities"], rtol=1e-5, atol=1e-4)
    config = translator.model.config
    assert (config.norm_first, config.imported.source_end) == ((True, False), (False, True))[
        name == "shared"
    ]
    assert config.tie_embeddings == ("none", "all")[name == "shared"]
    assert (translator.config.beam_size, translator.config.length_penalty) == (3, 0.5)


def test_the_heads_are_those_of_the_model_in_the_catalog(tmp_path):
    folder = folder_of("untied", tmp_path / "model")
    description = 'model = lambda: models.get_model_from_catalog("TransformerTiny")\n'
    (folder / "model_description.py").write_text(description)
    assert opennmt_tf_folder.read(folder).config.model.num_heads == 2


def write_weights(folder, arrays):
    """Writes the checkpoint of a folder again with these arrays."""
    names = [f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in arrays]
    tf.raw_ops.SaveV2(
        prefix=str(folder / "ckpt-7"),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[*map(tf.constant, arrays.values())],
    )


def edit_text(name, old, new):
    def edit(folder):
        text = (folder / name).read_text("utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), "utf-8")

    return edit


def test_options_of_the_search_that_are_not_read_are_named(tmp_path):
    folder = folder_of("shared", tmp_path / "model")
    edit_text(
        "data.yml", '"params": {', '"params": {"coverage_penalty": 0.2, "sampling_topk": 1, '
    )(folder)
    notes = opennmt_tf_folder.read(folder, num_heads=4).notes
    assert notes[1:] == ["data.yml: not read, so translations may differ: coverage_penalty"]


def remove(name):
    return lambda folder: (folder / name).unlink()


DATA = "ckpt-7.data-00000-of-00001"
BROKEN = {
    "no folder": (shutil.rmtree, "--opennmt_tf .* is not a folder"),
    "no checkpoint": (remove("checkpoint"), "has no checkpoint"),
    "no data": (remove(DATA), "ckpt-7 cannot be read"),
    "cut short": (
        lambda x: (x / DATA).write_bytes((x / DATA).read_bytes()[:9000]),
        "ckpt-7 cannot be read",
    ),
    "no options": (remove("data.yml"), "must have one .yml file"),
    "a list": (lambda x: (x / "data.yml").write_text("[1]"), "data.yml must hold options"),
    "no vocabulary named": (
        edit_text("data.yml", "target_vocabulary", "target_words"),
        "data.yml: data must have target_vocabulary, got None",
    ),
    "no vocabulary": (remove("target.vocab"), "target.vocab cannot be read"),
    "fewer tokens": (edit_text("source.vocab", "▁the\n", ""), "source.vocab has .* tokens, and"),
    "a start of sources": (
        edit_text(
            "data.yml", '"data": {', '"data": {"source_sequence_controls": {"start": true}, '
        ),
        "source_sequence_controls must have no start",
    ),
    "a beam of words": (edit_text("data.yml", ": 3", ': "wide"'), "beam_width must be a number"),
    "no pieces": (remove("source.spm"), "has no SentencePiece model"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_folder_that_cannot_be_imported_is_an_error_and_leaves_nothing(fault, tmp_path):
    folder = folder_of("untied", tmp_path / "model")
    make_fault, message = BROKEN[fault]
    make_fault(folder)
    run_dir = str(tmp_path / "runs" / "x")
    with pytest.raises(InputError, match=message):
        import_model.main(opennmt_tf=str(folder), num_heads=HEADS, run_dir=run_dir)
    assert not (tmp_path / "runs").exists()


def test_unknown_heads_are_an_error(tmp_path):
    with pytest.raises(InputError, match="give the number of attention heads with --num_heads"):
        opennmt_tf_folder.read(folder_of("untied", tmp_path / "model"))


GAMMA = "model/decoder/layers/0/ffn/input_layer_norm/gamma"
INNER = "model/encoder/layers/1/ffn/layer/inner/kernel"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({GAMMA: np.full(16, np.nan, np.float32)}, f"{GAMMA} has values that are not finite"),
        ({GAMMA: None}, f"have no {GAMMA}"),
        ({INNER: np.ones((16, 5), np.float32)}, rf"{INNER} has the shape \(16, 5\), and the"),
        ({SOURCE: None}, "is not a checkpoint of a Transformer of OpenNMT-tf 2"),
        ({SOURCE: np.ones((3, 9), np.float32)}, "must be a matrix for size 9"),
        ({BIAS: np.ones(3, np.float32)}, f"{BIAS} must have .* numbers, one for each token"),
        (
            {"model/encoder/position_encoder/embedding": np.ones((9, 16), np.float32)},
            r"does not understand: model/encoder/position_encoder/embedding\. Is it",
        ),
    ],
    ids=["NaN", "missing", "shape", "no Transformer", "size", "bias", "learned positions"],
)
def test_wrong_weights_are_an_error(change, message, tmp_path):
    folder = folder_of("untied", tmp_path / "model")
    arrays = opennmt_tf_folder.read_checkpoint(folder)[0] | change
    write_weights(folder, {name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(InputError, match=message):
        opennmt_tf_folder.read(folder, num_heads=HEADS)
