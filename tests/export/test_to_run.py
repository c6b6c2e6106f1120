"""--format run: the averaged weights of a run in a folder that commands take as --run_dir."""

import ml_dtypes  # noqa: F401  gives NumPy bfloat16
import numpy as np
import pytest
from conftest import small_config, weights_of

from tf_transformer.commands import export
from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.training import trainer


@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "bfloat16"])
def test_a_small_folder_has_the_weights_of_the_run(run, tmp_path, dtype):
    folder = tmp_path / "small"
    export.main(str(run), str(folder), dtype=dtype, format="run", beam_size=2)
    for one, other in zip(weights_of(run, average=5), weights_of(folder), strict=True):
        np.testing.assert_array_equal(one.astype(dtype).astype("float32"), other)
    found = Translator.from_run(folder)
    assert RunFolder(folder).load_config().decode.beam_size == 2
    texts = RunFolder(run).load_samples()
    assert texts == RunFolder(folder).load_samples()
    if dtype == "float32":
        assert found(texts) == Translator.from_run(run, beam_size=2)(texts)


def test_it_is_half_as_large_in_bfloat16(run, tmp_path):
    sizes = []
    for dtype in ("float32", "bfloat16"):
        export.main(str(run), str(tmp_path / dtype), dtype=dtype, format="run")
        files = (tmp_path / dtype / "checkpoints").rglob("*.data*")
        sizes.append(sum(path.stat().st_size for path in files))
    assert sizes[1] == pytest.approx(sizes[0] / 2, rel=0.1)


def test_a_training_can_start_with_it(run, tmp_path):
    export.main(str(run), str(tmp_path / "small"), format="run")
    config = small_config(steps=1, init_from=str(tmp_path / "small"), learning_rate=1e-9)
    trainer.train(Run.at(tmp_path / "tuned", config))
    for one, other in zip(weights_of(run, average=5), weights_of(tmp_path / "tuned"), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("options", [{"jit_compile": True}, {"quantization": "int8"}])
def test_options_of_other_formats_are_refused(run, tmp_path, options):
    with pytest.raises(InputError, match=r"--format (saved_model|ctranslate2)"):
        export.main(str(run), str(tmp_path / "small"), format="run", **options)
    assert not (tmp_path / "small").exists()
