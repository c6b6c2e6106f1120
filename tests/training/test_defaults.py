"""Options that fit the corpus: a function of its size and of the options that are given."""

import dataclasses
import itertools
import random
import unicodedata

import pytest

from tf_transformer.config import (
    PRESETS,
    Config,
    DataConfig,
    ModelConfig,
    TrainConfig,
)
from tf_transformer.data.corpora import TextSize
from tf_transformer.errors import InputError
from tf_transformer.text.tokenizer import Tokenizer
from tf_transformer.training.defaults import FITTING, choose

PAIRS = [1, 10, 500, 5_000, 19_999, 20_000, 29_000, 30_000, 99_999, 100_000, 170_000, 299_999]
PAIRS += [300_000, 999_999, 1_000_000, 3_999_999, 4_000_000, 5_000_000]


def size_of(pairs, length=70):
    """A text with so many bytes on the longer side of each pair."""
    return TextSize(pairs, pairs * length)


def config_of(values):
    """The configuration with these values, which must be possible together."""
    groups = {"model": {}, "data": {}, "train": {}}
    for option, value in values.items():
        group, _, name = option.partition(".")
        groups[group][name] = value
    classes = {"model": ModelConfig, "data": DataConfig, "train": TrainConfig}
    return Config(**{name: classes[name](**own) for name, own in groups.items()})


def weights_of(values):
    """A number that grows with the model."""
    return values["model.num_layers"] * values["model.d_model"] * values["model.d_ff"]


@pytest.mark.parametrize("length", [8, 70, 1000])
def test_all_options_are_chosen_and_possible_together(length):
    for pairs in PAIRS:
        values = choose(size_of(pairs, length), {}).values
        assert set(values) == set(FITTING)
        config_of(values)


@pytest.mark.parametrize("length", [8, 70, 1000])
def test_more_text_never_means_a_smaller_vocabulary_model_batch_or_more_dropout(length):
    choices = [choose(size_of(pairs, length), {}).values for pairs in PAIRS]
    for less, more in itertools.pairwise(choices):
        for name in ("data.vocabulary_size", "data.batch_tokens"):
            assert less[name] <= more[name]
        assert weights_of(less) <= weights_of(more)
        assert less["model.dropout_rate"] >= more["model.dropout_rate"]
        # Two digits are kept.
        tokens = [each["train.steps"] * each["data.batch_tokens"] for each in (less, more)]
        assert tokens[0] <= 1.1 * tokens[1]


@pytest.mark.parametrize(
    ("pairs", "vocabulary", "preset", "layers", "dropout", "batch"),
    [
        (500, 2_000, "tiny", 2, 0.3, 1024),
        (29_000, 4_000, "tiny", 3, 0.2, 2048),
        (170_000, 4_000, "tiny", 4, 0.1, 2048),
        (1_000_000, 8_000, "base", 6, 0.1, 8192),
        (4_000_000, 32_000, "base", 6, 0.1, 8192),
        (5_000_000, 32_000, "base", 6, 0.1, 8192),
    ],
)
def test_sizes(pairs, vocabulary, preset, layers, dropout, batch):
    config = config_of(choose(size_of(pairs), {}).values)
    changes = {"num_layers": layers, "dropout_rate": dropout}
    assert config.model == dataclasses.replace(PRESETS[preset], **changes)
    assert (config.data.vocabulary_size, config.data.batch_tokens) == (vocabulary, batch)


def test_a_handful_of_pairs_is_passed_over_a_hundred_times():
    """All of them are in each batch."""
    assert choose(size_of(10), {}).values["train.steps"] == 100
    assert choose(TextSize(1, 0), {}).values["train.steps"] == 100


def test_a_large_corpus_has_the_warm_up_of_the_paper():
    assert choose(size_of(5_000_000, 140), {}).values["train.warmup_steps"] == 4000


def test_long_pairs_count_as_several():
    short, long = (choose(size_of(5_000, length), {}).values for length in (100, 20_000))
    assert long["data.vocabulary_size"] > short["data.vocabulary_size"]
    assert weights_of(long) > weights_of(short)


@pytest.mark.parametrize("name", FITTING)
def test_a_given_option_is_kept_and_the_rest_is_chosen(name):
    given = dict.fromkeys(FITTING, 64) | {"model.dropout_rate": 0.5}
    values = choose(size_of(170_000), {name: given[name]}).values
    unchosen = {name, "train.validate_every"} if name == "train.steps" else {name}
    assert set(FITTING) - set(values) == unchosen
    config_of({"data.max_length": 30, name: given[name]} | values)


def test_all_options_given_leave_nothing_to_say():
    given = choose(size_of(5_000), {}).values
    assert choose(size_of(5_000_000), given) == ({}, [])


