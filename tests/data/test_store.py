"""The token store: it reads back the tokens it was given, and never incomplete or stale files."""

import json
import os
import threading

import numpy as np
import pytest

from tf_transformer.data import store as token_store
from tf_transformer.data.examples import Examples, ExampleStream
from tf_transformer.data.readers.text import stream_files
from tf_transformer.data.store import TokenStore, find_or_make
from tf_transformer.data.tokens import Encoder
from tf_transformer.errors import InputError
from tf_transformer.text.tokenizer import Tokenizer


def pairs_of(sources, targets) -> Examples:
    return Examples({"source": sources, "target": targets})


TEXT = pairs_of([f"line {n}" for n in range(100)], [f"Zeile {n} {n}" for n in range(100)])


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXT["source"] + TEXT["target"], vocabulary_size=320)


def encoder_of(tokenizer) -> Encoder:
    def encode(texts):
        return {name: tokenizer.encode_batch(each) for name, each in texts.items()}

    return Encoder(encode, tokenizer.vocabulary_size, str(hash(tokenizer.model)))


@pytest.fixture
def make(tokenizer, tmp_path):
    """Makes, or finds, the store of a text in shards of 30 examples."""

    def make(text=TEXT, tokenizer=tokenizer, wait=True, **options) -> TokenStore:
        options = {"max_length": 50, "shard_examples": 30, "folder": tmp_path / "stores"} | options
        stream = text if isinstance(text, ExampleStream) else text.stream()
        store = find_or_make(stream, encoder_of(tokenizer), **options)
        if wait:
            store.num_shards()
        return store

    return make


def rows_of(store: TokenStore) -> list[tuple[list[int], list[int]]]:
    """All pairs of ids of a store."""
    shards = [store.shard(number) for number in range(store.num_shards())]
    return [
        tuple(ids[0].tolist() for ids in shard.batch(np.array([n])).values())
        for shard in shards
        for n in range(len(shard))
    ]


def expected_rows(text, tokenizer):
    columns = (map(tokenizer.encode, texts) for texts in text.texts.values())
    return list(zip(*columns, strict=True))


@pytest.fixture
def no_tokenising(monkeypatch):
    """A function; after its call every store must be found."""

    def tokenise(*_):
        raise AssertionError("a store was made although it exists")

    return lambda: monkeypatch.setattr(token_store, "tokenise", tokenise)


def folders(tmp_path):
    stores = tmp_path / "stores"
    return sorted(path.name for path in stores.iterdir()) if stores.exists() else []


# --- made and found --------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"shard_examples": 1000}, {"shard_examples": 7}])
def test_a_store_read_back_is_what_was_written(make, tokenizer, no_tokenising, options):
    expected = expected_rows(TEXT, tokenizer)
    assert rows_of(make(keep=True, **options)) == expected
    no_tokenising()
    found = make(keep=True, **options)
    assert rows_of(found) == expected
    assert found.num_examples == 100


def test_ids_of_files_are_mapped_into_memory(make):
    for store in (make(), make()):  # made, and found
        assert store.names == ("source", "target")
        for rows in store.shard(1).rows.values():
            assert isinstance(rows.ids.base, np.memmap)


def test_a_text_of_one_shard_stays_in_memory(make, tmp_path):
    assert make(shard_examples=100).num_shards() == 1
    assert folders(tmp_path) == []
    assert make(shard_examples=99).num_shards() == 2
    assert len(folders(tmp_path)) == 1


def test_counts_of_skipped_examples_are_stored(make, no_tokenising):
    text = pairs_of([*TEXT["source"], "x" * 99], [*TEXT["target"], "y"])
    expected = {"longer than 50 tokens": 1}
    assert make(text).skipped == expected
    no_tokenising()
    reports = []
    assert make(text, report=reports.append).skipped == expected
    assert reports == ["100 examples, 1 skipped (longer than 50 tokens)"]


# --- never the wrong one ---------------------------------------------------------------------


def test_another_text_tokenizer_or_option_makes_another_store(make, tokenizer, tmp_path):
    make()
    changed = pairs_of([*TEXT["source"][:-1], "another"], TEXT["target"])
    other = Tokenizer.train(TEXT["source"], vocabulary_size=310)
    assert rows_of(make(changed)) == expected_rows(changed, tokenizer)
    assert rows_of(make(tokenizer=other)) == expected_rows(TEXT, other)
    assert {len(row) for row, _ in rows_of(make(max_length=8))} <= set(range(9))
    assert make(shard_examples=50).num_shards() == 2
    assert len(folders(tmp_path)) == 5


def test_changed_files_are_tokenised_anew(make, tokenizer, tmp_path):
    paths = [tmp_path / "a.en", tmp_path / "a.de"]

    def write(text):
        for path, lines in zip(paths, text.texts.values(), strict=True):
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            os.utime(path, ns=(len(text), len(text)))

    for text in (TEXT, TEXT.take(range(60)), TEXT):
        write(text)
        assert rows_of(make(stream_files(*paths))) == expected_rows(text, tokenizer)


@pytest.fixture
def failing_store(make) -> TokenStore:
    """A store whose thread fails after the third shard, but not before the store is returned."""
    returned = threading.Event()

    def start(_):
        for number, pair in enumerate(TEXT.stream()):
            if number == 95:
                returned.wait()
                raise OSError("the disk is gone")
            yield pair

    store = make(ExampleStream(TEXT.fields, start, TEXT.stream().identify), wait=False)
    returned.set()
    return store


