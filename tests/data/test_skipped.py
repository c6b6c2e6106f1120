"""Warnings about examples that are left out."""

from collections import Counter

import pytest

from tf_transformer.data.examples import warning

LONG = "longer than 256 tokens"


@pytest.mark.parametrize(
    ("kept", "skipped", "expected"),
    [
        (1000, {}, ""),
        (900, {LONG: 60, "empty text": 40}, ""),
        (899, {LONG: 101}, "101 of 1,000 examples are skipped: 101 longer than 256 tokens."),
    ],
)
def test_more_than_a_tenth_gives_a_warning_with_reasons(kept, skipped, expected):
    assert warning(kept, Counter(skipped)) == expected


def test_any_text_that_is_not_utf8_gives_a_warning():
    found = warning(9_999, Counter({"not UTF-8, the first in line 7 of a.de": 1}))
    assert found.startswith("1 of 10,000 examples are skipped: 1 not UTF-8, the first in line 7 of")
    assert "Convert the file to UTF-8" in found
