"""Labelled bracket scores by EVALB's rules with COLLINS.prm (Sekine and Collins 1997).

A bracket is a label and the words that it spans. Before the comparison, punctuation is deleted.
Brackets with the label TOP and brackets without words do not count. ADVP equals PRT, and hyphens
end a label. A sentence is an error if its words differ from the reference, and is skipped if the
prediction is empty. Such sentences do not change the scores.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tf_transformer.errors import InputError
from tf_transformer.parsing.trees import Tree, clean, is_word, parse, without_function
from tf_transformer.text.normalization import comparable

DELETED_TAGS = {",", ":", "``", "''", "."}
DELETED_LABELS = {"TOP", "-NONE-"}
EQUAL_LABELS = {"PRT": "ADVP"}


class BracketCounts(NamedTuple):
    """The counts of one or more sentences. They can be added."""

    matched: int = 0  # brackets of prediction and reference that are equal
    predicted: int = 0  # brackets of the predictions
    reference: int = 0  # brackets of the references
    complete: int = 0  # sentences whose brackets are all equal
    valid: int = 0  # sentences that are compared
    errors: int = 0  # sentences whose words differ from the reference
    skipped: int = 0  # sentences without a prediction

    def __add__(self, other: "BracketCounts") -> "BracketCounts":  # type: ignore[override]
        return BracketCounts(*map(sum, zip(self, other, strict=True)))

    def scores(self) -> dict[str, float | int]:
        """Computes F1, precision, recall and complete match in percent, and sentence counts."""
        precision = 100.0 * self.matched / max(self.predicted, 1)
        recall = 100.0 * self.matched / max(self.reference, 1)
        both = precision + recall
        return {
            "f1": 2 * precision * recall / both if both else 0.0,
            "precision": precision,
            "recall": recall,
            "complete_match": 100.0 * self.complete / max(self.valid, 1),
            "sentences": self.valid + self.errors + self.skipped,
            "errors": self.errors,
            "skipped": self.skipped,
        }


def score_trees(predictions: Sequence[str], references: Sequence[str]) -> dict[str, float | int]:
    """Scores predicted trees, each against one reference; all trees are lines.

    Empty predictions are skipped. The scores f1, precision, recall and complete_match are in
    percent; sentences, errors and skipped are counts.

    Raises:
        InputError: if there is no tree, if the numbers of trees differ, or if a line is not a tree.

    Example:
        >>> score_trees(["(S (NP (XX it)) (XX is))"], ["(S (NP (PRP it)) (VP (VBZ is)))"])["f1"]
        80.0
    """
    if len(predictions) != len(references) or not references:
        raise InputError(
            f"expected one tree for each reference and at least one, got {len(predictions)} trees "
            f"and {len(references)} references."
        )
    total = BracketCounts()
    for number, (prediction, reference) in enumerate(zip(predictions, references, strict=True), 1):
        gold = clean(parse(reference, f"reference {number:,}"), f"reference {number:,}")
        total += _compare(prediction, gold, f"tree {number:,}")
    return total.scores()


def _compare(prediction: str, gold: Tree, place: str) -> BracketCounts:
    if not prediction.strip():
        return BracketCounts(skipped=1)
    tree = parse(prediction, place)
    if not tree.leaves():
        return BracketCounts(skipped=1)
    tree = clean(tree, place)
    keep = [tag not in DELETED_TAGS for _, tag in gold.pos()]
    own = keep
    if len(tree.leaves()) != len(keep):  # without the punctuation of one of them
        own = [tag not in DELETED_TAGS for _, tag in tree.pos()]
    words, right = (
        list(itertools.compress(map(comparable, one.leaves()), flags))
        for one, flags in ((tree, own), (gold, keep))
    )
    if words != right:
        return BracketCounts(errors=1)
    expected, predicted = brackets(gold, keep), brackets(tree, own)
    return BracketCounts(
        matched=(expected & predicted).total(),
        predicted=predicted.total(),
        reference=expected.total(),
        complete=int(expected == predicted),
        valid=1,
    )


def brackets(tree: Tree, keep: Sequence[bool]) -> Counter[tuple[str, int, int]]:
    """Counts the brackets of a cleaned tree; `keep` says for each word whether it counts.

    A bracket is its label, its first word and its end, the word after its last word. Words are
    numbered from 0 on.
    """
    counts: Counter[tuple[str, int, int]] = Counter()
    is_kept = iter(keep)

    def visit(node: Tree, start: int) -> int:
        """Adds the brackets of a node, and returns the number of the word after it."""
        if is_word(node):
            return start + next(is_kept)
        end = start
        for child in node:
            end = visit(child, end)
        label = without_function(node.label())
        if end > start and label not in DELETED_LABELS:
            counts[EQUAL_LABELS.get(label, label), start, end] += 1
        return end

    visit(tree, 0)
    return counts
