"""Workers that read their own shards: together all of them, in epochs of the same size."""

import itertools
import pathlib
from collections import Counter

import pytest
from data.test_batching import random_pairs

from tf_transformer.data.batch_sampler import BatchSampler
from tf_transformer.data.store import TokenStore, write_shard, write_summary

SHARDS, PAIRS, BUDGET = 5, 60, 200


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    """A store in files. Example n of all holds the id n + 1 only."""
    for number in range(SHARDS):
        write_shard(tmp_path, number, random_pairs(PAIRS, first=1 + number * PAIRS))
    write_summary(tmp_path, "x", ("source", "target"), SHARDS, SHARDS * PAIRS, {})
    return tmp_path


def sampler_of(folder, worker=None, smallest=lambda size: size) -> BatchSampler:
    sampler = BatchSampler(TokenStore.load(folder, "x"), BUDGET, 4, seed=3)
    return sampler if worker is None else sampler.of_worker(worker, 2, smallest)


def ids_of(batches) -> Counter:
    return Counter(row[0] for batch in batches for row in batch.padded()["source"])


def test_two_workers_read_all_pairs_and_each_only_its_files(folder):
    """The files of the other worker are gone when it reads."""
    samplers = [sampler_of(folder, worker) for worker in range(2)]
    seen = Counter()
    for worker, sampler in enumerate(samplers):
        hidden = [
            path
            for number in range(1 - worker, SHARDS, 2)
            for path in folder.glob(f"{number:05d}.*")
        ]
        contents = {path: path.read_bytes() for path in hidden}
        for path in hidden:
            path.unlink()
        batches = list(sampler.epoch(0))
        assert max(batch.padded()["source"].size for batch in batches) <= BUDGET // 2
        seen += ids_of(batches)
        for path, content in contents.items():
            path.write_bytes(content)
    assert seen == dict.fromkeys(range(1, SHARDS * PAIRS + 1), 1)


def test_epochs_have_the_size_of_the_smallest_worker_from_any_start(folder):
    sizes = [len(sampler_of(folder, worker)) for worker in range(2)]
    assert len(set(sizes)) == 2  # three shards, and two
    first, second = (sampler_of(folder, worker, lambda _: min(sizes)) for worker in range(2))
    for sampler in (first, second):
        assert len(sampler) == min(sizes)
        batches = [batch["source"] for batch in itertools.islice(sampler.batches(), 90)]
        later = [batch["source"] for batch in itertools.islice(sampler.batches(71), 19)]
        assert all((a == b).all() for a, b in zip(batches[71:], later, strict=True))
        for epoch in range(3):
            assert len(list(sampler.epoch(epoch))) == min(sizes)
            assert max(ids_of(sampler.epoch(epoch)).values()) == 1
