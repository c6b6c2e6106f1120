"""The folder that relative paths of text files are relative to."""

import glob
import os
from dataclasses import replace
from typing import Any

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.files.reading import split_paths

VARIABLE = "TF_TRANSFORMER_DATA"
_ONE = ("train_source", "train_target", "valid_source", "valid_target")
_SEVERAL = ("train_file", "valid_file")  # some tasks take paths with commas between them


def in_folder(data: DataConfig) -> DataConfig:
    """The options with paths of text files that can be opened from the working folder.

    With `data.folder`, relative paths are relative to it. Else a path that is there stays as it is,
    and another one is relative to the folder that the environment variable `TF_TRANSFORMER_DATA`
    names, if it is set. A run stores the paths as they were given.

    Example:
        >>> in_folder(DataConfig(folder="corpora", train_file="a.txt", valid_file="/b.txt"))
        DataConfig(..., train_file='corpora/a.txt', valid_file='/b.txt', ...)
    """
    paths: dict[str, Any] = {name: located(getattr(data, name), data.folder) for name in _ONE}
    for name in _SEVERAL:
        given = getattr(data, name)
        whole = located(given, data.folder)
        parts = [given] if os.path.exists(whole) else split_paths(given)
        paths[name] = ",".join(located(part, data.folder) for part in parts)
    for name in ("corpora", "valid_corpora"):
        paths[name] = tuple(_corpus(corpus, data.folder) for corpus in getattr(data, name))
    return replace(data, **paths)


def _corpus(corpus: Corpus, folder: str) -> Corpus:
    source, target, path = (
        located(given, folder) for given in (corpus.source, corpus.target, corpus.path)
    )
    return replace(corpus, source=source, target=target, path=path)


def located(path: str, folder: str) -> str:
    """A path, or a pattern of paths, in the data folder; see `in_folder`. "" stays as it is."""
    if path and folder:
        return os.path.join(folder, path)
    default = os.environ.get(VARIABLE, "")
    if not (path and default) or os.path.exists(path) or glob.glob(path):
        return path
    return os.path.join(default, path)
