"""Every tuned kernel gives the values and gradients of its plain form.

`CASES` has inputs for each field of `Kernels`. Those of the set `XLA` run compiled by XLA.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import reference
from keras import ops

from tf_transformer.decoding import NEG_INF
from tf_transformer.kernels import PLAIN, TUNED, XLA, Kernels
from tf_transformer.kernels.attention import attention, plain_attention
from tf_transformer.kernels.consistency import ConsistencyWeights
from tf_transformer.kernels.linear_attention import CHUNK
from tf_transformer.kernels.local_attention import Window
from tf_transformer.kernels.static_attention import plain_static_attention
from tf_transformer.machine.thresholds import FEW_QUERIES

ON_JAX = keras.backend.backend() == "jax"


class Case(NamedTuple):
    """Inputs of one kernel.

    Attributes:
        arrays: float arrays, its first arguments; gradients are compared for each.
        arguments: the other arguments.
        labels: int array, an argument before `arrays`.
    """

    arrays: Sequence[np.ndarray]
    arguments: dict[str, Any] = {}  # noqa: RUF012
    labels: np.ndarray | None = None

    def outputs(self, form: Callable, arrays: Sequence, dtype="float32") -> list:
        """All outputs of a form, in float32."""
        arrays = [ops.cast(x, dtype) for x in arrays]
        first = [] if self.labels is None else [ops.convert_to_tensor(self.labels)]
        found = keras.tree.flatten(form(*first, *arrays, **self.arguments))
        return [ops.cast(output, "float32") for output in found]


def weighted_sum(outputs) -> Any:
    """A scalar that depends on each number of each output in another way; sizes may be unknown."""
    total = 0.0
    for i, x in enumerate(keras.tree.flatten(outputs)):
        weights = ops.sin(ops.cast(ops.arange(ops.size(x)), "float32") + i)
        total += ops.sum(ops.reshape(x, (-1,)) * weights)
    return total


def run(function: Callable, arrays: Sequence, jit_compile: bool, growing: bool):
    """`function(*arrays)` and the gradients of its `weighted_sum`.

    Under XLA if `jit_compile`. With `growing`, arrays are queries, keys and values in turn, and
    TensorFlow does not know the number of keys, as in a step with a cache that grows.
    """
    if ON_JAX:
        import jax

        def with_sum(*arrays):
            outputs = function(*arrays)
            return weighted_sum(outputs), outputs

        differentiated = jax.value_and_grad(with_sum, range(len(arrays)), has_aux=True)
        (_, outputs), gradients = jax.jit(differentiated)(*arrays)
        return outputs, gradients
    if keras.backend.backend() == "torch":
        import torch

        tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
        outputs = function(*tensors)
        return outputs, torch.autograd.grad(weighted_sum(outputs), tensors)
    import tensorflow as tf

    def with_gradients(*arrays):
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            outputs = function(*arrays)
            total = weighted_sum(outputs)
        return outputs, tape.gradient(total, arrays)

    if jit_compile:
        with_gradients = tf.function(with_gradients, jit_compile=True, autograph=False)
    elif growing:
        shapes = [
            (*x.shape[:2], None, x.shape[3]) if i % 3 else x.shape for i, x in enumerate(arrays)
        ]
        signature = [tf.TensorSpec(shape) for shape in shapes]
        with_gradients = tf.function(with_gradients, signature, autograph=False)
    return with_gradients(*map(tf.constant, arrays))


def results(
    form, cases, dtype="float32", jit_compile=ON_JAX, growing=False
) -> dict[str, list[np.ndarray]]:
    """Values, and gradients of the arrays, of each case of a kernel.

    All cases run in one function, because compiling takes seconds.
    """

    def by_case(values) -> dict[str, list]:
        values = iter(values)
        return {name: [next(values) for _ in case.arrays] for name, case in cases.items()}

    def outputs(*arrays):
        own = by_case(arrays)
        return {name: case.outputs(form, own[name], dtype) for name, case in cases.items()}

    arrays = [x for case in cases.values() for x in case.arrays]
    values, gradients = run(outputs, arrays, jit_compile, growing)
    gradients = by_case(gradients)
    return {name: [*map(reference.array, [*values[name], *gradients[name]])] for name in cases}


@functools.cache
def plain_results(field) -> dict[str, list[np.ndarray]]:
    return results(getattr(PLAIN, field), CASES[field])


def numbers(*shape, seed=1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.2, 1.0, shape).astype("float32")


def random_mask(*shape) -> np.ndarray:
    mask = np.random.default_rng(2).random(shape) < 0.5
    mask[..., 0] = True
    return mask


def heads(
    queries, keys, batch=2, num_heads=3, key_dim=5, value_dim=7, groups=None
) -> list[np.ndarray]:
    groups = groups or num_heads
    sizes = [(num_heads, queries, key_dim), (groups, keys, key_dim), (groups, keys, value_dim)]
    return [numbers(batch, *size, seed=i) for i, size in enumerate(sizes, 1)]


def static(query, key, value) -> list[np.ndarray]:
    """Keys (B·G, K, S) and values (B·G, S, K), see `StaticArrays`."""
    key, value = (x.reshape(-1, *x.shape[2:]) for x in (key, value))
    return [query, key.swapaxes(1, 2), value]


MANY = FEW_QUERIES + 1


def attention_cases(queries: int, groups_in_turn: tuple[int, int]) -> dict[str, Case]:
    full = (2, 3, queries, 6)
    arguments: dict[str, dict] = {
        "": {},
        "mask per key": {"mask": random_mask(2, 1, 1, 6)},
        "no key allowed": {"mask": np.zeros((2, 1, 1, 6), bool)},
        "bias of one row": {"bias": numbers(1, 3, 1, 6, seed=7)},
        "mask and bias": {"mask": random_mask(*full), "bias": numbers(*full, seed=7)},
    }
    return {
        f"{queries} queries, {name}, {groups} groups": Case(heads(queries, 6, groups=groups), each)
        for (name, each), groups in zip(
            arguments.items(), itertools.cycle(groups_in_turn), strict=False
        )
    }


def static_case(case: Case) -> Case:
    groups = case.arrays[1].shape[1]
    return Case(static(*case.arrays), {"groups": groups} | case.arguments)


ATTENTION = {
    **attention_cases(1, (1, 3)),
    **attention_cases(3, (3, 1)),
    **attention_cases(MANY, (1, 3)),
}
DROPOUT_ON_WEIGHTS = {
    "dropout": Case(
        heads(3, 6), {"dropout": lambda weights: ops.where(random_mask(2, 3, 3, 6), weights, 0.0)}
    )
}


def distance_bias(query, query_positions, key_positions):
    """Depends on the query and on the difference of positions, like that of Shaw et al."""
    differences = key_positions[:, None, :] - query_positions[None, :, None]
    slopes = ops.sum(query, axis=-1, keepdims=True)  # (B, H, T, 1)
    return slopes * ops.cast(differences, query.dtype)[:, None]


def sequence_case(length: int, has_mask=True, **arguments) -> Case:
    """Of self-attention; one sentence has padding on the left, and the other has no key at all."""
    hidden = np.arange(length)[None] >= np.array([[length // 2], [length]])
    mask = {"mask": hidden & random_mask(2, length)} if has_mask else {}
    return Case(heads(length, length), arguments | mask)


def quarter_turn(x):
    """A rotation by the position: even ones stay."""
    odd = ops.cast(ops.arange(ops.shape(x)[2]) % 2, x.dtype)[:, None]
    return x * (1 - odd) + ops.roll(x, 1, axis=3) * odd


CAUSAL, BOTH_SIDES = Window(3, 0), Window(2, 2)
LOCAL = {
    "causal": sequence_case(11, False, window=CAUSAL),
    "causal, mask, bias": sequence_case(8, window=CAUSAL, bias=distance_bias),
    "both sides": sequence_case(7, window=BOTH_SIDES),
    "longer after": sequence_case(7, False, window=Window(1, 3), bias=distance_bias),
    "shorter than the window": sequence_case(2, window=CAUSAL),
}
STRIDED = {
    "causal": sequence_case(11, window=CAUSAL, stride=4),
    "both sides": sequence_case(9, False, window=BOTH_SIDES, stride=4, bias=distance_bias),
    "shorter than the window": sequence_case(3, window=CAUSAL, stride=4),
}
LINEAR = {
    "causal": sequence_case(CHUNK + 3, is_causal=True, rotate=quarter_turn),
    "causal, one chunk": sequence_case(5, False, is_causal=True),
    "both sides": sequence_case(7, is_causal=False, rotate=quarter_turn),
}


def rank_case(groups, rows, size, k, has_totals=True) -> Case:
    values = [2 * numbers(groups, rows, size), 3 * numbers(groups, rows, seed=2)]
    if has_totals:
        return Case(values, {"k": k})
    return Case(values[:1], {"totals": None, "k": k})


CASES: dict[str, dict[str, Case]] = {
    "attention": ATTENTION | DROPOUT_ON_WEIGHTS,
    "static_attention": {name: static_case(case) for name, case in ATTENTION.items()},
    "local_attention": LOCAL,
    "strided_attention": STRIDED,
    "linear_attention": LINEAR,
    "linear_recurrence": {
        f"{length} positions": Case([numbers(2, length, 5), numbers(2, length, 5, seed=2)])
        for length in (1, 2, 7)
    },
    "layer_norm": {
        f"{leading}, ε={epsilon}": Case(
            [2 * numbers(*leading, 7), numbers(7, seed=2), numbers(7, seed=3)],
            {"epsilon": epsilon},
        )
        for leading in [(), (5,), (2, 3)]
        for epsilon in (1e-6, 0.1)
    },
    "rms_norm": {
        f"{leading}": Case([2 * numbers(*leading, 7), numbers(7, seed=2)], {"epsilon": 0.1})
        for leading in [(), (2, 3)]
    },
    "cross_entropy": {
        f"{tokens} tokens of {size}, ε={epsilon}": Case(
            [numbers(tokens, 11), numbers(size, 11, seed=2)],
            {"label_smoothing": epsilon},
            np.random.default_rng(3).integers(0, size, tokens).astype("int32"),
        )
        for tokens, size in [(1, 2), (5, 7), (40, 640)]
        for epsilon in (0.0, 0.1, 0.9)
    },
    "consistency": {
        f"{tokens} tokens of {size}, {weights}": Case(
            [*(numbers(tokens, 11, seed=seed) for seed in (1, 2)), numbers(size, 11, seed=3)],
            {"label_smoothing": 0.1, "weights": ConsistencyWeights(*weights)},
            np.random.default_rng(4).integers(0, size, tokens).astype("int32"),
        )
        for tokens, size in [(1, 2), (5, 7)]
        for weights in [(1.0, 0.0, 3.0, 0.0), (0.5, 0.5, 1.2, 1.3), (0.0, 0.7, 0.0, 2.0)]
    },
    "matmul_transposed": {
        f"{leading}": Case([numbers(*leading, 4, 5), numbers(*leading, 6, 5, seed=2)])
        for leading in [(), (3,), (2, 3)]
    },
    "top_k": {
        f"{k} of {shape}": Case([numbers(*shape)], {"k": k})
        for shape, k in [((8000,), 5), ((3, 2, 7000), 11), ((4, 131), 4), ((2, 37), 37)]
    },
    "rank_tokens": {
        "one row": rank_case(3, 1, 8000, 5, has_totals=False),
        "one row with a total": rank_case(3, 1, 8000, 5),
        "four rows": rank_case(2, 4, 8000, 11),
        "four rows without totals": rank_case(2, 4, 640, 20, has_totals=False),
        "few tokens": rank_case(3, 2, 6, 9),
        "all tokens": rank_case(1, 3, 7, 21),
    },
    "gather": {
        "rows": Case([numbers(5, 2)], {"indices": np.array([4, 0, 4], "int32")}),
        **{
            f"axis {axis} of each": Case(
                [numbers(2, 3, 5, 7)],
                {"indices": np.array([[2, 0, 2, 1], [1, 1, 0, 2]], "int32")}
                | {"axis": axis, "batch_dims": 1},
            )
            for axis in (1, 2)
        },
    },
}
IN_HALF_PRECISION = {"attention", "static_attention", "cross_entropy", "matmul_transposed"}


def assert_near(found, expected, tolerance, case=""):
    """To a tolerance relative to the largest number."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape, case
        scale = max(np.abs(other).max(initial=0), 1.0)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale, err_msg=case)


