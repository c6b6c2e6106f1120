"""Division of texts into unigrams, equal to the op of tensorflow-text.

SentencePiece finds the most probable pieces of a text by Viterbi's algorithm. If several divisions
are equally probable, such as 0 00 and 00 0, roundings of sums choose one. The op, which exports
contain, adds in float64 and stores float32, as sentencepiece 0.2.1 does. Since 0.2.2, sentencepiece
adds in float32, and it gives other scores to symbols of the user. So this module computes as the op
does, and ids do not depend on the version of sentencepiece.

The op itself cannot be used: it starts TensorFlow, which training may do only after it has read its
text.
"""

import itertools
import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from tf_transformer.text.sentencepiece_file import Kind, Piece
from tf_transformer.text.special_ids import BLANK

_UNKNOWN_PENALTY = 10.0
_SYMBOL_PENALTY = 0.1
_ROUNDING = 2.0**-24  # largest relative error of a float32
_MAX_WORDS, _LONGEST_WORD = 100_000, 20  # of the cache: words, and characters of a word
_PREFIX = -1  # in place of an id: longer pieces start with this text


class Division(NamedTuple):
    """A text, or a word, in pieces. Several unknown characters of a text in a row are one piece."""

    ids: list[int]
    texts: list[str]
    # Of a word: the difference between the sums of the best and the second best way to a place in
    # it, where it is smallest, over the number of characters; the largest absolute value of a sum.
    margin: float = math.inf
    size: float = 0.0


class Unigrams:
    """A vocabulary of unigrams: the pieces of a SentencePiece model, in the order of their ids."""

    def __init__(self, pieces: Sequence[Piece]):
        ids = {kind: [i for i, x in enumerate(pieces) if x.kind == kind] for kind in Kind}
        scores = [pieces[token].score for token in ids[Kind.NORMAL]]
        self._unknown_score = _float32(min(scores, default=0.0) - _UNKNOWN_PENALTY)
        (self._unknown,) = ids[Kind.UNKNOWN]
        self._of_bytes = {int(pieces[token].text[1:-1], 16): token for token in ids[Kind.BYTE]}
        known = {pieces[token].text: (token, pieces[token].score) for token in ids[Kind.NORMAL]}
        for token in ids[Kind.USER_DEFINED]:
            text = pieces[token].text
            gain = _float32(len(text.encode()) * max(0.0, *scores))
            known[text] = token, gain - _SYMBOL_PENALTY
        prefixes = {text[:end] for text in known for end in range(1, len(text))}
        self._known = dict.fromkeys(prefixes, (_PREFIX, 0.0)) | known
        # Without pieces that reach across the start of a word, words have their own best pieces.
        self._has_words = not any(BLANK in text[1:] for text in known)
        self._words: dict[str, Division] = {}

    def divide(self, text: str) -> Division:
        """Divides a text that SentencePiece has normalized."""
        first, *others = text.split(BLANK) if self._has_words else [text]
        words = list(map(self._word, [first, *(BLANK + word for word in others)]))
        # Sums depend on the text before a word, and their roundings, too. If a rounding could
        # choose another piece, all sums of the text are computed.
        error = 4 * _ROUNDING * sum([word.size for word in words])
        if min([word.margin for word in words], default=math.inf) <= error:
            words = [self._viterbi(text)]
        ids = list(itertools.chain.from_iterable([word.ids for word in words]))
        texts = list(itertools.chain.from_iterable([word.texts for word in words]))
        return self._joined(ids, texts) if self._unknown in ids else Division(ids, texts)

    def _word(self, text: str) -> Division:
        """Divides a word, with a cache."""
        if len(text) > _LONGEST_WORD:
            return self._viterbi(text)
        word = self._words.get(text)
        if word is None:
            if len(self._words) >= _MAX_WORDS:
                self._words.clear()
            word = self._words[text] = self._viterbi(text)
        return word

    def _viterbi(self, text: str) -> Division:
        """Finds the best pieces of a text: the largest sum of scores that ends at each place."""
        places = len(text) + 1
        best = array("f", bytes(4 * places))
        second, starts, tokens = [-math.inf] * places, [-1] * places, [self._unknown] * places
        for start in range(len(text)):
            ways, before = self._ways(text, start), best[start]
            for end, token, score in ways:
                total = before + score
                if token == self._unknown:
                    total = _float32(total)  # the op rounds this sum before it compares
                if starts[end] >= 0 and total <= best[end]:
                    second[end] = max(second[end], total)
                    continue
                if starts[end] >= 0:
                    second[end] = best[end]
                best[end], starts[end], tokens[end] = total, start, token
        ids, texts, margin, end = list[int](), list[str](), math.inf, len(text)
        while end > 0:
            token, piece = tokens[end], text[starts[end] : end]
            of_bytes = self._of_bytes and token == self._unknown
            content = piece.encode()[::-1] if of_bytes else b""
            ids += [self._of_bytes[byte] for byte in content] or [token]
            texts += [f"<0x{byte:02X}>" for byte in content] or [piece]
            margin = min(margin, best[end] - second[end])
            end = starts[end]
        return Division(ids[::-1], texts[::-1], margin / max(1, len(text)), max(map(abs, best)))

    def _ways(self, text: str, start: int) -> list[tuple[int, int, float]]:
        """Finds the pieces that start at a place: their ends, ids and scores."""
        ways, known = [], self._known
        for end in range(start + 1, len(text) + 1):
            found = known.get(text[start:end])
            if found is None:
                break
            if found[0] != _PREFIX:
                ways.append((end, *found))
        if not ways or ways[0][0] > start + 1:  # the character itself is no piece
            ways.append((start + 1, self._unknown, self._unknown_score))
        return ways

    def _joined(self, ids: Sequence[int], texts: Sequence[str]) -> Division:
        """Joins several unknown characters in a row."""
        joined = Division([], [])
        for token, text in zip(ids, texts, strict=True):
            if token == self._unknown and joined.ids[-1:] == [token]:
                joined.texts[-1] += text
            else:
                joined.ids.append(token)
                joined.texts.append(text)
        return joined


def _float32(value: float) -> float:
    """Rounds a number to float32."""
    return array("f", [value])[0]
