"""The choice between an export with and without XLA."""

import pytest

from tf_transformer.errors import InputError
from tf_transformer.export import compilation
from tf_transformer.run.run import Run

WORK = {"texts": ["two", "", "one hundred"], "dtype": "float32", "decode_options": {}}


@pytest.mark.parametrize(("plain", "compiled"), [(1.0, 2.0), (2.0, 1.0)])
def test_the_form_that_takes_less_time_is_chosen(run, monkeypatch, capsys, plain, compiled):
    monkeypatch.setattr(
        compilation, "_measure", lambda work: compiled if work["jit_compile"] else plain
    )
    assert compilation.is_faster_compiled(Run.load(run), "float32") == (compiled < plain)
    assert f"{plain:.3g} s, {compiled:.3g} s with XLA" in capsys.readouterr().out


@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_form_is_measured_in_another_process(run, jit_compile):
    work = WORK | {"run_dir": str(run), "jit_compile": jit_compile}
    assert 0 < compilation._measure(work) < 60


def test_what_cannot_be_measured_is_an_error(tmp_path):
    work = WORK | {"run_dir": str(tmp_path), "jit_compile": False}
    with pytest.raises(InputError, match=r"cannot measure: .*is not a run's folder.* Give --jit_c"):
        compilation._measure(work)