@pytest.mark.parametrize("given", [{"train.epochs": 3}, {"train.steps": 77}, {"train.steps": 0}])
def test_given_passes_or_updates_are_not_changed(given):
    values = choose(size_of(170_000), given).values
    assert not {"train.steps", "train.validate_every"} & set(values)
    config_of(given | values)


def test_the_rest_fits_the_given_options():
    size = size_of(2_000_000)
    assert choose(size, {"model.d_model": 100}).values["model.num_heads"] == 4  # of 8
    assert choose(size_of(500), {"data.max_length": 3000}).values["data.batch_tokens"] == 3000
    assert choose(size, {"train.steps": 10}).values["train.warmup_steps"] == 1000
    one, two = (choose(size, {"train.accumulate": n}).values["train.steps"] for n in (1, 2))
    assert one == pytest.approx(2 * two, rel=0.1)


@pytest.mark.parametrize("pairs", [1, 500, 29_000, 170_000, 5_000_000])
def test_the_reasons_are_three_lines_with_all_options(pairs):
    values, lines = choose(size_of(pairs), {})
    assert len(lines) == 3
    assert all(line.startswith(f"chosen for {pairs:,} pairs") for line in lines)
    assert f"--model {'tiny' if pairs < 300_000 else 'base'} " in lines[1]
    assert f"--model.dropout_rate {values['model.dropout_rate']}" in lines[1]
    assert ("--model.num_layers" in lines[1]) == (pairs < 100_000)
    for name in [name for name in FITTING if not name.startswith("model.")]:
        assert f"--{name} {values[name]}" in " ".join(lines)
    assert ("or more" in lines[0]) == (pairs == 5_000_000)


def test_reasons_name_chosen_options_only():
    given = {"data.vocabulary_size": 500, "model.d_model": 64, "train.epochs": 2}
    lines = choose(size_of(5_000), given).reasons
    assert len(lines) == 2
    assert "--model.num_layers 2 --model.d_ff 256 --model.num_heads 4 --model.drop" in lines[0]
    assert "--data.batch_tokens 1024 --train.warmup_steps " in lines[1]
    assert "about 2 passes" in lines[1]
    assert "steps" not in lines[1].replace("warmup_steps", "")


def test_the_size_of_a_text_is_counted_up_to_a_limit(monkeypatch):
    monkeypatch.setattr("tf_transformer.data.corpora.MOST_PAIRS", 3)
    assert TextSize.of(itertools.repeat(("a", "öä")))[:2] == (3, 12)
    assert TextSize.of([("ab", "c")])[:2] == (1, 2)
    assert TextSize.of([])[:2] == (0, 0)


def scripts():
    """Pairs in scripts of many and of few characters, by name."""
    draw = random.Random(1)
    syllables = [chr(0xAC00 + 28 * n) for n in range(399)]
    texts = {
        "Chinese": [chr(0x4E00 + n) for n in range(3000)],
        "Korean": syllables,
        "decomposed Korean": [unicodedata.normalize("NFD", c) for c in syllables],
        "English": list("abcdefghijklmnopqrstuvwxyz "),
    }
    return {
        name: [(f"sentence {n}", "".join(draw.choices(letters, k=20))) for n in range(1500)]
        for name, letters in texts.items()
    }


@pytest.mark.parametrize(("name", "pairs"), scripts().items())
@pytest.mark.parametrize("normalization", ["nmt_nfc", "nmt_nfkc", "identity"])
def test_the_chosen_vocabulary_holds_the_characters_of_any_script(name, pairs, normalization):
    choice = choose(TextSize.of(pairs), {})
    chosen = choice.values["data.vocabulary_size"]
    lines = itertools.chain.from_iterable(pairs)
    assert Tokenizer.train(lines, chosen, normalization).vocabulary_size <= chosen
    of_characters = "bytes and characters of this text need 3,2" in choice.reasons[0]
    assert of_characters == (chosen > 2_000) == (name == "Chinese")


def test_the_smallest_vocabulary_is_that_of_sentencepiece():
    """In a text that is too short for characters rare enough to be left out."""
    pairs = [("one", "".join(chr(n + k) for k in range(13))) for n in range(0x4E00, 0x4F00, 13)]
    smallest = TextSize.of(pairs).smallest_vocabulary
    lines = list(itertools.chain.from_iterable(pairs))
    assert Tokenizer.train(lines, smallest).vocabulary_size == smallest
    with pytest.raises(InputError) as error:
        Tokenizer.train(lines, smallest - 1)
    assert str(error.value) == (
        f"the bytes and characters of this text need a vocabulary of {smallest:,} ids, got "
        f"data.vocabulary_size={smallest - 1}. Give {smallest}, and more for longer pieces."
    )
