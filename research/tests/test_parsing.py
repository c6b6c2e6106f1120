"""The baselines of parsing: the PCFG's CKY against NLTK's ViterbiParser."""

import pytest
from nltk import Nonterminal, ViterbiParser, induce_pcfg
from nltk.tree import Tree

from research.parsing.__main__ import right_branching
from research.parsing.pcfg import PCFG

TREES = [
    "(S (NP (D the) (N dog)) (VP (V saw) (NP (NP (D a) (N cat)) (PP (P with) (NP (N dog))))))",
    "(S (NP (N cat)) (VP (V saw) (NP (D the) (N dog)) (PP (P with) (NP (D a) (N cat)))))",
    "(S (NP (D the) (N cat)) (VP (V dog)))",
]


@pytest.mark.parametrize("sentence", ["the dog saw a cat with dog", "cat saw cat", "dog with dog"])
def test_the_likeliest_tree_is_that_of_nltk(sentence):
    trees = list(map(Tree.fromstring, TREES))
    found = PCFG(trees, unknown=False)
    productions = []
    for tree in trees:
        tree.collapse_unary(collapsePOS=True, collapseRoot=True)
        tree.chomsky_normal_form(horzMarkov=2)
        productions += tree.productions()
    grammar = induce_pcfg(Nonterminal("S"), productions)
    words = sentence.split()
    expected = list(ViterbiParser(grammar).parse(words))
    if not expected:
        assert found.parse(words) is None
        return
    assert found.log_probability(words) == pytest.approx(expected[0].logprob())
    best = Tree.convert(expected[0])
    best.un_chomsky_normal_form()
    assert found.parse(words) == best


def test_right_branching_keeps_the_full_stop_in_the_root():
    tree = "(S (NP (XX a) (NP (XX b) (XX c))) (. .))"
    assert right_branching(["a", "b", "c", "."], "NP") == tree
    assert right_branching(["."], "NP") == "(S (. .))"