def test_every_kernel_has_cases():
    assert set(CASES) | {"dropout"} == set(Kernels._fields)


def product(a, b, transposed):
    return ops.matmul(a, ops.swapaxes(b, -1, -2) if transposed else b)


STEPS = TUNED._replace(attention=functools.partial(attention, in_steps=product))


def forms() -> list:
    """(field, kernels); slow: a form of `XLA` that is also that of `TUNED`, compiled."""
    return [
        pytest.param("attention", STEPS, id="attention-steps"),
        *(
            pytest.param(
                *(field, kernels),
                id=f"{field}-{name}",
                marks=pytest.mark.slow if kernels is XLA and is_in_both else (),
            )
            for field in CASES
            for is_in_both in [getattr(XLA, field) is getattr(TUNED, field)]
            for name, kernels in (("tuned", TUNED), ("xla", XLA))
        ),
    ]


@pytest.mark.parametrize(("field", "kernels"), forms())
def test_values_and_gradients_equal_those_of_the_plain_form(field, kernels):
    form = getattr(kernels, field)
    if ON_JAX and kernels is XLA and form is getattr(TUNED, field):
        pytest.skip("on JAX both are compiled")
    jit_compile = ON_JAX or kernels is XLA
    found = results(form, CASES[field], jit_compile=jit_compile, growing=field == "attention")
    for name, expected in plain_results(field).items():
        assert_near(found[name], expected, 1e-5, name)


