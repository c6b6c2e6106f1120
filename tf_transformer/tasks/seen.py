"""How much of a test set a run has seen: in its training text, and in its validation text."""

import contextlib
import io
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.data.examples import Examples, Texts
from tf_transformer.data.text_keys import pair_key, text_key
from tf_transformer.errors import InputError
from tf_transformer.run.run import Run
from tf_transformer.tasks.task import Task, TestSet, identity_of

PARTS = ("sources", "targets", "pairs")


class Seen(NamedTuple):
    """Which lines of a test set a text has: bool (N,) each.

    Texts are equal without regard to spaces and to their Unicode form. A line with several
    references has several targets.
    """

    sources: np.ndarray
    targets: np.ndarray
    pairs: np.ndarray

    @classmethod
    def of(cls, test: TestSet, examples: Iterable[Texts]) -> "Seen":
        """Compares all lines of a test set with the pairs of a text, which is read once.

        Example:
            >>> test = TestSet(["one", "two"], ["eins", "zwei"])
            >>> Seen.of(test, [("one", "ein"), ("a couple", "zwei ")]).sources.tolist()
            [True, False]
        """
        sources = [{text_key(text)} for text in test.inputs]
        lists = zip(test.references, *test.more_references, strict=True)
        references = [[text for text in row if text.strip()] for row in lists]
        targets = [set(map(text_key, row)) for row in references]
        pairs = [
            {pair_key(source, target) for target in row}
            for source, row in zip(test.inputs, references, strict=True)
        ]
        tested = [set[int]().union(*rows) for rows in (sources, targets, pairs)]
        seen: list[set[int]] = [set(), set(), set()]
        for source, target in examples:
            keys = text_key(source), text_key(target), pair_key(source, target)
            for known, key, wanted in zip(seen, keys, tested, strict=True):
                if key in wanted:
                    known.add(key)
        columns = zip((sources, targets, pairs), seen, strict=True)
        return cls(*(np.array([bool(row & keys) for row in rows]) for rows, keys in columns))

    @property
    def either(self) -> np.ndarray:
        """The lines whose source, or a target of which, the text has."""
        return self.sources | self.targets


def compare_with_training(
    task: Task, run: Run, test: TestSet, predictions: Sequence[str]
) -> dict[str, Any]:
    """How many lines of a test set the training text of a run has, and the scores of both parts.

    Prints a warning on stderr if the test set is validation text of the run, and a note if its
    training text cannot be read. A task without sources and targets has no such facts.

    Returns:
        seen: the number of `sources`, `targets` and `pairs` in the training text, and the scores of
        the lines whose source or target is there. unseen: the scores of the other lines. Scores
        are missing for a part without lines. Without the training text: nothing.
    """
    if task.fields != ("source", "target") or not task.only_text:
        return {}
    stored = run.folder.load_text() or {}
    _warn_of_validation_text(stored, test)
    try:
        if not stored:
            raise InputError("the run does not say which text it was trained on")
        splits = task.load_splits(run.config)
        if splits.identities()["training"] != stored.get("training"):
            raise InputError("the text has changed since the training")
        seen = Seen.of(test, splits.train.tagged)
    except InputError as error:
        reason = str(error).partition(". ")[0].rstrip(".")
        print(f"seen in training: not known, because {reason}", file=sys.stderr)
        return {}
    return _scores_by_part(task, test, predictions, seen)


def _warn_of_validation_text(stored: dict[str, str], test: TestSet) -> None:
    """Prints a warning if the test set is the validation text, of which the run has the hash."""
    rows = zip(test.inputs, test.references, strict=True)
    pairs = [pair for pair in rows if all(text.strip() for text in pair)]
    columns = {name: [pair[i] for pair in pairs] for i, name in enumerate(("source", "target"))}
    if stored.get("validation") == identity_of(Examples(columns).stream()):
        print(
            "warning: this test set is the validation text of the run, which chose its best "
            "weights, so the scores are too high. Give another test set.",
            file=sys.stderr,
        )


def _scores_by_part(
    task: Task, test: TestSet, predictions: Sequence[str], seen: Seen
) -> dict[str, Any]:
    task = task.with_metrics()  # metrics on request take long
    parts: dict[str, dict[str, Any]] = {"seen": {}, "unseen": {}}
    for name in PARTS:
        parts["seen"][name] = int(getattr(seen, name).sum())
    for scores, chosen in zip(parts.values(), (seen.either, ~seen.either), strict=True):
        columns = test.inputs, predictions, test.references, *test.more_references
        inputs, outputs, *references = (
            [text for text, is_in in zip(column, chosen, strict=True) if is_in]
            for column in columns
        )
        scores["sentences"] = len(inputs)
        if inputs:
            with contextlib.redirect_stderr(io.StringIO()):  # warnings of the whole are enough
                scores |= task.score(inputs, outputs, references)
    return parts


def describe(parts: dict[str, Any]) -> str:
    """The facts of `compare_with_training` as a line of text; "" without facts."""
    if not parts:
        return ""
    seen, unseen = parts["seen"], parts["unseen"]
    counts = ", ".join(f"{seen[name]:,} {name}" for name in PARTS)
    total = seen["sentences"] + unseen["sentences"]
    line = f"seen in training: {counts} of {total:,}"
    if "bleu" in seen and "bleu" in unseen:
        line += (
            f"; BLEU {seen['bleu']:.2f} of the {seen['sentences']:,} sentences whose source or "
            f"target is there, {unseen['bleu']:.2f} of the others"
        )
    return line
