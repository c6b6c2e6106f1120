"""Changes of the texts of batches: what a line becomes, the budget, and the same draws anywhere."""

import dataclasses
import itertools
import re

import numpy as np
import pytest

from tf_transformer import tasks
from tf_transformer.config import AugmentConfig, Config, DataConfig
from tf_transformer.data import batch_sampler
from tf_transformer.data.augmentation.text_augmentation import TextAugmentation, joined
from tf_transformer.data.batch_sampler import WINDOW, BatchSampler
from tf_transformer.data.store import TokenStore
from tf_transformer.data.tokens import IdRows, TokenExamples
from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.text.codec import Codec
from tf_transformer.text.inline_terms import MARKS
from tf_transformer.text.special_ids import EOS_ID, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer
from tf_transformer.training.preparation import prepare

BUDGET, LONGEST = 200, 60
ALL = {option.name: 0.3 for option in dataclasses.fields(AugmentConfig)}


def text_of(number):
    """A pair that shares the name and the number, and no other word."""
    name = ["Anna", "Tom", "Eva", "Otto"][number % 4]
    return f"{name} has {number} red apples.", f"{name} hat {number} rote Äpfel."


PAIRS = [text_of(number) for number in range(100, 400)]


@pytest.fixture(scope="module")
def codec():
    lines = [text for pair in PAIRS for text in pair]
    return Codec(Tokenizer.train(lines, vocabulary_size=330))


@pytest.fixture(scope="module")
def examples(codec):
    return encoded(codec, PAIRS)


def encoded(codec, pairs):
    return TokenExamples(
        {
            name: IdRows.from_lists(codec.encode_batch(name, texts))
            for name, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True)
        }
    )


def augmentation(codec, seed=1, max_length=LONGEST, **rates):
    return TextAugmentation(AugmentConfig(**rates), codec, max_length, seed, ("en", "de"))


def texts_of(codec, rows):
    """The pairs of examples or of a batch."""
    if isinstance(rows, TokenExamples):
        rows = rows.batch(np.arange(len(rows)))
    columns = (
        [codec.decode(name, row) for row in rows[name].tolist()] for name in ("source", "target")
    )
    return list(zip(*columns, strict=True))


def sampler_of(codec, examples, seed=1, **rates):
    change = augmentation(codec, seed, **rates) if rates else None
    store = TokenStore.of(examples)
    return BatchSampler(store, BUDGET, 2, seed, change, keeps_budget=bool(rates))


def first_batches(sampler, count, start=0):
    return list(itertools.islice(sampler.batches(start), count))


def assert_same(batches, others):
    for batch, other in zip(batches, others, strict=True):
        for name in batch:
            np.testing.assert_array_equal(batch[name], other[name])


@pytest.mark.parametrize(
    ("name", "is_changed"),
    [
        ("upper", lambda source, target: source.isupper() and target.isupper()),
        ("end_mark", lambda source, target: source[-1] != "." and target[-1] != "."),
        ("join", lambda *pair: all(len(re.findall("[.;]", text)) > 1 for text in pair)),
    ],
)
def test_the_rate_is_the_share_of_the_lines_that_change(codec, examples, name, is_changed):
    texts = texts_of(codec, augmentation(codec, max_length=10**6, **{name: 0.3})(0, examples))
    changed = [pair for pair in texts if is_changed(*pair)]
    assert len(changed) == pytest.approx(0.3 * len(texts), abs=25)
    untouched = set(texts) - set(changed)
    assert untouched <= set(PAIRS)


def test_lines_stay_pairs_when_sentences_are_joined(codec, examples):
    """Two to four sentences, each once, in the same order on both sides, a fifth by semicolons."""
    texts = texts_of(codec, augmentation(codec, max_length=10**6, join=0.5)(0, examples))
    translation = dict(PAIRS)
    seen, sizes = [], []
    for source, target in texts:
        sentences = [f"{part}." for part in re.split("[.;] ", source[:-1])]
        parts = [translation[sentence] for sentence in sentences]
        is_long = ";" in source
        expected = "; ".join(part[:-1] for part in parts) + "." if is_long else " ".join(parts)
        assert target == expected
        sizes.append((len(sentences), is_long))
        seen += sentences
    kinds = {(1, False), *itertools.product((2, 3, 4), (False, True))}
    assert set(sizes) == kinds
    long = sum(is_long for _, is_long in sizes) / sum(size > 1 for size, _ in sizes)
    assert long == pytest.approx(0.2, abs=0.1)
    assert sorted(seen) == sorted(translation)


