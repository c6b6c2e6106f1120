"""How far an export may differ from the run it came from."""

import types

import pytest

from tf_transformer.export.check import Answer, compare


@pytest.mark.parametrize(
    ("dtype", "sampling", "shift", "most"),
    [
        ("float32", False, 0.0009, 0),
        ("float32", True, 0.0009, 1),
        ("bfloat16", False, 0.09, 5),
        ("bfloat16", True, 0.09, 10),
    ],
)
@pytest.mark.parametrize(
    "wrong", [Answer("wrong", [-1.0, -2.0]), Answer("x", [-1.0, -2.2]), Answer("x", [-1.0])]
)
def test_as_far_as_rounding_goes(dtype, sampling, shift, most, wrong):
    """Ten sentences, all scores a little off, and some answers that are wrong."""
    translator = types.SimpleNamespace(
        model=types.SimpleNamespace(compute_dtype=dtype),
        config=types.SimpleNamespace(sampling=sampling),
    )
    expected = [Answer("x", [-1.0, -2.0])] * 10

    def compare_with(count: int) -> None:
        found = [wrong] * count + [Answer("x", [-1.0 + shift, -2.0])] * (10 - count)
        compare("n_best", translator, list("abcdefghij"), expected, found)

    compare_with(most)
    if most < 10:
        message = f"the export differs .* in n_best {most + 1} of 10 times. Source: 'a'; run: 'x' "
        with pytest.raises(RuntimeError, match=message):
            compare_with(most + 1)
