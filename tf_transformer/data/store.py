"""The token store: a tokenised text in shards, in memory or in files mapped into memory.

A text of one shard stays in memory. A longer one is written to files, shard by shard, by a thread
of its own: tokenising lets go of Python's lock, so training goes on with the shards there are.
The files get their final name when all of them are there, and that name is a fingerprint of all
that made them: another text, tokenizer or option never finds them, and the same one does.
"""

import functools
import hashlib
import itertools
import json
import os
import pathlib
import shutil
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from tf_transformer.data.corpus import PairStream
from tf_transformer.data.tokens import IdRows, TokenPairs, tokenise, too_long
from tf_transformer.errors import InputError
from tf_transformer.files import write_whole
from tf_transformer.tokenizer import Tokenizer

_FORMAT = 1  # of the files; raised when they change
_SUMMARY = "store.json"
_numbers = itertools.count()  # of the stores that this process writes


class TokenStore:
    """Shards of a tokenised text, some of which may still be being made.

    Its methods may be called from several threads.

    Attributes:
        skipped: how many pairs were left out so far, by reason.
        num_pairs: how many pairs the shards made so far hold.
    """

    def __init__(self, folder: pathlib.Path | None = None):
        self.skipped = Counter[str]()
        self.num_pairs = 0
        self._folder = folder
        self._made = 0  # shards
        self._in_memory: list[TokenPairs] = []  # all of them, or none
        self._done = False
        self._error: Exception | None = None
        self._changed = threading.Condition()

    @classmethod
    def of(cls, *shards: TokenPairs) -> "TokenStore":
        """A store of shards in memory."""
        store = cls()
        for shard in shards:
            store.add(shard)
        store.finish()
        return store

    def has(self, number: int) -> bool:
        """Whether there is a shard `number`; waits until it is made, or all are."""
        with self._changed:
            self._changed.wait_for(lambda: self._made > number or self._done)
            self._raise_error()
            return self._made > number

    def shard(self, number: int) -> TokenPairs:
        """Shard `number`, which there is. From files it is opened anew each time."""
        with self._changed:  # the files may be about to move
            self._raise_error()
            if self._folder is None:
                return self._in_memory[number]
            return _load_shard(self._folder, number)

    def num_shards(self) -> int:
        """How many shards there are; waits until all are made."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
            self._raise_error()
            return self._made

    @property
    def is_whole(self) -> bool:
        """Whether all shards are made."""
        return self._done and self._error is None

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def add(self, shard: TokenPairs) -> None:
        """Takes the next shard: into its folder, or without one into memory."""
        if self._folder is not None:
            _save_shard(shard, self._folder, self._made)
        with self._changed:
            if self._folder is None:
                self._in_memory.append(shard)
            self._made += 1
            self.num_pairs += shard.num_pairs
            self._changed.notify_all()

    def finish(self) -> None:
        """Says that no further shard will come."""
        with self._changed:
            self._done = True
            self._changed.notify_all()

    def abandon(self, error: Exception) -> None:
        """Says that no further shard can be made, and why; what was written goes."""
        with self._changed:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._done, self._error = True, error
            self._changed.notify_all()

    def save(self, folder: pathlib.Path, fingerprint: str) -> None:
        """Writes what `load` needs, and gives the files their final place.

        Of a store in memory nothing is written.
        """
        if self._folder is None:
            return
        summary = {
            "fingerprint": fingerprint,
            "shards": self._made,
            "pairs": self.num_pairs,
            "skipped": self.skipped,
            "bytes": _size(self._folder),
        }
        write_whole(self._folder / _SUMMARY, json.dumps(summary, indent=1) + "\n")
        with self._changed:  # nobody may be opening a shard meanwhile
            if TokenStore.load(folder, fingerprint):  # another process has just made the same
                shutil.rmtree(self._folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)  # damaged
                self._folder.rename(folder)
            self._folder = folder

    @classmethod
    def load(cls, folder: pathlib.Path, fingerprint: str) -> "TokenStore | None":
        """The store in a folder; None unless it is there, whole, and has this fingerprint."""
        try:
            summary = json.loads((folder / _SUMMARY).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        if (summary["fingerprint"], summary["bytes"]) != (fingerprint, _size(folder)):
            return None
        store = cls(folder)
        store.skipped.update(summary["skipped"])
        store.num_pairs = summary["pairs"]
        store._made = summary["shards"]
        store.finish()
        return store


def tokenised(
    text: PairStream,
    tokenizer: Tokenizer,
    max_length: int,
    shard_pairs: int,
    folder: str | os.PathLike,
    keep: bool = False,
    tell: Callable[[str], object] = lambda _: None,
) -> TokenStore:
    """The store of a text: found in a folder of stores, or made.

    Comes back with a text of one shard whole; of a longer one the rest is made in a thread.

    Args:
        text: the pairs.
        tokenizer: makes them ids.
        max_length: pairs with more tokens on a side are left out, counted.
        shard_pairs: pairs in a shard.
        folder: where stores are; made when there is something to write.
        keep: write a text of one shard, too.
        tell: is told how many pairs there are, and once more when a thread has made the rest.

    Raises:
        InputError: when every pair is too long, or the folder cannot be written.
    """
    fingerprint = _fingerprint(text, tokenizer, max_length, shard_pairs)
    final = pathlib.Path(folder) / hashlib.sha256(fingerprint.encode()).hexdigest()[:20]
    store = TokenStore.load(final, fingerprint)
    if store is None:
        skipped = Counter[str]()
        shards = tokenise(text, tokenizer, max_length, shard_pairs, skipped)
        first = list(itertools.islice(shards, 2))
        _require_pairs(first, skipped, max_length)
        store = TokenStore(_partial_folder(final) if keep or len(first) > 1 else None)
        store.skipped = skipped
        rest = itertools.chain(first, shards)
        make = functools.partial(_make, store, rest, final, fingerprint)
        if len(first) > 1:
            return _made_in_a_thread(store, make, tell)
        make()
    tell(_in_words(store))
    return store


def _made_in_a_thread(
    store: TokenStore, make: Callable[[], None], tell: Callable[[str], object]
) -> TokenStore:
    """Starts to make a store, and comes back when its first shard is there."""

    def work() -> None:
        try:
            make()
            tell(_in_words(store))
        except Exception as error:  # raised where the next shard is asked for
            store.abandon(error)

    # Nobody waits for it in the end: a training may need fewer shards than there are.
    threading.Thread(target=work, name="tokenising", daemon=True).start()
    store.has(0)
    tell(f"{store.num_pairs:,} pairs to begin with; the others are tokenised meanwhile")
    return store


def _make(
    store: TokenStore, shards: Iterable[TokenPairs], final: pathlib.Path, fingerprint: str
) -> None:
    for shard in shards:
        store.add(shard)
    store.save(final, fingerprint)
    store.finish()


def _require_pairs(shards: list[TokenPairs], skipped: Counter[str], max_length: int) -> None:
    if not shards:
        raise InputError(
            f"all {skipped[too_long(max_length)]} pairs are longer than "
            f"data.max_length={max_length} tokens; raise it, or split the text into sentences."
        )


def _in_words(store: TokenStore) -> str:
    skipped = "".join(f", {count:,} skipped ({why})" for why, count in store.skipped.items())
    return f"{store.num_pairs:,} pairs{skipped}"


def _fingerprint(text: PairStream, tokenizer: Tokenizer, max_length: int, shard_pairs: int) -> str:
    """Everything that the files depend on."""
    vocabulary = hashlib.sha256(tokenizer.model).hexdigest()
    return f"{_FORMAT} {vocabulary} {max_length} {shard_pairs} {text.identity}"


# --- files -----------------------------------------------------------------------------------


def _save_shard(shard: TokenPairs, folder: pathlib.Path, number: int) -> None:
    for side, rows in shard._asdict().items():
        np.save(folder / f"{number:05d}.{side}.ids.npy", rows.ids)
        np.save(folder / f"{number:05d}.{side}.lengths.npy", rows.lengths)


def _load_shard(folder: pathlib.Path, number: int) -> TokenPairs:
    """The shard, of whose ids only those that are asked for will be read."""

    def rows(side: str) -> IdRows:
        ids = np.load(folder / f"{number:05d}.{side}.ids.npy", mmap_mode="r")
        return IdRows(ids, np.load(folder / f"{number:05d}.{side}.lengths.npy"))

    return TokenPairs(*map(rows, TokenPairs._fields))


def _size(folder: pathlib.Path) -> int:
    """Bytes of all shards' files: less than written means damaged."""
    return sum(path.stat().st_size for path in folder.glob("*.npy"))


def _partial_folder(final: pathlib.Path) -> pathlib.Path:
    """A new folder to write a store in, named so that its remains can be told from a living one.

    Remains of processes that were killed on this machine go.
    """
    mark = f".partial-{socket.gethostname()}-"
    partial = final.with_name(f"{final.name}{mark}{os.getpid()}-{next(_numbers)}")
    try:
        for path in final.parent.glob(f"*{mark}*"):
            if not _is_alive(int(path.name.split("-")[-2])):
                shutil.rmtree(path, ignore_errors=True)
        partial.mkdir(parents=True)
    except OSError as error:
        raise InputError(
            f"tokenised text cannot be written to {final.parent}: {error}. Give another folder "
            "as data.cache_dir."
        ) from error
    return partial


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
