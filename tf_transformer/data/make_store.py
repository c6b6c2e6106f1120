"""Makes the token store of a text, or finds the store that an earlier run made.

A text of one shard stays in memory. A thread writes a longer text to files, one shard after
another. SentencePiece releases Python's lock, so training continues with the shards that exist. The
name of the files is a hash of text, tokenizer and options, by which another run finds them.
"""

import contextlib
import hashlib
import itertools
import os
import pathlib
import shutil
import socket
import threading
from collections import Counter
from collections.abc import Callable

from tf_transformer.data.examples import ExampleStream, summary, warning
from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import Encoder, tokenise, too_long
from tf_transformer.errors import InputError

_FORMAT = 2  # version of the file format
_numbers = itertools.count()  # numbers of the stores that this process writes

Report = Callable[[str], object]


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
    fingerprint = f"{_FORMAT} {encoder.identity} {max_length} {shard_examples} {stream.identity}"
    final = pathlib.Path(folder) / hashlib.sha256(fingerprint.encode()).hexdigest()[:20]
    store = TokenStore.load(final, fingerprint)
    if store is None:
        counts = Counter[str]()
        shards = tokenise(stream, encoder, max_length, shard_examples, counts)
        first = list(itertools.islice(shards, 2))
        if not first:
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
