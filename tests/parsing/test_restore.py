"""Trees from sequences of actions: valid ones give their tree back, any others a tree."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tree import Tree
from parsing import plain_restore
from parsing.small_actions import LABELS, LINEARIZATIONS, Vocabulary, small_actions, source_of

from tf_transformer.parsing.grammar import MAX_OPENED
from tf_transformer.parsing.linearization import WORD, WORD_PIECE, linearize
from tf_transformer.parsing.restore import restore
from tf_transformer.parsing.trees import is_word, one_line
from tf_transformer.parsing.words import normalize
from tf_transformer.text.special_ids import EOS_ID


def node(children):
    return st.builds(Tree, st.sampled_from(LABELS), st.lists(children, min_size=1, max_size=4))


leaves = st.builds(lambda word: Tree("XX", [word]), st.sampled_from(["a", "bc", "é", "-LRB-"]))
# Fewer brackets above one another than the grammar allows in a row.
trees = node(node(node(leaves | node(leaves)) | leaves) | leaves)
each_form = pytest.mark.parametrize("form", LINEARIZATIONS)


@functools.cache
def restoring(form):
    """`restore` as the graph of a SavedModel has it."""
    shapes = tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None, None), tf.string)
    actions = small_actions(form)
    return tf.function(lambda *row: restore(*row, actions), input_signature=shapes)


def restored(ids, words, form) -> str:
    """The tree of one row of ids."""
    (tree,) = restoring(form)(tf.constant([ids or [EOS_ID]]), tf.constant([words])).numpy()
    return tree.decode()


@each_form
@settings(max_examples=40, deadline=None)
@given(tree=trees)
def test_a_tree_comes_back_from_its_actions(form, tree):
    actions = small_actions(form)
    assert tree.height() <= MAX_OPENED
    found = actions.word_actions[source_of(len(tree.leaves()))]
    words, ids = iter(found[found > 0]), Vocabulary(form).id
    names = linearize(tree, actions.in_order)
    sequence = [next(words) if name == WORD_PIECE else ids(name) for name in names]
    assert restored([*sequence, EOS_ID, 7], tree.leaves(), form) == one_line(tree)


@each_form
@settings(max_examples=40, deadline=None)
@given(ids=st.lists(st.integers(0, 11), max_size=20), words=st.lists(st.just("a"), min_size=1))
def test_any_ids_give_a_tree_over_the_words(form, ids, words):
    actions = small_actions(form)
    ids = [i for i in ids if i < len(actions.kinds)]
    tree = Tree.fromstring(restored(ids, words, form))
    assert tree.leaves() == words
    assert not is_word(tree)
    assert {each.label() for each in tree.subtrees()} <= {*LABELS, "XX"}


@each_form
def test_trees_are_those_of_plain_python(form):
    actions = small_actions(form)
    draw = np.random.default_rng(1)
    likely = draw.choice(len(actions.kinds), size=(300, 24)).astype(np.int32)
    rare = (likely < 7) & (draw.random(likely.shape) < 0.9)
    likely = np.where(rare, np.flatnonzero(actions.kinds == WORD)[0], likely).astype(np.int32)
    words = [["a", "b.", ",", "é", "..."][: draw.integers(0, 6)] for _ in likely]
    found = restore(
        tf.constant(likely), tf.ragged.constant(words, ragged_rank=1).to_tensor(""), actions
    )
    expected = [plain_restore.restore(*each, actions) for each in zip(likely, words, strict=True)]
    assert [text.decode() for text in found.numpy()] == expected


@given(st.lists(st.text(st.sampled_from("ab()[]{}\u2581 \t\n\x1c\x85\u00a0\u3000")), min_size=1))
def test_sentences_are_normalized_as_in_plain_python(sentences):
    found = normalize(tf.constant([text.encode() for text in sentences]))
    assert [text.decode() for text in found.numpy()] == list(
        map(plain_restore.normalize, sentences)
    )
