"""`restore` and `normalize` of the package for one sentence, in plain Python: oracles."""

import re
from collections.abc import Iterator, Sequence

from tf_transformer.parsing.grammar import FIRST, UNLIMITED, State, allowed
from tf_transformer.parsing.linearization import CLOSE, OPEN, WORD, Actions
from tf_transformer.parsing.words import ESCAPES, SPACES, leaf
from tf_transformer.text.special_ids import EOS_ID


def normalize(sentence: str) -> str:
    """A sentence with single spaces and escaped brackets."""
    for pattern, word in ESCAPES.items():
        sentence = re.sub(pattern, word, sentence)
    return re.sub(SPACES, " ", sentence).strip(" ")


def restore(ids: Sequence[int], words: Sequence[str], actions: Actions) -> str:
    """The tree of any ids over the words of a sentence, as one line; "" without words."""
    parts: list[str] = []  # finished children
    brackets: list[tuple[int, str]] = []  # the first child and the label of each open one
    remaining = iter(words)
    for kind, token in _valid(ids, len(words), actions):
        if kind == WORD:
            parts.append(leaf(next(remaining)))
        elif kind == OPEN:
            brackets.append((len(parts) - actions.in_order, actions.labels[token]))
        else:
            first, label = brackets.pop()
            parts[first:] = [f"({label} {' '.join(parts[first:])})"]
    return "".join(parts)


def _valid(ids: Sequence[int], words: int, actions: Actions) -> Iterator[tuple[int, int]]:
    """A valid sequence of (kind, id) made from ids."""
    state = FIRST
    given = iter([int(i) for i in ids])
    while words:
        may = allowed(state, words, UNLIMITED, actions.in_order)
        token = next(given, EOS_ID)
        if token == EOS_ID:  # the given ids are used up
            given = iter(())
            if may.end:
                return
            kind, token = WORD if may.word else CLOSE if may.close else OPEN, actions.root
        else:
            kind = int(actions.kinds[token])
            if not {WORD: may.word, OPEN: may.open, CLOSE: may.close}.get(kind, False):
                continue
        yield kind, token
        in_run = kind == OPEN or (actions.in_order and kind == CLOSE and state.last == OPEN)
        state = State(
            words=state.words + (kind == WORD),
            depth=state.depth + (kind == OPEN) - (kind == CLOSE),
            last=kind,
            run=state.run + 1 if in_run else 0,
        )
