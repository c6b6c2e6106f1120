"""The token store: tokenised examples in shards, in memory or in memory-mapped files.

A text of one shard stays in memory. A thread writes a longer text to files, one shard after
another. SentencePiece releases Python's lock, so training continues with the shards that exist. The
name of the files is a hash of text, tokenizer and options, by which another run finds them. The
folder of a store has a temporary name until all shards are written.
"""

import contextlib
import hashlib
import io
import itertools
import json
import os
import pathlib
import shutil
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tf_transformer.data.examples import ExampleStream, summary, warning
from tf_transformer.data.tokens import Encoder, IdRows, TokenExamples, tokenise, too_long
from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole

_SUMMARY = "store.json"
_FORMAT = 2  # version of the file format
_numbers = itertools.count()  # numbers of the stores that this process writes

Report = Callable[[str], object]


class TokenStore:
    """Shards of tokenised examples. Shards may be added while others are read.

    Several threads may call the methods.

    Args:
        folder: folder of the files; None: shards stay in memory.

    Attributes:
        skipped: number of skipped examples so far, by reason.
        num_examples: number of examples in the shards so far.
        epochs_differ: whether epochs have different examples, as those of a `Mixture` may.
        whole_pass: number of epochs after which every example has been seen.
    """

    epochs_differ = False
    whole_pass = 1

    def __init__(self, folder: pathlib.Path | None = None):
        self.skipped = Counter[str]()
        self.num_examples = 0
        self._folder = folder
        self._names: tuple[str, ...] = ()
        self._made = 0  # number of shards
        self._in_memory: list[TokenExamples] = []  # all shards, or none
        self._done = False
        self._error: Exception | None = None
        self._changed = threading.Condition()

    @classmethod
    def of(cls, *shards: TokenExamples) -> "TokenStore":
        """Makes a complete store of shards in memory."""
        store = cls()
        for shard in shards:
            store.add(shard)
        store.finish()
        return store

    @property
    def names(self) -> tuple[str, ...]:
        """Names of an example's rows of ids. Waits until the first shard is made."""
        self.has_shard(0)
        return self._names

    def has_shard(self, number: int) -> bool:
        """Whether shard `number` exists. Waits until it is made or the store is complete."""
        with self._changed:
            self._changed.wait_for(lambda: self._made > number or self._done)
            self._raise_error()
            return self._made > number

    def shard(self, number: int) -> TokenExamples:
        """Returns shard `number`, which must exist. Each call opens its files again."""
        with self._changed:  # `publish` may be about to rename the folder
            self._raise_error()
            if self._folder is None:
                return self._in_memory[number]
            rows = {}
            for name in self._names:  # ids are read from the file when they are used
                ids, lengths = _files(self._folder, number, name)
                rows[name] = IdRows(np.load(ids, mmap_mode="r"), np.load(lengths))
            return TokenExamples(rows)

    def draws(self, number: int, epoch: int) -> np.ndarray | None:
        """How often an epoch has each example of a shard: each once, which None stands for."""
        return None

    def num_shards(self) -> int:
        """Number of shards. Waits until all are made."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
            self._raise_error()
            return self._made

    def longest(self, name: str) -> int:
        """Most ids in a row of a name. Waits until all shards are made."""
        shards = map(self.shard, range(self.num_shards()))
        return max(int(shard[name].lengths.max()) for shard in shards)

    @property
    def is_complete(self) -> bool:
        """Whether all shards are made."""
        return self._done and self._error is None

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def add(self, shard: TokenExamples) -> None:
        """Adds the next shard, as files or in memory."""
        if self._folder is not None:
            write_shard(self._folder, self._made, shard)
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
        """Removes the files. Readers of the store get the error from now on."""
        with self._changed:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._done, self._error = True, error
            self._changed.notify_all()

    def publish(self, folder: pathlib.Path, fingerprint: str) -> None:
        """Moves the files, if there are some, to their final folder, where `load` finds them."""
        if self._folder is None:
            return
        counts = self._made, self.num_examples, self.skipped
        write_summary(self._folder, fingerprint, self._names, *counts)
        with self._changed:  # no thread may open a shard at this time
            if TokenStore.load(folder, fingerprint):  # another process has just made this store
                shutil.rmtree(self._folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)  # damaged
                self._folder.rename(folder)
            self._folder = folder

    @classmethod
    def load(cls, folder: pathlib.Path, fingerprint: str) -> "TokenStore | None":
        """Opens the store in a folder. None: it is missing, damaged, or has other examples."""
        try:
            facts = json.loads((folder / _SUMMARY).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        if (facts["fingerprint"], facts["bytes"]) != (fingerprint, _size(folder)):
            return None
        store = cls(folder)
        store.skipped.update(facts["skipped"])
        store.num_examples = facts["examples"]
        store._names = tuple(facts["names"])
        store._made = facts["shards"]
        store.finish()
        return store


def write_shard(folder: pathlib.Path, number: int, shard: TokenExamples) -> str:
    """Writes the files of a shard, each one as a whole; returns a hash of their content."""
    digest = hashlib.sha256()
    for name, rows in shard.rows.items():
        for path, array in zip(_files(folder, number, name), (rows.ids, rows.lengths), strict=True):
            content = io.BytesIO()
            np.save(content, array)
            digest.update(content.getbuffer())
            write_whole(path, content.getvalue())
    return digest.hexdigest()


def write_summary(
    folder: pathlib.Path,
    fingerprint: str,
    names: Sequence[str],
    shards: int,
    examples: int,
    skipped: Mapping[str, int],
) -> None:
    """Writes the file that makes a folder with the files of all shards a store; see `load`."""
    facts = {
        "fingerprint": fingerprint,
        "names": names,
        "shards": shards,
        "examples": examples,
        "skipped": skipped,
        "bytes": _size(folder),
    }
    write_whole(folder / _SUMMARY, json.dumps(facts, indent=1) + "\n")


def store_folder(
    folder: str | os.PathLike, encoder: Encoder, max_length: int, shard_examples: int, identity: str
) -> tuple[pathlib.Path, str]:
    """The folder of the store of a text with an identity, and the fingerprint in the store."""
    fingerprint = f"{_FORMAT} {encoder.identity} {max_length} {shard_examples} {identity}"
    return pathlib.Path(folder, hashlib.sha256(fingerprint.encode()).hexdigest()[:20]), fingerprint


def _files(folder: pathlib.Path, number: int, name: str) -> list[pathlib.Path]:
    """The files of the ids and of the lengths of a name in a shard."""
    return [folder / f"{number:05d}.{name}.{part}.npy" for part in ("ids", "lengths")]


def _size(folder: pathlib.Path) -> int:
    """Number of bytes in the files of all shards. A store is damaged if its summary differs."""
    return sum(path.stat().st_size for path in folder.glob("*.npy"))


def find_or_make(
    stream: ExampleStream,
    encoder: Encoder,
    max_length: int,
    shard_examples: int,
    folder: str | os.PathLike,
    keep: bool = False,
    report: Report = lambda _: None,
    warn: Report = lambda _: None,
) -> TokenStore:
    """Makes or finds the token store of a text, in a folder that holds the folders of all stores.

    It returns when the first shard is complete. A thread makes the other shards. With `keep`, a
    text of one shard is written, too. `report` receives a line with the number of examples, and
    another one when the thread is done; `warn` receives a warning if many examples are skipped. If
    every example is too long, or if the folder cannot be written, an `InputError` is raised.
    """
    options = encoder, max_length, shard_examples
    final, fingerprint = store_folder(folder, *options, stream.identity)
    store = TokenStore.load(final, fingerprint)
    if store is None:
        counts = Counter[str]()
        shards = tokenise(stream, encoder, max_length, shard_examples, counts)
        first = list(itertools.islice(shards, 2))
        if not first:
            if not counts[too_long(max_length)]:
                raise InputError(
                    "no example is left for training, because the validation text has them all. "
                    "Give more text, or leave this corpus out."
                )
            raise InputError(
                f"all {counts[too_long(max_length)]} examples are longer than "
                f"data.max_length={max_length} tokens; raise it, or split the text into sentences."
            )
        store = TokenStore(_partial_folder(final) if keep or len(first) > 1 else None)
        store.skipped = counts

        def make() -> None:
            for shard in itertools.chain(first, shards):
                store.add(shard)
            store.publish(final, fingerprint)
            store.finish()

        if len(first) > 1:
            return _made_in_thread(store, make, report, warn)
        make()
    _report(store, report, warn)
    return store


def _made_in_thread(
    store: TokenStore, make: Callable[[], None], report: Report, warn: Report
) -> TokenStore:
    """Starts a thread that makes a store. Returns when the first shard exists."""

    def work() -> None:
        try:
            make()
            _report(store, report, warn)
        except Exception as error:  # the reader of the next shard raises it again
            store.fail(error)

    # Nothing joins the thread, because a training run may need only some of the shards.
    threading.Thread(target=work, name="tokenising", daemon=True).start()
    store.has_shard(0)
    report(f"{store.num_examples:,} examples to begin with; tokenising the rest in the background")
    return store


def _report(store: TokenStore, report: Report, warn: Report) -> None:
    report(summary(store.num_examples, store.skipped))
    if doubt := warning(store.num_examples, store.skipped):
        warn(doubt)


def _partial_folder(final: pathlib.Path) -> pathlib.Path:
    """Makes the folder of an unfinished store; removes those of dead processes of this machine."""
    mark = f".partial-{socket.gethostname()}-"
    partial = final.with_name(f"{final.name}{mark}{os.getpid()}-{next(_numbers)}")
    try:
        for path in final.parent.glob(f"*{mark}*"):
            try:
                with contextlib.suppress(PermissionError):  # it lives, of another user
                    os.kill(int(path.name.split("-")[-2]), 0)
            except ProcessLookupError:
                shutil.rmtree(path, ignore_errors=True)
        partial.mkdir(parents=True)
    except OSError as error:
        raise InputError(
            f"tokenised text cannot be written to {final.parent}: {error}. Give another folder "
            "as data.cache_dir."
        ) from error
    return partial
