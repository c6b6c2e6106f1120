"""The grammar in the search against brute force over all sequences of a tiny vocabulary."""

import itertools

import numpy as np
import pytest
from keras import ops
from parsing.small_actions import LINEARIZATIONS, small_actions, source_of

from tf_transformer.decoding import (
    Constraints,
    Problem,
    SearchOptions,
    SpecialIds,
    Step,
    StepState,
    beam_search,
)
from tf_transformer.parsing.grammar import MAX_OPENED, MAX_UNARY, TreeGrammar
from tf_transformer.parsing.linearization import CLOSE, OPEN, WORD
from tf_transformer.text.special_ids import BOS_ID, EOS_ID, PAD_ID

SPECIAL = SpecialIds(pad=PAD_ID, start=BOS_ID, end=EOS_ID)
each_form = pytest.mark.parametrize("form", LINEARIZATIONS)


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
    source, limits = np.array([source_of(words)]), np.array([limit], np.int32)
    facts = grammar.facts(*map(ops.convert_to_tensor, (source, limits)))
    found = grammar.allowed_next(ops.convert_to_tensor(ids), np.int32(len(sequence)), facts)
    return set(np.flatnonzero(ops.convert_to_numpy(found)[0, 0]))


def is_tree(sequence, words: int, actions) -> bool:
    """Whether actions give a tree, and take the words of the sentence."""
    kinds = ("", "", "w", "(", ")")
    names = [kinds[actions.kinds[i]] + actions.labels[i] for i in sequence]
    expected = actions.word_actions[source_of(words)]
    taken = [i for i in sequence if actions.kinds[i] == WORD]
    return taken == [*expected[expected > 0]] and reads_as_tree(names, words, actions.in_order)


@each_form
@pytest.mark.parametrize(("words", "limit"), [(1, 4), (1, 6), (2, 5), (2, 7), (3, 6)])
def test_complete_sequences_are_those_that_read_as_trees(form, words, limit):
    actions = small_actions(form)
    grammar, found, stack = TreeGrammar(actions), set(), [()]
    while stack:
        sequence = stack.pop()
        following = allowed_by(grammar, sequence, words, limit)
        assert following  # every beginning can be completed
        for token in following:
            if token == EOS_ID:
                found.add(sequence)
            else:
                assert len(sequence) + 1 < limit
                stack.append((*sequence, int(token)))
    ordinary = np.flatnonzero(np.isin(actions.kinds, (WORD, OPEN, CLOSE))).tolist()
    expected = {
        sequence
        for length in range(limit)
        for sequence in itertools.product(ordinary, repeat=length)
        if is_tree(sequence, words, actions)
    }
    assert found == expected


def test_brackets_opened_in_a_row_and_unary_brackets_are_bounded():
    for in_order, most in ((False, MAX_OPENED), (True, 2 * MAX_UNARY)):
        actions = small_actions("in_order" if in_order else "brackets", ("S",))
        grammar, limit = TreeGrammar(actions), 60
        word, opening, closing = (int(np.argmax(actions.kinds == k)) for k in (WORD, OPEN, CLOSE))
        sequence, is_open = ([] if not in_order else [word]), True
        for _ in range(most):
            sequence.append(opening if is_open else closing)
            is_open = is_open if not in_order else not is_open
            assert allowed_by(grammar, sequence[:-1], 2, limit) & {sequence[-1]}
        following = allowed_by(grammar, sequence, 2, limit)
        if in_order:  # another bracket needs another child
            assert following == {opening}
            assert allowed_by(grammar, [*sequence, opening], 2, limit) == {word}
        else:
            assert following == {word}


@each_form
def test_the_next_word_has_the_probability_of_all_words_together(form):
    actions = small_actions(form)
    grammar, draw = TreeGrammar(actions), np.random.default_rng(1)
    first, second, third = actions.word_actions[np.array([4, 5, 4])]
    opening = int(np.argmax(actions.kinds == OPEN))
    before, word = ([first, opening, second], third) if actions.in_order else ([opening], first)
    ids = np.array([[[*before, *[0] * 9]]], np.int32)
    facts = grammar.facts(np.array([source_of(3)]), np.array([12], np.int32))
    given = draw.dirichlet(np.ones(len(actions.kinds))).astype("float32")
    found = grammar(np.log(given)[None, None], ids, np.int32(len(before)), facts)
    found = np.exp(ops.convert_to_numpy(found)[0, 0])
    assert found[word] == pytest.approx(given[actions.kinds == WORD].sum(), rel=1e-5)
    assert found[opening] == pytest.approx(given[opening], rel=1e-5)
    assert set(np.flatnonzero(found)) == allowed_by(grammar, before, 3, 12)


@each_form
def test_a_search_under_random_scores_finds_trees_only(form):
    """Also where a batch loses sentences, and with the smallest limits."""
    actions, draw = small_actions(form), np.random.default_rng(1)
    words = np.array([1, 2, 3, 5, 8, 1, 4, 6], np.int32)
    limits = words + np.array([3, 3, 9, 3, 20, 12, 4, 30], np.int32)
    sources = ops.convert_to_tensor(np.array([source_of(count, 20) for count in words]))
    grammar, size = TreeGrammar(actions), len(actions.kinds)
    table = ops.convert_to_tensor(draw.normal(0, 3, (40, size)).astype("float32"))

    def step(tokens, state, index):
        return ops.take(table, (tokens * 7 + index * 3) % 40, axis=0), state

    longest, limits = int(limits.max()), ops.convert_to_tensor(limits)
    found = beam_search(
        Step(step, StepState(())),
        Problem(limits, facts=grammar.facts(sources, limits)),
        SearchOptions(
            longest, SPECIAL, 3, num_hypotheses=3, constraints=Constraints(grammar=grammar)
        ),
    )
    ids, lengths = map(ops.convert_to_numpy, (found.ids, found.lengths))
    assert (lengths[:, 0] > 0).all()
    for row, count, hypotheses in zip(lengths, words, ids, strict=True):
        for length, hypothesis in zip(row, hypotheses, strict=True):
            if length:
                assert hypothesis[length - 1] == EOS_ID
                assert is_tree(hypothesis[: length - 1].tolist(), count, actions)