@pytest.mark.parametrize(
    ("longest", "largest_group"), [(10, 1), (20, 1), (21, 2), (30, 2), (31, 3)]
)
def test_as_many_lines_are_joined_as_fit_the_longest_row(longest, largest_group):
    """Lines of 10 tokens; the last one has the end token."""
    rows = {name: IdRows.from_lists([[5] * 10 + [EOS_ID]] * 50) for name in ("source", "target")}
    groups = joined(TokenExamples(rows), 1.0, longest, np.random.default_rng(1))
    assert sorted(itertools.chain(*groups)) == list(range(50))
    assert max(map(len, groups)) == largest_group


def test_no_row_is_too_long_and_such_lines_stay_as_they_are(codec, examples):
    longest = max(rows.lengths.max() for rows in examples.rows.values())
    found = augmentation(codec, max_length=longest, copy=1.0)(0, examples)
    assert max(rows.lengths.max() for rows in found.rows.values()) <= longest
    assert len(set(texts_of(codec, found)) & set(PAIRS)) > len(PAIRS) / 2
    assert all(
        (rows.ids[np.cumsum(rows.lengths) - 1] == EOS_ID).all() for rows in found.rows.values()
    )


def test_lines_that_the_vocabulary_cannot_represent_stay_as_they_are(codec, examples):
    """Their text is not the text of their ids."""
    rows = {
        name: IdRows(np.append(x.ids, [UNK_ID, 2]), np.append(x.lengths, 2))
        for name, x in examples.rows.items()
    }
    found = augmentation(codec, upper=1.0)(0, TokenExamples(rows))
    assert [row.tolist() for row in found.batch(np.array([0]))["source"]] == [[UNK_ID, 2]]
    assert len(found) == len(examples) + 1
    assert all(source.isupper() for source, _ in texts_of(codec, found)[1:])


def test_batches_keep_their_budget_and_number(codec, examples):
    plain, changed = sampler_of(codec, examples), sampler_of(codec, examples, **ALL)
    assert len(changed) == len(plain)
    batches = first_batches(changed, 2 * WINDOW)
    for batch in batches:
        assert max(ids.size for ids in batch.values()) <= BUDGET
        assert max(ids.shape[1] for ids in batch.values()) <= LONGEST
        assert min(ids.shape[0] for ids in batch.values()) >= 1
    assert len({source for batch in batches for source, _ in texts_of(codec, batch)}) > len(PAIRS)


def test_a_corpus_of_one_line_has_batches(codec):
    sampler = sampler_of(codec, encoded(codec, PAIRS[:1]), join=1.0)
    assert len(first_batches(sampler, WINDOW)) == WINDOW


def test_no_rate_means_the_batches_of_no_option(codec, examples):
    nothing = dict.fromkeys(ALL, 0.0)
    assert not AugmentConfig(**nothing)
    found = augmentation(codec, **nothing)(0, examples)
    for name, rows in examples.rows.items():
        np.testing.assert_array_equal(found[name].ids, rows.ids)
        np.testing.assert_array_equal(found[name].lengths, rows.lengths)


@pytest.mark.parametrize("start", [1, WINDOW - 1, WINDOW + 3])
def test_a_training_that_resumes_draws_the_same(codec, examples, start):
    whole = first_batches(sampler_of(codec, examples, **ALL), start + 4)
    assert_same(whole[start:], first_batches(sampler_of(codec, examples, **ALL), 4, start))


def test_any_number_of_threads_draws_the_same(codec, examples, monkeypatch):
    several = first_batches(sampler_of(codec, examples, **ALL), WINDOW + 2)
    monkeypatch.setattr(batch_sampler, "THREADS", 1)
    assert_same(several, first_batches(sampler_of(codec, examples, **ALL), WINDOW + 2))


def test_each_seed_and_each_window_draw_others(codec, examples):
    def changed(seed, number):
        return set(texts_of(codec, augmentation(codec, seed, upper=0.5)(number, examples)))

    assert changed(1, 0) == changed(1, 0)
    assert changed(1, 0) != changed(1, 1)
    assert changed(1, 0) != changed(2, 0)


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_a_rate_is_a_share(rate):
    with pytest.raises(InputError, match=rf"data\.augment\.upper must be from 0 to 1.*got {rate}"):
        AugmentConfig(upper=rate)