@pytest.mark.parametrize("field", sorted(IN_HALF_PRECISION))
def test_in_bfloat16_values_and_gradients_are_near_those_of_the_plain_form_in_float32(field):
    """Bfloat16 has 8 bits: a relative error of 1/256 per operation. Inputs are exact."""
    some = 3 if field == "attention" else 1  # its cases are many
    cases = {
        name: case._replace(arrays=[np.float32(in_bfloat16(x)) for x in case.arrays])
        for name, case in list(CASES[field].items())[::some]
    }
    expected = results(getattr(PLAIN, field), cases)
    found = results(getattr(TUNED, field), cases, "bfloat16", growing=field == "attention")
    for name in cases:
        one, other = found[name], expected[name]
        if field == "cross_entropy":  # rounding may change which logit is the largest
            one, other = [*one[:2], *one[3:]], [*other[:2], *other[3:]]
        assert_near(one, other, 0.05, name)


def in_bfloat16(x: np.ndarray) -> np.ndarray:
    return reference.array(ops.cast(x, "bfloat16"))


@pytest.mark.parametrize("form", [PLAIN, TUNED, XLA], ids=["plain", "tuned", "xla"])
@pytest.mark.parametrize("size", [640, 37])
def test_impossible_hypotheses_rank_last(form, size):
    """As in the first step of a beam search: one hypothesis is possible."""
    logits, totals = 2 * numbers(3, 4, size), np.float32([[0, NEG_INF, NEG_INF, NEG_INF]] * 3)
    values, indices = form.rank_tokens(*map(ops.convert_to_tensor, (logits, totals)), k=size + 5)
    log_p = np.log(reference.softmax(logits[:, 0].astype("float64")))
    order = np.argsort(-log_p, axis=-1)
    np.testing.assert_array_equal(reference.array(indices)[:, :size], order)
    np.testing.assert_allclose(
        reference.array(values)[:, :size], np.take_along_axis(log_p, order, axis=-1), atol=1e-5
    )
    assert (reference.array(values)[:, size:] < NEG_INF / 2).all()


