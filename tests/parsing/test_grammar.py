"""The grammar in the search against brute force over all sequences of a tiny vocabulary."""

import itertools

import numpy as np
import pytest
from keras import ops
from parsing.small_actions import END_ID, small_actions

from tf_transformer.decoding import Constraints, SpecialIds, StepState, beam_search
from tf_transformer.parsing.grammar import MAX_OPENED, MAX_UNARY, TreeGrammar

SPECIAL = SpecialIds(pad=0, start=1, end=END_ID)
both = pytest.mark.parametrize("in_order", [False, True], ids=["brackets", "in_order"])


def reads_as_tree(tokens, words: int, in_order: bool) -> bool:
    """Whether a stack machine, written from the papers, reads one bracket over all words."""
    stack = []  # "(" and labels of open brackets, and finished parts
    for token in tokens:
        if token == "w":
            stack.append("part")
        elif token[0] == "(":
            if in_order and (not stack or stack[-1] != "part"):
                return False
            stack.append(token)
        else:
            children = 0
            while stack and stack[-1] == "part":
                stack.pop()
                children += 1
            if not stack or (not in_order and (not children or stack[-1][1:] != token[1:])):
                return False
            stack.pop()
            if in_order:
                stack.pop()  # the first child stands before its bracket
            stack.append("part")
    has_root = bool(tokens) and tokens[-1][0] == ")"
    return stack == ["part"] and has_root and tokens.count("w") == words


def allowed_by(grammar, sequence, words, limit):
    ids = np.zeros((1, 1, limit), np.int32)
    ids[0, 0, : len(sequence)] = sequence
    facts = np.array([[words, limit]], np.int32)
    found = grammar(*map(ops.convert_to_tensor, (ids, np.int32(len(sequence)), facts)))
    return set(np.flatnonzero(ops.convert_to_numpy(found)[0, 0]))


def names_of(sequence, actions):
    kinds = ("", "", "w", "(", ")")
    return [kinds[actions.kinds[i]] + actions.labels[i] for i in sequence]


@both
@pytest.mark.parametrize(("words", "limit"), [(1, 4), (1, 6), (2, 5), (2, 7), (3, 6)])
def test_complete_sequences_are_those_that_read_as_trees(in_order, words, limit):
    actions = small_actions(in_order)
    grammar, found, stack = TreeGrammar(actions), set(), [()]
    while stack:
        sequence = stack.pop()
        following = allowed_by(grammar, sequence, words, limit)
        assert following  # every beginning can be completed
        for token in following:
            if token == END_ID:
                found.add(sequence)
            else:
                assert len(sequence) + 1 < limit
                stack.append((*sequence, int(token)))
    ordinary = range(5, len(actions.kinds))
    expected = {
        sequence
        for length in range(limit)
        for sequence in itertools.product(ordinary, repeat=length)
        if reads_as_tree(names_of(sequence, actions), words, in_order)
    }
    assert found == expected


def test_brackets_opened_in_a_row_and_unary_brackets_are_bounded():
    for in_order, most in ((False, MAX_OPENED), (True, 2 * MAX_UNARY)):
        actions = small_actions(in_order, ("S",))
        grammar, limit = TreeGrammar(actions), 60
        sequence, is_open = ([] if not in_order else [5]), True
        for _ in range(most):
            sequence.append(6 if is_open else 7)
            is_open = is_open if not in_order else not is_open
            assert allowed_by(grammar, sequence[:-1], 2, limit) & {sequence[-1]}
        following = allowed_by(grammar, sequence, 2, limit)
        if in_order:  # another bracket needs another child
            assert following == {6}
            assert allowed_by(grammar, [*sequence, 6], 2, limit) == {5}
        else:
            assert following == {5}


@both
def test_a_search_under_random_scores_finds_trees_only(in_order):
    """Also where a batch loses sentences, and with the smallest limits."""
    actions, draw = small_actions(in_order), np.random.default_rng(1)
    words = np.array([1, 2, 3, 5, 8, 1, 4, 6], np.int32)
    limits = words + np.array([3, 3, 9, 3, 20, 12, 4, 30], np.int32)
    grammar, size = TreeGrammar(actions), len(actions.kinds)
    table = ops.convert_to_tensor(draw.normal(0, 3, (40, size)).astype("float32"))

    def step(tokens, state, index):
        return ops.take(table, (tokens * 7 + index * 3) % 40, axis=0), state

    found = beam_search(
        *(step, StepState(()), ops.convert_to_tensor(limits), int(limits.max()), SPECIAL),
        beam_size=3,
        num_hypotheses=3,
        constraints=Constraints(
            grammar=grammar, facts=ops.convert_to_tensor(np.stack([words, limits], axis=1))
        ),
    )
    ids, lengths = map(ops.convert_to_numpy, (found.ids, found.lengths))
    assert (lengths[:, 0] > 0).all()
    for row, count, hypotheses in zip(lengths, words, ids, strict=True):
        for length, hypothesis in zip(row, hypotheses, strict=True):
            if length:
                assert hypothesis[length - 1] == END_ID
                names = names_of(hypothesis[: length - 1], actions)
                assert reads_as_tree(names, count, in_order)
