"""Sets of keys in little memory, beside the set of Python."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.data.text_keys import KeySet, text_key

# Few distinct values, some of which belong to the same place of a table, and the largest key.
KEYS = st.lists(st.sampled_from([1, 2, 1025, 2049, 2**63, 2**64 - 1]) | st.integers(1, 2**64 - 1))


@given(KEYS)
def test_it_has_the_keys_of_a_set(keys):
    ours, expected = KeySet(), set()
    for key in keys:
        assert ours.add(key) == (key not in expected)
        expected.add(key)
    assert all(key in ours for key in expected)
    assert [key in ours for key in range(1, 40)] == [key in expected for key in range(1, 40)]


def test_it_grows_and_needs_at_most_24_bytes_a_key():
    """Of keys of texts, which are as good as random; the key 0 is one of them."""
    keys, count = KeySet(), 20_000
    assert all(keys.add(text_key(str(n))) for n in range(count))
    assert not any(keys.add(text_key(str(n))) for n in range(count))
    assert not any(text_key(str(n)) in keys for n in range(count, 2 * count))
    assert sys.getsizeof(keys._places) <= 24 * count + 100
    assert (keys.add(0), keys.add(0), 0 in keys) == (True, False, True)
