"""The data folder, to which relative paths of text files are relative."""

import glob
import os
from dataclasses import replace

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.files.local_paths import local_path
from tf_transformer.files.reading import split_paths

VARIABLE = "TF_TRANSFORMER_DATA"


def in_folder(data: DataConfig) -> DataConfig:
    """Returns the options with paths that can be opened from the working folder.

    With `data.folder`, relative paths are relative to it. Without it, a path that exists stays as
    it is. A path that does not exist is relative to the folder in the environment variable
    `TF_TRANSFORMER_DATA`, if it is set. A run stores the paths as the user gave them.
    """
    return replace(
        data,
        corpora=tuple(_located_corpus(corpus, data.folder) for corpus in data.corpora),
        valid_corpora=tuple(_located_corpus(corpus, data.folder) for corpus in data.valid_corpora),
        tokenizer=_located_paths(data.tokenizer, data.folder),
    )


def _located_corpus(corpus: Corpus, folder: str) -> Corpus:
    return replace(
        corpus,
        source=located(corpus.source, folder),
        target=located(corpus.target, folder),
        path=_located_paths(corpus.path, folder),
    )


def _located_paths(given: str, folder: str) -> str:
    """One path, or several with commas between them, which some tasks take."""
    parts = [given] if os.path.exists(located(given, folder)) else split_paths(given)
    return ",".join(located(part, folder) for part in parts)


def located(path: str, folder: str) -> str:
    """Returns a path, or a pattern of paths, in the data folder; see `in_folder`. "" stays ""."""
    if path and folder:
        return os.path.join(folder, path)
    default = local_path(os.environ.get(VARIABLE, ""), VARIABLE)
    if not (path and default) or os.path.exists(path) or glob.glob(path):
        return path
    return os.path.join(default, path)