def config_of(tmp_path, pairs=PAIRS, **options):
    texts = {name: tmp_path / name for name in ("train_source", "train_target")}
    for path, lines in zip(texts.values(), zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    data = {name: str(path) for name, path in texts.items()} | {"vocabulary_size": 330}
    return Config(data=DataConfig(**{**data, **options}))


def test_training_changes_texts_and_pieces_and_validation_nothing(tmp_path):
    rates = AugmentConfig(upper=1.0)
    config = config_of(
        tmp_path, augment=rates, bpe_dropout=0.9, held_out=10, max_length=150, batch_tokens=200
    )
    data = prepare(Run.at(tmp_path / "run", config), tasks.for_run(config))
    batches = first_batches(data.train, WINDOW)
    assert max(ids.size for batch in batches for ids in batch.values()) <= 200
    batch = batches[0]
    texts = texts_of(data.codec, batch)
    assert all(source.isupper() and target.isupper() for source, target in texts)
    row = batch["source"][0].tolist()
    assert row[: row.index(EOS_ID) + 1] != data.codec.encode("source", texts[0][0])
    valid = next(data.valid[""].one_epoch())
    assert set(texts_of(data.codec, valid)) <= set(PAIRS)
    assert RunFolder(tmp_path / "run").load_config() == config
    other = config_of(tmp_path, augment=AugmentConfig(upper=0.5, copy=0.1))
    assert config.differences(other).keys() == {
        *("data.augment.upper", "data.augment.copy", "data.bpe_dropout", "data.held_out"),
        *("data.max_length", "data.batch_tokens"),
    }


def test_the_vocabulary_has_pieces_of_changed_texts(tmp_path):
    def length_in_capitals(name, **options):
        config = config_of(tmp_path, held_out=10, **options)
        codec = prepare(Run.at(tmp_path / name, config), tasks.for_run(config)).codec
        return len(codec.encode("target", PAIRS[0][1].upper()))

    changed = length_in_capitals("changed", augment=AugmentConfig(upper=0.5))
    assert changed < length_in_capitals("plain")


def test_a_training_learns_terms_and_reads_them_again(tmp_path):
    """The vocabulary has their marks. No validation text has terms, and no word of one is seen."""
    fruits = {"cherries": "Kirschen", "pears": "Birnen", "plums": "Pflaumen", "figs": "Feigen"}
    meals = [(f"Tom eats {x} today.", f"Tom isst heute {y}.") for x, y in fruits.items()]
    pairs = [*meals * 6, *PAIRS]
    options = {"augment": AugmentConfig(terms=1.0), "held_out": 2}
    config = config_of(tmp_path, pairs, **options)
    run = Run.at(tmp_path / "run", config)
    data = prepare(run, tasks.for_run(config))
    terms = {*run.folder.terms.read_text("utf-8").splitlines()}
    assert {"\t".join(pair) for pair in fruits.items()} == terms
    sources = [
        source for x in first_batches(data.train, 9) for source, _ in texts_of(data.codec, x)
    ]
    assert any("[ figs | Feigen ]" in source for source in sources)
    marks = {*data.codec.encode("source", MARKS)}
    assert not marks & data.codec["source"].byte_of.keys()
    valid = texts_of(data.codec, next(data.valid[""].one_epoch()))
    assert not any("[" in source for source, _ in valid)
    assert "birnen" not in data.codec.seen_words


def test_a_text_without_words_that_translate_each_other_has_no_terms(tmp_path):
    config = config_of(tmp_path, augment=AugmentConfig(terms=0.1), held_out=10)
    with pytest.raises(InputError, match=r"data\.augment\.terms found no words that translate"):
        prepare(Run.at(tmp_path / "run", config), tasks.for_run(config))


def test_other_tasks_refuse_it_before_they_learn_a_tokenizer(tmp_path):
    data = config_of(tmp_path).data
    data = DataConfig(
        train_file=data.corpora[0].source, vocabulary_size=330, augment=AugmentConfig(lower=0.1)
    )
    config = Config(data=data, task="language_modeling")
    with pytest.raises(InputError, match=r"data\.augment\.lower is for translation.*got 0\.1"):
        prepare(Run.at(tmp_path / "run", config), tasks.for_run(config))
    assert not (tmp_path / "run/tokenizer.model").exists()