# Layouts of attention


@pytest.mark.parametrize("case", ATTENTION.values(), ids=ATTENTION)
def test_attention_in_the_static_layout_equals_plain_attention(case):
    expected = case.outputs(plain_attention, case.arrays)
    static = static_case(case)
    outputs = static.outputs(plain_static_attention, static.arrays)
    assert_near([*map(reference.array, outputs)], [*map(reference.array, expected)], 1e-6)


# Dropout is random: its distribution is compared. `layers/test_dropout.py` has more on the tuned.

each_form_of_dropout = pytest.mark.parametrize(
    "form", [PLAIN.dropout, TUNED.dropout], ids=["plain", "tuned"]
)


@each_form_of_dropout
@pytest.mark.parametrize("rate", [0.1, 0.25, 0.9])
def test_dropout_keeps_the_mean_and_drops_at_the_rate(form, rate):
    x = ops.full((50, 100), 3.0)
    seed = keras.random.SeedGenerator(1)
    calls = np.stack([reference.array(form(x, rate, seed)) for _ in range(100)])
    # The tuned form rounds each call's rate to a multiple of 1/256.
    error = np.sqrt(rate * (1 - rate) / calls.size) + 1 / 512 / np.sqrt(len(calls))
    assert abs((calls == 0).mean() - rate) < 4 * error
    assert abs(calls.mean() / 3 - 1) < 4 * error / (1 - rate)
    for call in calls:
        assert len(np.unique(call)) == 2


@each_form_of_dropout
def test_the_gradient_of_dropout_is_the_noise(form):
    x = numbers(20, 30)

    def noise_times(values):
        return form(values, 0.3, keras.random.SeedGenerator(1))

    noise = reference.array(noise_times(ops.ones(x.shape)))
    upstream = ops.convert_to_tensor(numbers(20, 30, seed=2))
    (found,) = reference.gradients(lambda values: ops.sum(noise_times(values) * upstream), x)
    np.testing.assert_allclose(found, noise * reference.array(upstream), rtol=1e-6)
    np.testing.assert_allclose(
        reference.array(noise_times(ops.convert_to_tensor(x))), noise * x, rtol=1e-6
    )
