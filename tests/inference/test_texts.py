"""The texts that any door of a predictor takes: every ordered iterable, and nothing else."""

import collections
import contextlib
import io
import os

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from tf_transformer.errors import InputError
from tf_transformer.inference.inputs import as_texts
from tf_transformer.inference.translator import SavedTranslator, Translator

TEXTS = ["two", "", "one hundred and five"]


class Series:
    """A column of a table as pandas has it: it iterates by place, and indexes by label."""

    ndim = 1

    def __init__(self, texts):
        self._texts = list(texts)

    def __len__(self):
        return len(self._texts)

    def __iter__(self):
        return iter(self._texts)

    def __getitem__(self, label):
        return self._texts[-1 - label] if label else self._texts[99]


ITERABLES = {
    "tuple": tuple,
    "objects": lambda texts: np.array([*texts, None], object)[:-1],
    "strings": lambda texts: np.array(texts, np.str_) if "\0" not in "".join(texts) else texts,
    "bytes": lambda texts: [text.encode() for text in texts],
    "tensor": lambda texts: tf.constant([text.encode() for text in texts], tf.string),
    "dataset": lambda texts: tf.data.Dataset.from_tensor_slices(
        tf.constant([text.encode() for text in texts], tf.string)
    ),
    "series": Series,
    "generator": lambda texts: (text for text in texts),
    "deque": collections.deque,
    "values": lambda texts: dict(enumerate(texts)).values(),
}
OTHERS = {
    "text": ("one", r"expected a list of texts, got one text \(str\)"),
    "bytes": (b"one", r"expected a list of texts, got one text \(bytes\)"),
    "none": (None, "got NoneType"),
    "number": (3, "got int"),
    "mapping": ({"one": "two"}, "got dict"),
    "set": ({"one"}, "got set"),
    "file": (io.StringIO("one\n"), "got StringIO"),
    "table": (np.array([["one"]]), "got ndarray"),
    "scalar": (np.array("one"), "got ndarray"),
    "scalar tensor": (tf.constant("one"), "got EagerTensor"),
    "missing": (["one", None], r"item 2 of texts must be a text, got None\. Replace missing"),
    "nan": (Series(["one", "two", float("nan")]), "item 3 of texts must be a text, got nan"),
    "numbers": (np.arange(2), "item 1 of texts must be a text, got"),
    "ragged": (tf.ragged.constant([["one"], []]), "item 1 of texts must be a text, got"),
    "nested": ([["one"]], r"item 1 of texts must be a text, got \['one'\]"),
    "not UTF-8": (["one", b"\xff"], "item 2 of texts is not UTF-8"),
}


@pytest.fixture(scope="module")
def translator(run):
    return Translator.from_run(run, beam_size=1)


@pytest.fixture(scope="module")
def doors(translator, readers_folder):
    """Methods that take texts, and those that take texts and others that belong to them."""
    saved = SavedTranslator(readers_folder / "served" / "mine" / "1")
    return (
        [translator, translator.signatures, saved, saved.n_best],
        [translator, translator.score, translator.align, translator.attention, saved.score],
    )


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))), st.sampled_from([*ITERABLES]))
@example([], "strings")
def test_any_ordered_iterable_is_the_list_of_its_texts(texts, kind):
    if kind == "strings":
        texts = [text.rstrip("\0") for text in texts]  # NumPy's own
    found = as_texts(ITERABLES[kind](texts))
    assert found == texts
    assert {type(found), *map(type, found)} <= {list, str}


@pytest.mark.parametrize("kind", ITERABLES)
def test_every_door_takes_any_ordered_iterable(kind, doors):
    make = ITERABLES[kind]
    for door in doors[0]:
        assert str(door(make(TEXTS))) == str(door(TEXTS))
    for door in doors[1]:
        assert str(door(make(TEXTS), make(TEXTS[::-1]))) == str(door(TEXTS, TEXTS[::-1]))


@pytest.mark.parametrize("kind", OTHERS)
def test_every_door_refuses_anything_else(kind, doors):
    value, message = OTHERS[kind]
    for door in doors[0]:
        with pytest.raises(InputError, match=message):
            door(value)
    for door in doors[1]:
        with pytest.raises(InputError, match=message):
            door(value, ["one", "two"])
        if value is not None or door is not doors[1][0]:  # a call has prefixes or None
            with pytest.raises(InputError, match=message.replace("texts", r"\w+")):
                door(["one", "two"], value)


def test_as_many_predictions_as_texts(doors):
    for door in doors[1]:
        with pytest.raises(InputError, match=r"expected as many \w+ as texts, got 1 \w+ and 3 tex"):
            door(TEXTS, ["one"])


@pytest.mark.parametrize("layer", [1, -2, 0.5, "0"])
def test_a_layer_that_does_not_exist_is_an_error(layer, translator):
    with pytest.raises(InputError, match="expected a layer of the decoder from 0 to 0, or -1 for"):
        translator.align(["one"], ["eins"], layer=layer)


def test_every_door_fails_at_once_in_a_fork(doors, translator, run, tmp_path):
    """The fork has none of TensorFlow's threads, and would wait for them for ever."""
    calls = [
        *((door, (TEXTS,)) for door in doors[0]),
        *((door, (TEXTS, TEXTS)) for door in doors[1]),
        (translator.save, (tmp_path / "model",)),
        (Translator.from_run, (run,)),
        (SavedTranslator, (tmp_path,)),
    ]
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        for function, arguments in calls:
            with contextlib.suppress(BaseException):
                try:
                    function(*arguments)
                except InputError as error:
                    os.write(writing, str(error)[:25].encode() + b"\n")
        os._exit(0)
    os.close(writing)
    assert os.waitpid(child, 0)[1] == 0
    with open(reading, "rb") as messages:
        assert messages.readlines() == [b"this process is a fork of\n"] * len(calls)
