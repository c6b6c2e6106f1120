"""Scores parsers on a test set, beside right-branching trees and a PCFG.

    python -m research.parsing --train_file TRAIN --reference TEST --run_dirs runs/parsing

For each run: with the search restricted to valid trees, and with repair of unrestricted output.
"""

from collections.abc import Callable, Sequence

from nltk.tree import Tree

from benchmarks.harness import results
from benchmarks.harness.results import Row
from benchmarks.harness.tables import of_rows
from research.parsing.pcfg import PCFG
from tf_transformer.commands import command_line
from tf_transformer.parsing.bracket_scores import score_trees
from tf_transformer.parsing.trees import one_line, read_trees
from tf_transformer.parsing.words import leaf
from tf_transformer.run.run import Run

LABELS = ("NP", "VP", "S", "X")  # of right-branching brackets; the best one is reported
FINAL = {".", "?", "!", "''"}


def main(
    train_file: str,
    reference: str,
    run_dirs: list[str] | None = None,
    longest: int = 60,
    output: str = "",
) -> None:
    """Prints a table of scores.

    Args:
        train_file: bracket files from which the PCFG is estimated.
        reference: bracket files to score on.
        run_dirs: trained runs of the task parsing.
        longest: the most words of a sentence that the PCFG parses; longer ones get right-branching
            trees, as do those that it has no tree for.
        output: result file to write, for example research/results/parsing.json.
    """
    references = [tree for tree, _ in read_trees(reference)]
    sentences = [" ".join(tree.leaves()) for tree in references]
    lines = [one_line(tree) for tree in references]
    rows: list[Row] = []

    def add(system: str, predict: Callable[[Sequence[str]], list[str]]) -> None:
        scores = score_trees(predict(sentences), lines)
        rows.append({"system": system} | {name: round(score, 2) for name, score in scores.items()})
        print(of_rows(rows[-1:]), flush=True)

    for label in LABELS:
        add(
            f"right-branching, {label}",
            lambda texts: [right_branching(text.split(), label) for text in texts],  # noqa: B023
        )
    rows[:] = [max(rows, key=lambda row: row["f1"])]
    add("PCFG", lambda texts: pcfg_trees(train_file, texts, longest))
    for run_dir in run_dirs or []:
        for grammar in (True, False):
            add(f"{run_dir}, {'restricted' if grammar else 'repaired'}", run_of(run_dir, grammar))
    print(of_rows(rows))
    results.save(output, rows, ["tensorflow", "nltk"], longest=longest)


def right_branching(words: Sequence[str], label: str) -> str:
    """A root S, in it a bracket for each suffix of the words; a final full stop is in the root."""
    end = len(words) - (len(words) > 1 and words[-1] in FINAL)
    tree = leaf(words[end - 1])
    for word in reversed(words[: end - 1]):
        tree = f"({label} {leaf(word)} {tree})"
    return f"(S {' '.join([tree, *map(leaf, words[end:])])})"


def pcfg_trees(train_file: str, sentences: Sequence[str], longest: int) -> list[str]:
    """The trees of a PCFG; right-branching ones where it has none."""
    grammar = PCFG([tree for tree, _ in read_trees(train_file)])
    trees = []
    for sentence in sentences:
        words = sentence.split()
        found = grammar.parse(words) if len(words) <= longest else None
        trees.append(right_branching(words, "NP") if found is None else one_line(rooted(found)))
    return trees


def rooted(tree: Tree) -> Tree:
    """A tree whose root is a bracket, not a tag."""
    return Tree("TOP", [tree])


def run_of(run_dir: str, grammar: bool) -> Callable[[Sequence[str]], list[str]]:
    """The parser of a run."""
    from tf_transformer.tasks import load_predictor

    predictor = load_predictor(Run.load(run_dir, task_options={"grammar": grammar}))
    return lambda texts: [found.text for found in predictor(texts)]


if __name__ == "__main__":
    command_line.run(main)
