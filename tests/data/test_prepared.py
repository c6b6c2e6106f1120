"""Corpora that are prepared on Apache Beam: equal bytes, and the pairs of one process."""

import dataclasses
import random
import sys
from collections import Counter

import numpy as np
import pytest
from conftest import small_config

from tf_transformer import tasks
from tf_transformer.commands import prepare, train
from tf_transformer.commands.command_line import read_options
from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data import corpora
from tf_transformer.data.readers.generated import number_in_words
from tf_transformer.data.store import TokenStore
from tf_transformer.data.training_keys import stored_keys
from tf_transformer.errors import InputError
from tf_transformer.run.run import Run
from tf_transformer.tasks.seen import compare_with_training
from tf_transformer.tasks.task import TestSet
from tf_transformer.text.codec import Codec
from tf_transformer.training import preparation

pytest.importorskip("apache_beam")

PAIRS = [(number_in_words(n, "en"), number_in_words(n, "de")) for n in range(100, 220)]
# Two duplicates, one of them with other spaces; a copy; an empty side; too many tokens.
FAULTS = [PAIRS[3], (f" {PAIRS[5][0]}", PAIRS[5][1]), ("a b c", "a b c"), ("", "x")]
FAULTS += [("one " * 60, "eins " * 60)]


@pytest.fixture
def data(tmp_path):
    """A function: the options for two text files with some pairs, and others for validation."""

    def data(pairs=(*PAIRS, *FAULTS), name="a", valid_tag="", **options):
        for side, place in (("en", 0), ("de", 1)):
            for stem, rows in ((name, pairs), ("valid", PAIRS[:5])):
                text = "".join(f"{row[place]}\n" for row in rows)
                (tmp_path / f"{stem}.{side}").write_text(text, "utf-8")
        named, valid = (
            Corpus(str(tmp_path / f"{stem}.en"), str(tmp_path / f"{stem}.de"))
            for stem in (name, "valid")
        )
        options = {"clean": ("identical", "duplicate"), "vocabulary_size": 330} | options
        options = {"corpora": (named,), "max_length": 40} | options
        valid = dataclasses.replace(valid, tag=valid_tag)
        return DataConfig(valid_corpora=(valid,), **options)

    return data


def prepared(data, to, *beam_options, shard_pairs=50) -> DataConfig:
    """Prepares corpora in a folder; returns the options of a training run on it."""
    prepare.main(*beam_options, to=str(to), data=data, shard_pairs=shard_pairs)
    return dataclasses.replace(data, prepared=str(to))


def training_data(data, run_dir):
    """What a training run reads."""
    config = dataclasses.replace(small_config(), data=data)
    return preparation.prepare(Run.at(run_dir, config), tasks.for_run(config))


def files_of(folder) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "config.yaml"  # it names the folder
    }


def rows_of(store: TokenStore) -> Counter[tuple]:
    """The pairs of ids of a store, counted."""
    shards = (store.shard(number) for number in range(store.num_shards()))
    sides = ((rows.split() for rows in shard.rows.values()) for shard in shards)
    return Counter(
        tuple(tuple(ids.tolist()) for ids in pair)
        for rows in sides
        for pair in zip(*rows, strict=True)
    )


def test_a_training_run_on_it_reads_the_pairs_of_one_process_and_no_text(data, tmp_path, capsys):
    """Oracle: the store of a training run on the text, with the same vocabulary."""
    options = prepared(data(), tmp_path / "store")
    line = "120 examples, 2 skipped (duplicate), 1 skipped (empty text), 1 skipped (identical), "
    assert f"{line}1 skipped (longer than 40 tokens); 3 shards" in capsys.readouterr().out
    own = dataclasses.replace(data(), tokenizer=str(tmp_path / "store" / "tokenizer.model"))
    expected = training_data(own, tmp_path / "one").train.store
    for side in ("en", "de"):
        (tmp_path / f"a.{side}").unlink()
    text = training_data(options, tmp_path / "run")
    assert text.train.store.num_shards() == 3
    assert text.codec.identity == Codec.load(tmp_path / "store").identity
    assert rows_of(text.train.store) == rows_of(expected)
    assert sorted(text.train.store.skipped.items()) == sorted(expected.skipped.items())
    size = corpora.training_size(options, ("source", "target"))
    assert size.pairs == 121
    keys = {
        name: np.concatenate(list(stored_keys(tmp_path / name / "training_keys.bin")))
        for name in ("one", "run")
    }
    assert len(keys["run"]) == 121
    assert Counter(map(tuple, keys["run"].tolist())) == Counter(map(tuple, keys["one"].tolist()))


def test_a_text_that_an_earlier_version_prepared_has_no_keys(data, tmp_path, capsys):
    options = prepared(data(), tmp_path / "store")
    for path in (tmp_path / "store").glob("*/*.keys"):
        path.unlink()
    training_data(options, tmp_path / "run")
    run, test = Run.load(tmp_path / "run"), TestSet([PAIRS[0][0]], [PAIRS[0][1]])
    tests, predictions = {"test": test}, {"test": ["x"]}
    assert compare_with_training(tasks.for_run(run.config), run, tests, predictions) == {}
    assert "not known, because" in (printed := capsys.readouterr().err)
    assert "has ids, and no text to read" in printed


