"""Padding anywhere in a row changes nothing, and what is no tensor of ids is an error.

Oracle: each row alone, without padding.
"""

import keras
import numpy as np
import pytest
import reference

from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.models.encoder_only import Classifier, MaskedLanguageModel, TextEncoder
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.models.padding import put_back, tokens_first
from tf_transformer.models.recurrent import RecurrentModel
from tf_transformer.models.transformer import Transformer

V, LENGTH = 20, 9
SIZES = {"num_layers": 1, "d_model": 8, "d_ff": 16, "num_heads": 2}
TWO_INPUTS = {
    "transformer": lambda: Transformer(V, ModelConfig(**SIZES)),
    "learned": lambda: Transformer(V, ModelConfig(**SIZES, position="learned", max_length=LENGTH)),
    "rotary": lambda: Transformer(V, ModelConfig(**SIZES, position="rotary")),
    "local": lambda: Transformer(V, ModelConfig(**SIZES, attention="local", attention_window=2)),
    "bahdanau": lambda: RecurrentModel(V, ModelConfig(**SIZES, architecture="bahdanau")),
    "luong": lambda: RecurrentModel(V, ModelConfig(**SIZES, architecture="luong")),
}
ONE_INPUT = {
    "language_model": lambda: LanguageModel(V, ModelConfig(**SIZES)),
    "masked": lambda: MaskedLanguageModel(V, ModelConfig(**SIZES)),
    "encoder": lambda: TextEncoder(V, ModelConfig(**SIZES)),
    "classifier": lambda: Classifier(V, ["a", "b", "c"], ModelConfig(**SIZES)),
}
ALL = TWO_INPUTS | ONE_INPUT
SIDES = ["front", "end", "both", "anywhere"]


def rows(seed, side):
    """Tokens of six rows, and the rows with padding on a side, the last of padding alone."""
    rng = np.random.default_rng(seed)
    tokens = [rng.integers(1, V, rng.integers(1, LENGTH + 1)) for _ in range(5)] + [np.zeros(0)]
    padded = np.zeros((6, LENGTH), np.int32)
    for row, ids in zip(padded, tokens, strict=True):
        spare = LENGTH - len(ids)
        start = {"front": spare, "end": 0, "both": spare // 2}.get(side)
        places = np.sort(rng.permutation(LENGTH)[: len(ids)])
        row[places if start is None else np.arange(start, start + len(ids))] = ids
    return [ids.astype(np.int32) for ids in tokens], padded


def alone(model, *columns):
    """The outputs for each row without padding, but for the row without tokens."""
    return [
        np.asarray(model(ids[0][None] if len(ids) == 1 else tuple(x[None] for x in ids)))[0]
        for ids in zip(*columns, strict=True)
        if len(ids[0]) and len(ids[-1])
    ]


@pytest.mark.parametrize(
    ("name", "side"),
    [
        *(("transformer", side) for side in ("anywhere", "front", "both")),
        *((name, "anywhere") for name in ("rotary", "bahdanau", *ONE_INPUT)),
        *(
            pytest.param(name, "anywhere", marks=pytest.mark.slow)
            for name in ("learned", "local", "luong")
        ),
    ],
)
def test_padding_changes_nothing_on_any_side_eagerly_and_in_a_graph(name, side):
    keras.utils.set_random_seed(1)
    model = ALL[name]()
    model.build((None, None))
    columns = [rows(seed, side) for seed in ((1, 2) if name in TWO_INPUTS else (3,))]
    expected = alone(model, *(tokens for tokens, _ in columns))
    inputs = tuple(padded for _, padded in columns)
    inputs = inputs if name in TWO_INPUTS else inputs[0]
    outputs = [np.asarray(model(inputs))]
    if isinstance(model, keras.Model):
        outputs.append(model.predict(inputs, verbose=0))
    for output in outputs:
        for row, (one, ids) in enumerate(zip(expected, columns[-1][1], strict=False)):
            found = output[row] if name == "classifier" else output[row][ids != 0]
            np.testing.assert_allclose(found, one, atol=2e-6)
        assert np.isfinite(output).all()


@pytest.mark.parametrize("name", ["transformer", "language_model", "classifier"])
def test_fit_learns_the_same_from_padding_on_any_side(name):
    """Weights after an update, from logits that are compared at tokens alone."""
    weights = []
    for side in ("end", "front"):
        keras.utils.set_random_seed(1)
        model = ALL[name]()
        model.build()
        model.compile(
            keras.optimizers.SGD(0.1),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0),
            jit_compile=reference.FIT_COMPILES,
        )
        inputs = tuple(rows(seed, side)[1] for seed in (1, 2))
        x = inputs if name in TWO_INPUTS else inputs[1]
        y = np.arange(6) % 2 + 1 if name == "classifier" else inputs[1]
        model.fit(x, y, batch_size=6, verbose=0)
        weights.append(model.get_weights())
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("side", SIDES)
def test_rows_return_to_their_places(side):
    """Oracle: NumPy's boolean indexing."""
    tokens, padded = rows(4, side)
    ids, places = map(np.asarray, tokens_first(keras.ops.convert_to_tensor(padded), V))
    for row, expected in zip(ids, tokens, strict=True):
        np.testing.assert_array_equal(row, np.pad(expected, (0, LENGTH - len(expected))))
    vectors = np.stack([ids, ids + 1], -1).astype("float32")
    returned = np.asarray(put_back(keras.ops.convert_to_tensor(vectors), places))
    np.testing.assert_array_equal(returned, np.stack([padded, padded + 1], -1))


WRONG = {
    "negative": np.array([[5, -1]]),
    "beyond the vocabulary": np.array([[5, V]]),
    "float": np.array([[5.0, 6.0]], "float32"),
    "bool": np.array([[True, False]]),
    "one axis": np.array([5, 6]),
    "three axes": np.array([[[5, 6]]]),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ALL)
def test_what_is_no_tensor_of_ids_is_an_error(name, wrong):
    model, right = ALL[name](), np.array([[5, 6]])
    model.build((None, None))
    values = WRONG[wrong]
    for inputs in [(values, right), (right, values)] if name in TWO_INPUTS else [values]:
        with pytest.raises(InputError, match="expected ids "):
            model(inputs)


@pytest.mark.parametrize("name", ALL)
def test_empty_batches_and_rows_of_padding_have_outputs(name):
    model = ALL[name]()
    model.build((None, None))
    for ids in (np.zeros((0, 3), np.int32), np.zeros((2, 3), np.int32)):
        output = np.asarray(model((ids, ids) if name in TWO_INPUTS else ids))
        assert len(output) == len(ids)
        assert np.isfinite(output).all()


@pytest.mark.parametrize("name", [*TWO_INPUTS, *ONE_INPUT])
def test_a_run_with_padding_before_a_token_is_an_error(name):
    model, ids = ALL[name](), np.array([[0, 5, 6]])
    model.build((None, None))
    if not hasattr(model, "run"):
        model = model.encoder
    with pytest.raises(InputError, match=r"got padding \(id 0\) before a token\. Pad with"):
        model.run((ids, ids) if name in TWO_INPUTS else ids)