def test_a_half_written_store_is_never_used(failing_store, make, tokenizer, tmp_path):
    """Reading fails after the third shard, and succeeds the next time."""
    with pytest.raises(OSError, match="the disk is gone"):
        failing_store.num_shards()
    assert not failing_store.is_complete
    assert folders(tmp_path) == []
    assert rows_of(make()) == expected_rows(TEXT, tokenizer)


@pytest.mark.parametrize("damage", ["truncated", "missing", "no summary", "broken summary"])
def test_a_damaged_store_is_made_again(make, tokenizer, tmp_path, damage):
    make()
    (folder,) = (tmp_path / "stores").iterdir()
    ids = sorted(folder.glob("*.ids.npy"))[-1]
    if damage == "truncated":
        ids.write_bytes(ids.read_bytes()[:-2])
    elif damage == "missing":
        ids.unlink()
    elif damage == "no summary":
        (folder / "store.json").unlink()
    else:
        (folder / "store.json").write_text("{")
    assert rows_of(make()) == expected_rows(TEXT, tokenizer)
    assert folders(tmp_path) == [folder.name]


def test_a_store_of_another_fingerprint_is_not_read(make, tmp_path, tokenizer):
    """Should two fingerprints ever share a name."""
    make()
    (folder,) = (tmp_path / "stores").iterdir()
    summary = json.loads((folder / "store.json").read_text())
    (folder / "store.json").write_text(json.dumps(summary | {"fingerprint": "another"}))
    assert TokenStore.load(folder, summary["fingerprint"]) is None


def test_folders_of_killed_processes_are_removed(make, tmp_path):
    """2 to the 22 is the largest process number of Linux."""
    host = token_store.socket.gethostname()
    (tmp_path / "stores").mkdir()
    dead, alive, elsewhere = (
        tmp_path / "stores" / name
        for name in (
            f"a.partial-{host}-{2**22 + 1}-0",
            f"a.partial-{host}-{os.getppid()}-0",
            f"a.partial-other.{host}-{2**22 + 1}-0",
        )
    )
    for path in (dead, alive, elsewhere):
        path.mkdir()
    make()
    assert [path.exists() for path in (dead, alive, elsewhere)] == [False, True, True]


@pytest.mark.parametrize("when", [0, 50, 99])
def test_a_store_that_another_process_makes_meanwhile_is_used(make, tokenizer, tmp_path, when):
    """The other one starts and ends while we tokenise pair number `when`, and then reads."""
    text, others = TEXT.stream(), []

    def start(skipped):
        for number, pair in enumerate(text.start(skipped)):
            if number == when:
                others.append(make())
                others.append(inodes(tmp_path))
            yield pair

    ours = make(ExampleStream(TEXT.fields, start, text.identify))
    for store in (ours, others[0]):
        assert rows_of(store) == expected_rows(TEXT, tokenizer)
    assert inodes(tmp_path) == others[1]


def inodes(tmp_path):
    """The files of complete stores."""
    files = (tmp_path / "stores").rglob("*.npy")
    return {path: path.stat().st_ino for path in files if ".partial-" not in str(path)}


@pytest.mark.parametrize("options", [{}, {"shard_examples": 1000, "keep": True}])
def test_a_folder_that_cannot_be_written(make, tmp_path, options):
    (tmp_path / "stores").write_text("a file")
    with pytest.raises(InputError) as error:
        make(**options)
    message = str(error.value)
    assert message.startswith(f"tokenised text cannot be written to {tmp_path / 'stores'}: ")
    assert message.endswith(". Give another folder as data.cache_dir.")


def test_all_examples_too_long(make, tmp_path):
    with pytest.raises(InputError) as error:
        make(pairs_of(["xxx"] * 3, ["x"] * 3), max_length=4)
    assert str(error.value) == (
        "all 3 examples are longer than data.max_length=4 tokens; raise it, or split the text "
        "into sentences."
    )
    assert folders(tmp_path) == []


# --- beside training -------------------------------------------------------------------------


def test_first_shards_can_be_read_while_others_are_made(make, tokenizer, tmp_path):
    """Reading blocks in the middle of the text."""
    go_on = threading.Event()
    text = TEXT.stream()

    def start(skipped):
        for number, pair in enumerate(text.start(skipped)):
            if number == 70:
                assert go_on.wait(timeout=30)
            yield pair

    reports = []
    stream = ExampleStream(TEXT.fields, start, text.identify)
    store = make(stream, wait=False, report=reports.append)
    first = store.shard(0)
    assert not store.is_complete
    assert all(".partial-" in name for name in folders(tmp_path))
    assert store.has_shard(1)
    go_on.set()
    assert store.num_shards() == 4
    assert (store.has_shard(3), store.has_shard(4)) == (True, False)
    assert rows_of(store) == expected_rows(TEXT, tokenizer)
    assert first["source"].padded(np.array([0]))[0].tolist() == tokenizer.encode("line 0")
    assert reports[0].endswith(" examples to begin with; tokenising the rest in the background")


def test_examples_that_a_thread_skipped_are_reported_in_the_end(make):
    text = pairs_of([*TEXT["source"], "x" * 99], [*TEXT["target"], "y"])
    reports, done = [], threading.Event()

    def report(counts):
        reports.append(counts)
        if "skipped" in counts:
            done.set()

    make(text, report=report)
    assert done.wait(timeout=30)
    assert "100 examples, 1 skipped (longer than 50 tokens)" in reports


@pytest.mark.parametrize("read", [lambda s: s.has_shard(3), lambda s: s.num_shards()])
def test_an_error_in_the_middle_is_raised_where_shards_are_read(failing_store, read):
    with pytest.raises(OSError, match="the disk is gone"):
        read(failing_store)
    with pytest.raises(OSError, match="the disk is gone"):
        failing_store.shard(0)