def test_workers_and_the_order_of_the_lines_change_no_byte(data, tmp_path):
    rows = [*PAIRS, *FAULTS[:1], *FAULTS[2:]]  # equal texts but for spaces: the first one stays
    prepared(data(rows), tmp_path / "one")
    random.Random(1).shuffle(rows)
    workers = ("--direct_num_workers=3", "--direct_running_mode=multi_threading")
    prepared(data(rows, "b"), tmp_path / "three", *workers)
    one, three = (files_of(tmp_path / name) for name in ("one", "three"))
    assert len(one) > 3 * 4
    assert one == three


def test_several_corpora_have_stores_of_their_own_with_their_tags(data, tmp_path):
    first, second = data().corpora[0], data(PAIRS[:30], "b").corpora[0]
    listed = (
        dataclasses.replace(first, tag=">>de<<"),
        dataclasses.replace(second, tag=">>x<<", weight=2),
    )
    tagged = data(corpora=listed, vocabularies="separate", valid_tag=">>de<<")
    options = prepared(tagged, tmp_path / "store")
    model = dataclasses.replace(small_config().model, tie_embeddings="none")
    config = dataclasses.replace(small_config(), data=options, model=model)
    text = preparation.prepare(Run.at(tmp_path / "run", config), tasks.for_run(config))
    tags = text.codec["source"].tags
    counts = {
        tag: sum(source[0] == token for source, _ in rows_of(component.store).elements())
        for (tag, token), component in zip(tags.items(), text.train.store.components, strict=True)
    }
    assert counts == {">>de<<": 120, ">>x<<": 30}


def test_options_of_its_folder_train_on_it(data, tmp_path):
    options = prepared(data(), tmp_path / "store")
    words = ["--config", str(tmp_path / "store" / "config.yaml"), "--run_dir", "x"]
    size = max(Codec.load(tmp_path / "store").sizes)
    assert read_options(train.main, words)["data"] == dataclasses.replace(
        options, vocabulary_size=size
    )


def test_options_of_beam_follow_two_dashes():
    words = ["--to", "store", "--data.max_length", "9", "--", "--runner=X", "--parallelism", "3"]
    options = read_options(prepare.main, words)
    assert options["beam_options"] == ["--runner=X", "--parallelism", "3"]
    assert options["data"].max_length == 9


def test_another_length_or_other_corpora_are_an_error(data, tmp_path):
    options = prepared(data(), tmp_path / "store")
    with pytest.raises(InputError, match=r"has ids, and no text to read\. .* Train with"):
        training_data(dataclasses.replace(options, max_length=50), tmp_path / "run")
    two = dataclasses.replace(options, corpora=options.corpora * 2)
    with pytest.raises(InputError, match=r"has 1 corpora, but data.corpora has 2. Train with"):
        training_data(two, tmp_path / "run")
    elsewhere = dataclasses.replace(options, prepared=str(tmp_path))
    with pytest.raises(InputError, match=r"is no prepared corpus: prepared\.json is missing"):
        training_data(elsewhere, tmp_path / "run")


def test_a_missing_package_is_named(data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.delitem(sys.modules, "tf_transformer.data.beam_pipeline", raising=False)
    monkeypatch.delattr("tf_transformer.data.beam_pipeline", raising=False)
    with pytest.raises(InputError, match=r"needs the package apache_beam: pip install"):
        prepared(data(), tmp_path / "store")


def test_errors_leave_nothing_behind(data, tmp_path):
    sound = data()
    (tmp_path / "short.de").write_text("eins\n")
    uneven = Corpus(sound.corpora[0].source, str(tmp_path / "short.de"))
    before = {path.name for path in tmp_path.iterdir()}
    for options, message in [
        (dataclasses.replace(sound, corpora=(uneven,)), "ends after line 1, but"),
        (data([("a b c", "a b c")], "copies"), "data.clean leaves no pair"),
        (dataclasses.replace(sound, max_length=2), "no pair of a.en-de is left: .* longer than 2"),
        (dataclasses.replace(sound, valid_corpora=()), r"Give data\.valid_corpora"),
    ]:
        with pytest.raises(InputError, match=message):
            prepared(options, tmp_path / "store")
    with pytest.raises(InputError, match="Beam cannot use its options: Unexpected pipeline runner"):
        prepared(sound, tmp_path / "store", "--runner=NoSuchRunner")
    assert {path.name for path in tmp_path.iterdir()} == before | {"copies.en", "copies.de"}
    with pytest.raises(InputError, match="exists already"):
        prepared(sound, tmp_path)
    with pytest.raises(InputError, match="--shard_pairs must be positive, got 0"):
        prepared(sound, tmp_path / "store", shard_pairs=0)
