"""Penn bracket files: reads and cleans trees, and writes them as lines.

A cleaned tree has no traces, function tags or indices, and no outer bracket without a label. NLTK
parses the text of a tree.
"""

import glob
import itertools
import os
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from tf_transformer.errors import InputError
from tf_transformer.files.reading import decode, read_lines, split_paths

Tree = Any  # nltk.Tree; NLTK is imported when trees are read

TRACE = "-NONE-"
OUTER_LABELS = {"", "TOP", "ROOT", "S1"}  # labels of the bracket around a whole tree
OUTER = "TOP"
_TOKEN = re.compile(r"[()]|[^\s()]+")
_FUNCTION_TAG = re.compile(r"[-=|]")


def tree_files(paths: str) -> list[pathlib.Path]:
    """The bracket files that an option names: files, folders and patterns such as wsj/0[2-9].

    Commas separate them. A folder stands for all its .mrg files. Files of a folder or pattern are
    sorted by the numbers in their paths.
    """
    found: list[pathlib.Path] = []
    for part in split_paths(paths):
        named = map(pathlib.Path, [part] if os.path.exists(part) else glob.glob(part))
        within = (path.rglob("*.mrg") if path.is_dir() else [path] for path in named)
        files = list(itertools.chain.from_iterable(within))
        if not files:
            raise InputError(
                f"expected a file, a folder with .mrg files or a pattern of them, but {part} names "
                "none. Check the path; separate several paths by commas."
            )
        found += sorted(files, key=_by_number)
    return found


def _by_number(path: pathlib.Path) -> list[tuple[int, str]]:
    """Makes a sort key that puts wsj_9 before wsj_10."""
    parts = re.split(r"(\d+)", str(path))
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def read_trees(paths: str) -> Iterator[tuple[Tree, str]]:
    """Reads the trees of `tree_files(paths)`; yields each, cleaned, and its place.

    Raises:
        InputError: if brackets do not match, if text stands outside trees, or if a tree has no
            words. The message has file and line.
    """
    for path in tree_files(paths):
        for text, place in split_trees(decode(read_lines(path), path), path):
            yield clean(parse(text, place), place), place


def split_trees(lines: Iterable[str], name: str | os.PathLike) -> Iterator[tuple[str, str]]:
    """Divides the lines of the file with this name into texts of trees, each with its place."""
    tokens: list[str] = []
    depth = first = 0
    for number, line in enumerate(lines, 1):
        for token in _TOKEN.findall(line):
            if depth == 0:
                first = number
                if token != "(":
                    got = "')' without an opening bracket" if token == ")" else repr(token)
                    raise InputError(
                        f"{name}, line {number:,}: expected '(', the start of a tree, got {got}."
                    )
            depth += {"(": 1, ")": -1}.get(token, 0)
            tokens.append(token)
            if depth == 0:
                yield " ".join(tokens), f"{name}, line {first:,}"
                tokens = []
    if depth:
        raise InputError(
            f"{name}, line {first:,}: the tree that begins here is not closed; {depth} closing "
            "brackets are missing."
        )


def parse(text: str, place: str) -> Tree:
    """Parses a tree. Each bracket must hold other brackets, or a tag and a word."""
    try:
        from nltk.tree import Tree
    except ImportError as error:
        raise InputError(
            "NLTK, which reads trees, is not installed: pip install 'tf_transformer[parsing]'."
        ) from error

    try:
        tree = Tree.fromstring(text)
    except ValueError as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"{place}: expected a tree in brackets: {reason}") from error
    for node in tree.subtrees():
        words = [child for child in node if isinstance(child, str)]
        if words and len(node) > 1:
            raise InputError(
                f"{place}: expected brackets with a tag and a word, such as (NN house), got "
                f"{' '.join(words)!r} among {len(node)} parts of a bracket."
            )
    return tree


def clean(tree: Tree, place: str) -> Tree:
    """Removes traces, empty brackets, function tags, indices and the outer bracket of a tree."""
    cleaned = _clean(tree)
    if cleaned is None:
        raise InputError(f"{place}: expected a tree with words, got one without words.")
    while cleaned.label() in OUTER_LABELS and len(cleaned) == 1 and not is_word(cleaned):
        cleaned = cleaned[0]
    if is_word(cleaned) or cleaned.label() in OUTER_LABELS:  # the root of a sentence is a bracket
        cleaned = type(tree)(OUTER, [cleaned] if is_word(cleaned) else list(cleaned))
    return cleaned


def _clean(tree: Tree) -> Tree | None:
    if is_word(tree):
        return None if tree.label() == TRACE else tree
    branches = (child for child in tree if not isinstance(child, str))
    children = [child for child in map(_clean, branches) if child is not None]
    return type(tree)(without_function(tree.label()), children) if children else None


def without_function(label: str) -> str:
    """Removes function tags and indices: NP-SBJ-1 → NP. A label such as -LRB- stays."""
    return _FUNCTION_TAG.split(label, maxsplit=1)[0] or label


def is_word(tree: Tree) -> bool:
    """Whether a node is a tag with a word."""
    return len(tree) == 1 and isinstance(tree[0], str)


def one_line(tree: Tree) -> str:
    """Writes a tree as one line of a bracket file."""
    return tree.pformat(margin=sys.maxsize)
