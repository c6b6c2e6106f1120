"""Predictors in int8."""

import numpy as np
import pytest

from tf_transformer.errors import InputError
from tf_transformer.export import manifest
from tf_transformer.inference.dtypes import dtype_of, with_dtype
from tf_transformer.inference.saved_translator import SavedTranslator
from tf_transformer.inference.translator import Translator
from tf_transformer.models.names import by_name
from tf_transformer.models.transformer import Transformer

TEXTS = ["seven hundred", "twenty-one", "", "nine hundred and ninety-nine thousand"]


@pytest.fixture(autouse=True)
def every_matrix(monkeypatch):
    """The models of tests are small, so they have no matrix that would gain time."""
    monkeypatch.setattr("tf_transformer.layers.int8.SMALLEST_INT8_MATRIX", 1)


@pytest.fixture
def translator(run):
    return Translator.from_run(run, beam_size=2, num_hypotheses=2)


def test_every_matrix_is_int8_and_no_float_copy_is_left(translator):
    small = by_name(translator.with_dtype("int8").model)
    assert {x.dtype for x in small.values() if len(x.shape) == 2} == {"int8"}
    for name, weight in by_name(translator.model).items():
        values = np.asarray(weight.value)
        if len(weight.shape) < 2:
            np.testing.assert_array_equal(small[name].value, values)
            continue
        rows = values.T if name.endswith("/kernel") else values
        scale = np.asarray(small[f"{name}/highest"].value)[:, None] / 127
        restored = np.asarray(small[f"{name}/integers"].value) * scale
        assert (np.abs(restored - rows) <= scale * 0.501).all()


def test_scores_are_near_those_of_float32(translator):
    small = translator.with_dtype("int8")
    targets = [prediction.text for prediction in translator(TEXTS)]
    pairs = zip(translator.score(TEXTS, targets), small.score(TEXTS, targets), strict=True)
    differences = [abs(a.log_probability - b.log_probability) for a, b in pairs]
    assert 0 < max(differences) < 0.5


def test_a_sentence_gets_the_same_translation_in_any_batch(translator):
    small = translator.with_dtype("int8")
    together = small.n_best(TEXTS)
    for text, expected in zip(TEXTS, together, strict=True):
        (alone,) = small.n_best([text])
        assert [x.text for x in alone] == [x.text for x in expected]
        np.testing.assert_allclose([x.score for x in alone], [x.score for x in expected], atol=0.01)


@pytest.mark.slow
def test_a_saved_model_gives_the_strings_of_python(translator, tmp_path):
    small = translator.with_dtype("int8")
    small.save(tmp_path / "1")
    saved = SavedTranslator(tmp_path / "1")
    assert [x.text for x in saved(TEXTS)] == [x.text for x in small(TEXTS)]
    needs = manifest.check(tmp_path / "1", jit_compile=False)
    assert "_QuantizedMatMul" in needs.ops
    assert needs.lowest_server == "2.17"  # the first TensorFlow that has the operation
    stored = sum(path.stat().st_size for path in (tmp_path / "1" / "variables").iterdir())
    floats = sum(np.asarray(weight.value).nbytes for weight in translator.model.weights)
    assert stored < 0.75 * floats  # in so small a model, scales and names count


def test_int8_is_made_from_float_weights_only(translator):
    small = translator.with_dtype("int8")
    assert dtype_of(small.model) == "int8"
    assert small.with_dtype("int8") is small
    with pytest.raises(InputError, match="expected a float32 model to make it bfloat16, got int8"):
        small.with_dtype("bfloat16")


def test_an_unknown_dtype_is_refused():
    model = Transformer(vocabulary_size=11)
    model.build()
    with pytest.raises(InputError, match="must be one of float32, bfloat16, int8, got int4"):
        with_dtype(model, "int4")


def test_small_matrices_stay_float32(monkeypatch):
    monkeypatch.setattr("tf_transformer.layers.int8.SMALLEST_INT8_MATRIX", 128 * 256)
    model = Transformer(vocabulary_size=11)
    model.build()
    dtypes = {name: x.dtype for name, x in by_name(with_dtype(model, "int8")).items()}
    assert dtypes["encoder/layer_0/feed_forward/hidden/kernel/integers"] == "int8"
    assert dtypes["encoder/layer_0/self_attention/output/kernel"] == "float32"
