"""A PCFG that NLTK estimates from trees, and the CKY algorithm that finds its best trees.

NLTK's own ViterbiParser takes minutes per sentence with a grammar of a treebank. The grammar is in
Chomsky normal form with horizontal Markov order 2; chains of unary brackets are one symbol. Words
that occur once in training stand for unknown words of the same shape.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from nltk import Nonterminal, induce_pcfg
from nltk.tree import Tree

IMPOSSIBLE = -1e30


def shape(word: str) -> str:
    """The class of an unknown word: capital, digits, hyphen, and the last two letters."""
    marks = [mark for mark, found in (("C", word[0].isupper()), ("-", "-" in word)) if found]
    marks += ["0"] if re.search(r"\d", word) else [word[-2:].lower()]
    return f"<unknown {' '.join(marks)}>"


class PCFG:
    """A probabilistic grammar.

    Args:
        trees: the training trees; they are not changed.
        unknown: whether words that occur once become their shapes.
    """

    def __init__(self, trees: Sequence[Tree], unknown: bool = True):
        self._roots: Counter[str] = Counter()
        counts = Counter(word for tree in trees for word in tree.leaves())
        self._known = {word for word, count in counts.items() if count > 1 or not unknown}
        productions = []
        for tree in map(self._binary, trees):
            self._roots[tree.label()] += 1
            productions += tree.productions()
        grammar = induce_pcfg(Nonterminal(productions[0].lhs()), productions)
        rules = grammar.productions()
        self.symbols = sorted({str(rule.lhs()) for rule in rules})
        number = {symbol: i for i, symbol in enumerate(self.symbols)}
        self._words: dict[str, list[tuple[int, float]]] = {}
        for rule in filter(lambda rule: rule.is_lexical(), rules):
            entry = (number[str(rule.lhs())], rule.logprob())
            self._words.setdefault(rule.rhs()[0], []).append(entry)
        binary = sorted(
            (
                number[str(rule.lhs())],
                *(number[str(symbol)] for symbol in rule.rhs()),
                rule.logprob(),
            )
            for rule in rules
            if rule.is_nonlexical()
        )
        columns = list(zip(*binary, strict=True))
        self._parents, self._left, self._right = (np.array(c, np.int32) for c in columns[:3])
        self._rule_scores = np.array(columns[3])
        self._owners, self._starts = np.unique(self._parents, return_index=True)
        total = sum(self._roots.values())
        self._root_scores = np.full(len(self.symbols), IMPOSSIBLE)
        for label, count in self._roots.items():
            self._root_scores[number[label]] = np.log2(count / total)

    def _binary(self, tree: Tree) -> Tree:
        tree = tree.copy(deep=True)
        for place in tree.treepositions("leaves"):
            tree[place] = self._word(tree[place])
        tree.collapse_unary(collapsePOS=True, collapseRoot=True)
        tree.chomsky_normal_form(horzMarkov=2)
        return tree

    def _word(self, word: str) -> str:
        return word if word in self._known else shape(word)

    def parse(self, words: Sequence[str]) -> Tree | None:
        """The likeliest tree; None where the grammar has none."""
        chart = self._chart(words)
        scores = chart[0, len(words)] + self._root_scores
        if scores.max() <= IMPOSSIBLE / 2:
            return None
        tree = self._tree(chart, words, 0, len(words), int(scores.argmax()))
        tree.un_chomsky_normal_form()
        return tree

    def log_probability(self, words: Sequence[str]) -> float:
        """Of the likeliest tree, to base 2."""
        return float((self._chart(words)[0, len(words)] + self._root_scores).max())

    def _chart(self, words: Sequence[str]) -> Any:
        """Log-probabilities (n + 1, n + 1, symbols) of the likeliest subtree of each span."""
        length = len(words)
        chart = np.full((length + 1, length + 1, len(self.symbols)), IMPOSSIBLE)
        for i, word in enumerate(words):
            found = self._words.get(self._word(word)) or self._words.get(shape(word), [])
            for symbol, score in found or self._any_tag():
                chart[i, i + 1, symbol] = score
        for span in range(2, length + 1):
            for start in range(length - span + 1):
                self._fill(chart, start, start + span)
        return chart

    def _any_tag(self) -> list[tuple[int, float]]:
        """For words of a new shape: each symbol that has unknown words."""
        unknown = [e for word, es in self._words.items() if word.startswith("<unk") for e in es]
        return [(symbol, -20.0) for symbol in {symbol for symbol, _ in unknown}]

    def _fill(self, chart, start: int, end: int) -> None:
        left = chart[start, start + 1 : end][:, self._left]  # (splits, rules)
        right = chart[start + 1 : end, end][:, self._right]
        best = (left + right).max(axis=0) + self._rule_scores
        scores = np.maximum.reduceat(best, self._starts)
        chart[start, end, self._owners] = np.maximum(scores, IMPOSSIBLE)

    def _tree(self, chart, words: Sequence[str], start: int, end: int, symbol: int) -> Tree:
        if end == start + 1:
            return Tree(self.symbols[symbol], [words[start]])
        rules = np.flatnonzero(self._parents == symbol)
        left = chart[start, start + 1 : end][:, self._left[rules]]
        right = chart[start + 1 : end, end][:, self._right[rules]]
        scores = left + right + self._rule_scores[rules]
        split, best = np.unravel_index(scores.argmax(), scores.shape)
        middle, rule = start + 1 + int(split), rules[best]
        children = [
            self._tree(chart, words, start, middle, int(self._left[rule])),
            self._tree(chart, words, middle, end, int(self._right[rule])),
        ]
        return Tree(self.symbols[symbol], children)
