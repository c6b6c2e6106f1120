"""Makes the token store of a text, or finds the one that an earlier run made.

A text of one shard stays in memory. A longer one is written to files, shard by shard, by a
thread; SentencePiece releases Python's lock, so training goes on with the shards that exist. The
final name of the files is a fingerprint of everything they depend on: another text, tokenizer or
option never finds them, and the same one does.
"""

import functools
import hashlib
import itertools
import os
import pathlib
import shutil
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable

from tf_transformer.data import skipped
from tf_transformer.data.examples import ExampleStream
from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import Encoder, TokenExamples, tokenise, too_long
from tf_transformer.errors import InputError

_FORMAT = 2  # of the files; raised when they change
_numbers = itertools.count()  # of the stores that this process writes

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
    """The token store of a text.

    Returns once a text of one shard is complete; a thread makes the rest of a longer one.

    Args:
        stream: the examples.
        encoder: makes ids from their texts.
        max_length: examples with a row of more ids are skipped and counted.
        shard_examples: examples in a shard.
        folder: parent of the stores' folders; made when there is something to write.
        keep: write a text of one shard, too.
        report: receives the number of examples, and again when a thread has made the rest.
        warn: receives a warning when many of the examples are skipped; see `skipped.warning`.

    Raises:
        InputError: when every example is too long, or the folder cannot be written.
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
        make = functools.partial(_make, store, itertools.chain(first, shards), final, fingerprint)
        if len(first) > 1:
            return _made_in_thread(store, make, report, warn)
        make()
    _report(store, report, warn)
    return store


def _report(store: TokenStore, report: Report, warn: Report) -> None:
    report(skipped.summary(store.num_examples, store.skipped))
    if warning := skipped.warning(store.num_examples, store.skipped):
        warn(warning)


def _made_in_thread(
    store: TokenStore, make: Callable[[], None], report: Report, warn: Report
) -> TokenStore:
    """Starts to make a store; returns when its first shard exists."""

    def work() -> None:
        try:
            make()
            _report(store, report, warn)
        except Exception as error:  # raised again where the next shard is read
            store.fail(error)

    # Never joined: a training may need fewer shards than there are.
    threading.Thread(target=work, name="tokenising", daemon=True).start()
    store.has_shard(0)
    report(f"{store.num_examples:,} examples to begin with; tokenising the rest in the background")
    return store


def _make(
    store: TokenStore, shards: Iterable[TokenExamples], final: pathlib.Path, fingerprint: str
) -> None:
    for shard in shards:
        store.add(shard)
    store.publish(final, fingerprint)
    store.finish()


def _partial_folder(final: pathlib.Path) -> pathlib.Path:
    """A new folder to write a store in, with this machine and process in its name.

    Removes such folders of processes that were killed on this machine.
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
