"""Arbitrary input: the export gives each row the translator's result for that row.

Hypothesis makes the batches: all kinds of bytes, valid UTF-8 or not, of very different lengths.
"""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tf_transformer.decoding import NEG_INF

LONGEST = 64  # source tokens of `exported`
ALPHABETS = [
    st.characters(exclude_categories=["Cs"]),  # all scripts; few are in the training text
    st.characters(categories=["Cc", "Cf", "Zs", "Zl", "Zp"]),  # controls, formats, spaces
    st.characters(categories=["Mn", "So", "Sk"]),  # combining marks, emoji
    st.sampled_from(" \t\n\r\x00\ufeff\u200b\u2028\u2581"),
]
WORDS = st.lists(st.sampled_from(["one", "twenty", "June", "two,"]), max_size=12).map(" ".join)
TEXTS = st.one_of(WORDS, *(st.text(alphabet, max_size=60) for alphabet in ALPHABETS))
LINES = st.one_of(
    TEXTS.map(str.encode),
    st.binary(max_size=40),
    st.builds(lambda text, cut: text.encode()[:-cut], TEXTS, st.integers(1, 3)),  # cut characters
    st.lists(st.sampled_from([b"\xe2\x82", b"\xf0\x9f\x98", b"\x80", b"a"])).map(b"".join),
    st.builds(lambda text, times: text.encode() * times, TEXTS, st.integers(2, 50)),
)


@pytest.fixture(scope="module")
def signatures(served):
    import tensorflow_text  # noqa: F401

    model = tf.saved_model.load(str(served))
    return {
        name: lambda model=model, name=name, **texts: {
            key: value.numpy()
            for key, value in model.signatures[name](
                **{key: tf.constant(value, tf.string) for key, value in texts.items()}
            ).items()
        }
        for name in model.signatures
    }


def check(signatures, exported, lines: list[bytes]) -> None:
    """Checks the three signatures on a batch."""
    texts = [line.decode("utf-8", "replace") for line in lines]
    found = signatures["serving_default"](text=lines)
    translations = [translation.decode("utf-8") for translation in found["translation"]]
    expected = exported(texts)
    assert translations == [each.text for each in expected]
    outputs = zip(texts, translations, strict=True)
    assert not any("\ufffd" in output and "\ufffd" not in text for text, output in outputs)
    np.testing.assert_allclose(found["score"], [each.score for each in expected], atol=1e-4)
    cut = [len(exported.tokenizer.encode(text)) > LONGEST for text in texts]
    assert found["truncated"].tolist() == [each.truncated for each in expected]
    assert all(each.truncated for each, is_cut in zip(expected, cut, strict=True) if is_cut)

    n_best = signatures["n_best"](text=lines)
    assert n_best["translations"].shape == n_best["scores"].shape == (len(lines), 2)
    np.testing.assert_array_equal(n_best["translations"][:, 0], found["translation"])
    assert (np.diff(n_best["scores"]) <= 0).all()
    assert (n_best["scores"] >= NEG_INF).all()
    np.testing.assert_array_equal(n_best["truncated"], found["truncated"])
    for row, scores in zip(n_best["translations"], n_best["scores"], strict=True):
        assert len({text for text, score in zip(row, scores, strict=True) if score > NEG_INF}) == (
            (scores > NEG_INF).sum()
        )

    rotated = lines[1:] + lines[:1]  # targets as unusual as the sources
    scored = signatures["score"](source=lines, target=rotated)
    pairs = exported.score(texts, texts[1:] + texts[:1])
    numbers = np.stack([scored["score"], scored["log_probability"]], axis=1)
    expected = [(pair.score, pair.log_probability) for pair in pairs]
    np.testing.assert_allclose(numbers, expected, rtol=1e-4, atol=1e-3)
    assert (numbers <= 0).all()
    assert scored["truncated"].tolist() == np.logical_or(cut, cut[1:] + cut[:1]).tolist()


def examples(count: int):
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@examples(30)
@given(st.lists(LINES, min_size=1, max_size=20))
def test_each_row_of_any_batch_gets_its_own_result(signatures, exported, lines):
    check(signatures, exported, lines)


@pytest.mark.slow
@examples(500)
@given(st.lists(LINES, min_size=1, max_size=20))
def test_each_of_thousands_of_lines_gets_its_own_result(signatures, exported, lines):
    check(signatures, exported, lines)


@pytest.mark.slow
def test_a_thousand_rows_of_very_different_lengths_with_duplicates(signatures, exported):
    lines = [b"one " * (n % 60) for n in range(995)] + [b"x" * 100_000, b"", b" ", b"\xff", b"\x00"]
    check(signatures, exported, lines)
    found = signatures["serving_default"](text=lines)
    assert found["translation"][:60].tolist() == found["translation"][60:120].tolist()


@pytest.mark.parametrize(
    "line",
    [
        b"x" * 100_000,
        b"twenty-one " * 9_000,
        "日本語".encode() * 33_000,
        b"\xf0\x9f" * 50_000,
        b" " * 100_000,
        b"\x00" * 100_000,
    ],
    ids=["one word", "words", "no spaces", "broken", "spaces", "nul"],
)
def test_a_hundred_thousand_characters_are_cut(signatures, exported, line):
    check(signatures, exported, [b"one", line])
