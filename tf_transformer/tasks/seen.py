"""How much of a test set a run has seen: in its training text, and in its validation text."""

import contextlib
import io
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from tf_transformer.data.examples import Examples
from tf_transformer.data.text_keys import text_key
from tf_transformer.data.training_keys import keys_of, stored_keys
from tf_transformer.errors import InputError
from tf_transformer.run.run import Run
from tf_transformer.tasks.task import Task, TestSet, identity_of

PARTS = ("sources", "targets", "pairs")


class Seen(NamedTuple):
    """Which lines of a test set a training text has: bool (N,) each.

    Texts are equal without regard to spaces and to their Unicode form. A line with several
    references has several targets.
    """

    sources: np.ndarray
    targets: np.ndarray
    pairs: np.ndarray

    @classmethod
    def of(cls, tests: Sequence[TestSet], training: Iterable[np.ndarray]) -> list["Seen"]:
        """Compares all lines of test sets with the keys of a training text, in one pass.

        Example:
            >>> test = TestSet(["one", "two"], ["eins", "zwei"])
            >>> (seen,) = Seen.of([test], keys_of([("one", "ein"), ("a couple", "zwei ")]))
            >>> seen.sources.tolist(), seen.targets.tolist()
            ([True, False], [False, True])
        """
        keys = [_Keys.of(test) for test in tests]
        sources = np.array(sorted({key for x in keys for key in x.sources}), np.uint64)
        targets = np.array(
            sorted(set[int]().union(*(y for x in keys for y in x.targets))), np.uint64
        )
        pairs = set[tuple[int, int]]()  # of the training text, with a source or target of a test
        for block in training:
            is_tested = np.isin(block[:, 0], sources) | np.isin(block[:, 1], targets)
            pairs.update(map(tuple, block[is_tested].tolist()))
        return [x.among(pairs) for x in keys]

    @property
    def either(self) -> np.ndarray:
        """The lines whose source, or a target of which, the text has."""
        return self.sources | self.targets


class _Keys(NamedTuple):
    """The keys of the lines of a test set."""

    sources: list[int]
    targets: list[set[int]]  # of the references that are not missing

    @classmethod
    def of(cls, test: TestSet) -> "_Keys":
        rows = zip(test.references, *test.more_references, strict=True)
        targets = [{text_key(text) for text in row if text.strip()} for row in rows]
        return cls(list(map(text_key, test.inputs)), targets)

    def among(self, pairs: Set[tuple[int, int]]) -> Seen:
        """Which lines have the source, a target, or both of one of these pairs."""
        sources, targets = ({pair[side] for pair in pairs} for side in (0, 1))
        rows = list(zip(self.sources, self.targets, strict=True))
        return Seen(
            np.array([source in sources for source in self.sources], bool),
            np.array([not targets.isdisjoint(row) for row in self.targets], bool),
            np.array([any((source, x) in pairs for x in row) for source, row in rows], bool),
        )


def compare_with_training(
    task: Task, run: Run, tests: Mapping[str, TestSet], predictions: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Any]]:
    """How many lines of test sets the training text of a run has, and the scores of both parts.

    The run has the keys of its training text. For a run of an earlier version, the text is read.
    Prints a warning on stderr if a test set is validation text of the run, and a note if neither
    keys nor text can be read. A task without sources and targets has no such facts.

    Returns:
        For each test set, by its name: seen: the number of `sources`, `targets` and `pairs` in the
        training text, and the scores of the lines whose source or target is there. unseen: the
        scores of the other lines. Scores are missing for a part without lines. Without keys and
        text: nothing.
    """
    if task.fields != ("source", "target") or not task.only_text:
        return {}
    stored = run.folder.load_text() or {}
    for name, test in tests.items():
        _warn_of_validation_text(stored, test, name if len(tests) > 1 else "this test set")
    try:
        seen = Seen.of(list(tests.values()), _training_keys(task, run, stored.get("training", "")))
    except InputError as error:
        reason = str(error).partition(". ")[0].rstrip(".")
        print(f"seen in training: not known, because {reason}", file=sys.stderr)
        return {}
    return {
        name: _scores_by_part(task, test, predictions[name], own)
        for (name, test), own in zip(tests.items(), seen, strict=True)
    }


def _training_keys(task: Task, run: Run, identity: str) -> Iterable[np.ndarray]:
    """The keys of a run's training text; an `InputError` if they are not known.

    `identity` is the hash of the text that a run of an earlier version stored in place of keys.
    """
    if run.folder.keys.is_file():
        return stored_keys(run.folder.keys)
    if not identity:
        raise InputError("the run does not say which text it was trained on")
    splits = task.load_splits(run.config)
    if splits.identities()["training"] != identity:
        raise InputError("the text has changed since the training")
    return keys_of(splits.train.tagged)


def _warn_of_validation_text(stored: dict[str, str], test: TestSet, name: str) -> None:
    """Prints a warning if a test set is the validation text, of which the run has the hash."""
    rows = zip(test.inputs, test.references, strict=True)
    pairs = [pair for pair in rows if all(text.strip() for text in pair)]
    columns = {name: [pair[i] for pair in pairs] for i, name in enumerate(("source", "target"))}
    if stored.get("validation") == identity_of(Examples(columns).stream()):
        print(
            f"warning: {name} is the validation text of the run, which chose its best weights, so "
            "the scores are too high. Give another test set.",
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
    """The facts about a test set as a line of text."""
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
