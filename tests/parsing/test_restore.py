"""Trees from sequences of actions: valid ones give their tree back, any others a tree."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tree import Tree
from parsing.small_actions import END_ID, LABELS, ids_of, small_actions

from tf_transformer.parsing.grammar import MAX_OPENED
from tf_transformer.parsing.linearization import linearize
from tf_transformer.parsing.restore import restore, restore_in_graph
from tf_transformer.parsing.trees import is_word, one_line


def node(children):
    return st.builds(Tree, st.sampled_from(LABELS), st.lists(children, min_size=1, max_size=4))


leaves = st.builds(lambda word: Tree("XX", [word]), st.sampled_from(["a", "bc", "é", "-LRB-"]))
# Fewer brackets above one another than the grammar allows in a row.
trees = node(node(node(leaves | node(leaves)) | leaves) | leaves)
both = pytest.mark.parametrize("in_order", [False, True], ids=["brackets", "in_order"])


@both
@settings(max_examples=150, deadline=None)
@given(tree=trees)
def test_a_tree_comes_back_from_its_actions(in_order, tree):
    actions = small_actions(in_order)
    assert tree.height() <= MAX_OPENED
    assert restore(
        [*ids_of(linearize(tree, in_order), in_order), END_ID, 7], tree.leaves(), actions
    ) == one_line(tree)


@both
@settings(max_examples=150, deadline=None)
@given(ids=st.lists(st.integers(0, 9), max_size=20), words=st.lists(st.just("a"), min_size=1))
def test_any_ids_give_a_tree_over_the_words(in_order, ids, words):
    actions = small_actions(in_order)
    ids = [i for i in ids if i < len(actions.kinds)]
    tree = Tree.fromstring(restore(ids, words, actions))
    assert tree.leaves() == words
    assert not is_word(tree)
    assert {each.label() for each in tree.subtrees()} <= {*LABELS, "XX"}


@both
def test_the_graph_restores_what_python_does(in_order):
    actions = small_actions(in_order)
    draw = np.random.default_rng(1)
    likely = draw.choice(len(actions.kinds), size=(300, 24)).astype(np.int32)
    likely = np.where(likely < 5, np.where(draw.random(likely.shape) < 0.1, likely, 5), likely)
    words = [["a", "b.", ",", "é", "..."][: draw.integers(0, 6)] for _ in likely]
    found = restore_in_graph(
        tf.constant(likely), tf.ragged.constant(words, ragged_rank=1).to_tensor(""), actions
    )
    expected = [restore(*each, actions) for each in zip(likely, words, strict=True)]
    assert [text.decode() for text in found.numpy()] == expected
