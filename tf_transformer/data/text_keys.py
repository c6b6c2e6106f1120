"""Keys of texts: 64 bits that are equal for equal texts, in every process and on every machine.

Texts are compared in the Unicode form NFC and without regard to spaces. Two different texts of a
billion have the same key with a probability of 3 %.
"""

import hashlib
import unicodedata
from array import array


def text_key(text: str) -> int:
    r"""The key of a text.

    Example:
        >>> text_key("cafe\u0301  noir ") == text_key("café noir")
        True
    """
    return _hash(_form(text))


def pair_key(source: str, target: str) -> int:
    """The key of a pair of texts."""
    return _hash(f"{_form(source)}\n{_form(target)}")


def _form(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


class KeySet:
    """A set of keys, in 12 to 24 bytes for each; the set of Python needs five times as many.

    A table of places, of which at most two thirds are taken (open addressing).
    """

    def __init__(self) -> None:
        self._places = array("Q", bytes(8 * 1024))  # 0 is free
        self._count = 0

    def add(self, key: int) -> bool:
        """Adds a key; returns whether it is new.

        Example:
            >>> keys = KeySet()
            >>> keys.add(text_key("one")), keys.add(text_key(" one")), text_key("two") in keys
            (True, False, False)
        """
        key = key or 1  # 0 has no other meaning than 1
        place = self._place(key)
        if self._places[place]:
            return False
        self._places[place] = key
        self._count += 1
        if 3 * self._count > 2 * len(self._places):
            before, self._places = self._places, array("Q", bytes(16 * len(self._places)))
            for moved in filter(None, before):
                self._places[self._place(moved)] = moved
        return True

    def __contains__(self, key: int) -> bool:
        return self._places[self._place(key or 1)] != 0

    def _place(self, key: int) -> int:
        """The place of a key, or the free one where it belongs."""
        places, last = self._places, len(self._places) - 1
        place = key & last
        while (taken := places[place]) and taken != key:
            place = (place + 1) & last
        return place
