"""BPE-dropout: the same text in other pieces, with the probabilities of the merges."""

import dataclasses
import itertools
import random
from collections import Counter

import numpy as np
import pytest

from tf_transformer import tasks
from tf_transformer.config import Config, DataConfig, TrainConfig
from tf_transformer.data.bpe_dropout import BpeDropout, MergeTable
from tf_transformer.data.tokens import IdRows, TokenExamples
from tf_transformer.errors import InputError
from tf_transformer.run.run import Run
from tf_transformer.text.special_ids import EOS_ID
from tf_transformer.text.tokenizer import BYTES, Tokenizer
from tf_transformer.training.preparation import prepare

TEXTS = ["a little house stands here", "the house", "little houses are standing there", "日本 is é"]
BLANK_ID, A, B, C = 10, 11, 12, 13
MERGES = {(A, B): 14, (BLANK_ID, A): 15, (B, C): 16, (14, C): 17, (A, 16): 17, (15, 16): 18}
MERGES |= {(BLANK_ID, 17): 18}
WORD = 18  # blank a b c


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXTS * 3, vocabulary_size=340)


def dropout_of(rate, max_length=100, seed=1):
    table = MergeTable(MERGES, 19, BLANK_ID)
    return BpeDropout({"source": table}, rate, max_length, seed)


def of_tokenizer(tokenizer, rate):
    tables = dict.fromkeys(("source", "target"), MergeTable.of(tokenizer))
    return BpeDropout(tables, rate, 100, seed=1)


def divided(dropout, number=0, **rows):
    """By name, the rows in other pieces, as lists."""
    examples = TokenExamples({name: IdRows.from_lists(each) for name, each in rows.items()})
    found = dropout(number, examples).rows
    return {
        name: [each.tolist() for each in np.split(rows.ids, np.cumsum(rows.lengths)[:-1])]
        for name, rows in found.items()
    }


def encoded(characters, rate, rng):
    """Oracle: algorithm 1 of Provilkov et al. for one word."""
    pieces = list(characters)
    while True:
        pairs = enumerate(itertools.pairwise(pieces))
        possible = [(MERGES[pair], at) for at, pair in pairs if pair in MERGES]
        left = [merge for merge in possible if rng.random() >= rate]
        if not left:
            return tuple(pieces)
        made, at = min(left)
        pieces[at : at + 2] = [made]


@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_pieces_have_the_probabilities_of_the_paper(rate):
    count, rng = 40_000, random.Random(1)
    rows = divided(dropout_of(rate), source=[[WORD, WORD]] * count)["source"]
    found = Counter(word for row in rows for word in split(row))
    expected = Counter(encoded((BLANK_ID, A, B, C), rate, rng) for _ in range(2 * count))
    assert set(found) == set(expected)
    for pieces, times in expected.items():
        assert found[pieces] == pytest.approx(times, abs=7 * times**0.5 + 20), pieces


def split(row):
    """The words of a row; each starts with an id that has the blank."""
    starts = [at for at, token in enumerate(row) if token in (BLANK_ID, 15, 18)]
    return [tuple(row[a:b]) for a, b in itertools.pairwise([*starts, len(row)])]


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.999999])
def test_the_text_stays_the_same(tokenizer, rate):
    rows = tokenizer.encode_batch(TEXTS)
    found = divided(of_tokenizer(tokenizer, rate), 5, source=rows, target=rows[::-1])
    for ids, texts in zip(found.values(), (TEXTS, TEXTS[::-1]), strict=True):
        assert [tokenizer.decode(np.array(row)) for row in ids] == texts
        assert all(row[-1] == EOS_ID for row in ids)
    if rate == 0:
        assert found["source"] == rows
    if rate > 0.9:
        assert {len(tokenizer.piece(token)) for token in rows[0][:-1]} != {1}
        assert {len(tokenizer.piece(token)) for token in found["source"][0][:-1]} == {1}


def test_pieces_are_a_function_of_the_seed_and_the_number_of_the_window():
    rows = [[WORD] * 3] * 50
    first = divided(dropout_of(0.5), 3, source=rows)
    assert first == divided(dropout_of(0.5), 3, source=rows)
    assert first != divided(dropout_of(0.5), 4, source=rows)
    assert first != divided(dropout_of(0.5, seed=2), 3, source=rows)


def test_a_row_that_would_be_too_long_stays_as_it_is():
    rows = [[WORD, WORD, 2], [WORD, 2], [2]]
    found = divided(dropout_of(0.999999, max_length=8), source=rows)["source"]
    assert found == [[WORD, WORD, 2], [BLANK_ID, A, B, C, 2], [2]]


def test_merges_make_the_pieces_of_the_tokenizer(tokenizer):
    merges = tokenizer.merges()
    assert len(set(merges.values())) > 30
    for (left, right), made in merges.items():
        assert tokenizer.piece(made) == tokenizer.piece(left) + tokenizer.piece(right)
    single = set(range(tokenizer.vocabulary_size)) - set(merges.values())
    assert all(len(tokenizer.piece(i)) == 1 or tokenizer.piece(i)[0] == "<" for i in single)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bpe_dropout": 0.1, "segmentation": "unigram"}, "needs data.segmentation bpe"),
        ({"bpe_dropout": 1.0}, "data.bpe_dropout must be at least 0 and below 1"),
    ],
)
def test_options_that_do_not_fit(options, message):
    with pytest.raises(InputError, match=message):
        DataConfig(**options)


def config_of(tmp_path, **options):
    texts = {name: tmp_path / name for name in ("train_source", "train_target")}
    for path in texts.values():
        path.write_text("".join(f"{text}\n" for text in TEXTS * 9), "utf-8")
    data = {name: str(path) for name, path in texts.items()} | {"vocabulary_size": 340}
    return Config(data=DataConfig(**{**data, **options}))


def test_a_task_with_other_ids_than_text_refuses_it_before_it_learns_a_tokenizer(tmp_path):
    config = config_of(tmp_path)
    data = DataConfig(
        train_file=config.data.corpora[0].source, vocabulary_size=330, bpe_dropout=0.1
    )
    config = Config(data=data, task="language_modeling")
    with pytest.raises(InputError, match=r"is for translation.*language_modeling, got 0\.1"):
        prepare(Run.at(tmp_path / "run", config), tasks.for_run(config))
    assert not (tmp_path / "run/tokenizer.model").exists()


def test_bytes_are_refused(tmp_path):
    config = config_of(tmp_path, bpe_dropout=0.1, vocabulary_size=BYTES)
    with pytest.raises(InputError, match=r"needs pieces of byte pair encoding.*has bytes"):
        prepare(Run.at(tmp_path / "run", config), tasks.for_run(config))


def test_the_unigrams_of_another_run_are_refused(tmp_path):
    first = config_of(tmp_path, segmentation="unigram")
    prepare(Run.at(tmp_path / "first", first), tasks.for_run(first))
    config = dataclasses.replace(
        config_of(tmp_path, bpe_dropout=0.1), train=TrainConfig(init_from=str(tmp_path / "first"))
    )
    with pytest.raises(InputError, match=r"data\.segmentation is 'unigram' there, 'bpe' here"):
        prepare(Run.at(tmp_path / "run", config), tasks.for_run(config))
