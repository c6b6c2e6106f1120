"""The token store: tokenised examples in shards, in memory or in files mapped into memory.

Shards can be read while a thread adds further ones. Files of a store have a temporary name until
all of them are written.
"""

import json
import pathlib
import shutil
import threading
from collections import Counter

import numpy as np

from tf_transformer.data.tokens import IdRows, TokenExamples
from tf_transformer.files.writing import write_whole

_SUMMARY = "store.json"


class TokenStore:
    """Shards of tokenised examples; more shards may be added while it is read.

    Its methods may be called from several threads.

    Args:
        folder: of the files; None: shards stay in memory.

    Attributes:
        skipped: number of examples skipped so far, by reason.
        num_examples: examples in the shards made so far.
    """

    def __init__(self, folder: pathlib.Path | None = None):
        self.skipped = Counter[str]()
        self.num_examples = 0
        self._folder = folder
        self._names: tuple[str, ...] = ()
        self._made = 0  # shards
        self._in_memory: list[TokenExamples] = []  # all shards, or none
        self._done = False
        self._error: Exception | None = None
        self._changed = threading.Condition()

    @classmethod
    def of(cls, *shards: TokenExamples) -> "TokenStore":
        """A store of shards in memory."""
        store = cls()
        for shard in shards:
            store.add(shard)
        store.finish()
        return store

    @property
    def names(self) -> tuple[str, ...]:
        """Names of an example's rows of ids; waits until the first shard is made."""
        self.has_shard(0)
        return self._names

    def has_shard(self, number: int) -> bool:
        """Whether shard `number` exists; waits until it is made, or all shards are."""
        with self._changed:
            self._changed.wait_for(lambda: self._made > number or self._done)
            self._raise_error()
            return self._made > number

    def shard(self, number: int) -> TokenExamples:
        """Shard `number`, which must exist. Files are opened at every call."""
        with self._changed:  # `publish` may be about to rename the folder
            self._raise_error()
            if self._folder is None:
                return self._in_memory[number]
            return _load_shard(self._folder, number, self._names)

    def num_shards(self) -> int:
        """Number of shards; waits until all are made."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
            self._raise_error()
            return self._made

    @property
    def is_complete(self) -> bool:
        """Whether all shards are made."""
        return self._done and self._error is None

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def add(self, shard: TokenExamples) -> None:
        """Adds the next shard: as files, or in memory when there is no folder."""
        if self._folder is not None:
            _save_shard(shard, self._folder, self._made)
        with self._changed:
            if self._folder is None:
                self._in_memory.append(shard)
            self._names = tuple(shard.rows)
            self._made += 1
            self.num_examples += len(shard)
            self._changed.notify_all()

    def finish(self) -> None:
        """Marks the store as complete."""
        with self._changed:
            self._done = True
            self._changed.notify_all()

    def fail(self, error: Exception) -> None:
        """Removes the files; whoever reads the store gets the error."""
        with self._changed:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._done, self._error = True, error
            self._changed.notify_all()

    def publish(self, folder: pathlib.Path, fingerprint: str) -> None:
        """Moves the files to their final folder, where `load` finds them.

        A store in memory stays there.
        """
        if self._folder is None:
            return
        summary = {
            "fingerprint": fingerprint,
            "names": self._names,
            "shards": self._made,
            "examples": self.num_examples,
            "skipped": self.skipped,
            "bytes": _size(self._folder),
        }
        write_whole(self._folder / _SUMMARY, json.dumps(summary, indent=1) + "\n")
        with self._changed:  # no thread may open a shard meanwhile
            if TokenStore.load(folder, fingerprint):  # another process has just made the same
                shutil.rmtree(self._folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)  # damaged
                self._folder.rename(folder)
            self._folder = folder

    @classmethod
    def load(cls, folder: pathlib.Path, fingerprint: str) -> "TokenStore | None":
        """The store in a folder, or None when it is missing, damaged or of other examples."""
        try:
            summary = json.loads((folder / _SUMMARY).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        if (summary["fingerprint"], summary["bytes"]) != (fingerprint, _size(folder)):
            return None
        store = cls(folder)
        store.skipped.update(summary["skipped"])
        store.num_examples = summary["examples"]
        store._names = tuple(summary["names"])
        store._made = summary["shards"]
        store.finish()
        return store


def _save_shard(shard: TokenExamples, folder: pathlib.Path, number: int) -> None:
    for name, rows in shard.rows.items():
        np.save(folder / f"{number:05d}.{name}.ids.npy", rows.ids)
        np.save(folder / f"{number:05d}.{name}.lengths.npy", rows.lengths)


def _load_shard(folder: pathlib.Path, number: int, names: tuple[str, ...]) -> TokenExamples:
    """The shard; its ids are read from the file only when they are used."""

    def rows(name: str) -> IdRows:
        ids = np.load(folder / f"{number:05d}.{name}.ids.npy", mmap_mode="r")
        return IdRows(ids, np.load(folder / f"{number:05d}.{name}.lengths.npy"))

    return TokenExamples({name: rows(name) for name in names})


def _size(folder: pathlib.Path) -> int:
    """Bytes of all shards' files; another number than in the summary means damage."""
    return sum(path.stat().st_size for path in folder.glob("*.npy"))
