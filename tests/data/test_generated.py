"""The generated corpus against numbers and dates spelled by hand."""

import datetime
import sys

import pytest

from tf_transformer.config import DataConfig
from tf_transformer.data import corpora
from tf_transformer.data.readers import generated
from tf_transformer.data.readers.generated import (
    TEST_PAIRS,
    date_in_words,
    generate,
    generated_splits,
    number_in_words,
)
from tf_transformer.errors import InputError


@pytest.mark.parametrize(
    ("number", "english", "german", "french"),
    [
        (0, "zero", "null", "zéro"),
        (16, "sixteen", "sechzehn", "seize"),
        (21, "twenty-one", "einundzwanzig", "vingt et un"),
        (
            321,
            "three hundred and twenty-one",
            "dreihunderteinundzwanzig",
            "trois cent vingt et un",
        ),
        (21_000, "twenty-one thousand", "einundzwanzigtausend", "vingt et un mille"),
        (
            200_098,
            "two hundred thousand and ninety-eight",
            "zweihunderttausendachtundneunzig",
            "deux cent mille quatre-vingt-dix-huit",
        ),
    ],
)
def test_numbers_by_hand(number, english, german, french):
    words = [number_in_words(number, language) for language in ("en", "de", "fr")]
    assert words == [english, german, french]


@pytest.mark.parametrize(
    ("date", "english", "german", "french"),
    [
        (
            datetime.date(1984, 3, 21),
            "March twenty-first, nineteen eighty-four",
            "einundzwanzigste März neunzehnhundertvierundachtzig",
            "vingt et un mars mille neuf cent quatre-vingt-quatre",
        ),
        (
            datetime.date(2011, 10, 11),
            "October eleventh, twenty eleven",
            "elfte Oktober zweitausendelf",
            "onze octobre deux mille onze",
        ),
        (  # the day and the last two digits of the year are the same number
            datetime.date(1919, 2, 19),
            "February nineteenth, nineteen nineteen",
            "neunzehnte Februar neunzehnhundertneunzehn",
            "dix-neuf février mille neuf cent dix-neuf",
        ),
    ],
)
def test_dates_by_hand(date, english, german, french):
    words = [date_in_words(date, language) for language in ("en", "de", "fr")]
    assert words == [english, german, french]


@pytest.mark.parametrize("languages", [("en", "de"), ("en", "fr"), ("de", "fr")])
def test_pairs_are_distinct_on_both_sides(languages):
    corpus = generate(1000, *languages, seed=1)
    assert len(corpus) == len(corpus["target"]) == 1000
    assert len(set(corpus["source"])) == len(set(corpus["target"])) == 1000


def test_both_sides_of_a_pair_say_the_same(monkeypatch):
    """From a world of 250 numbers and 50 days, small enough to spell out in both languages."""
    monkeypatch.setattr(generated, "NUMBERS", 250)
    monkeypatch.setattr(generated, "DAYS", 50)
    days = [generated.FIRST_DAY + datetime.timedelta(days=n) for n in range(50)]
    english_of = {number_in_words(n, "de"): number_in_words(n, "en") for n in range(250)}
    english_of |= {date_in_words(day, "de"): date_in_words(day, "en") for day in days}
    corpus = generate(250, "de", "en", seed=1)
    assert corpus["target"] == [english_of[source] for source in corpus["source"]]


def test_one_pair_in_five_is_a_date():
    months = {datetime.date(2000, month, 1).strftime("%B") for month in range(1, 13)}
    sources = generate(500, "en", "de", seed=1)["source"]
    assert sum(source.split()[0] in months for source in sources) == 100


def test_corpus_is_a_function_of_the_seed():
    one, again, other = (generate(50, "en", "de", seed) for seed in (1, 1, 2))
    assert one == again != other


def test_splits_share_no_sentence():
    train, valid, test = generated_splits(DataConfig(generated_pairs=500, held_out=100))
    assert (len(train), len(valid), len(test)) == (500, 100, TEST_PAIRS)
    for name in ("source", "target"):
        parts = [set(part[name]) for part in (train, valid, test)]
        assert len(set.union(*parts)) == 500 + 100 + TEST_PAIRS


@pytest.mark.parametrize(
    ("language", "reason"), [("xx", "unknown locale 'xx'"), ("klingon", "unknown locale 'klingon'")]
)
def test_unknown_language(language, reason):
    with pytest.raises(InputError) as error:
        generate(1, "en", language, seed=1)
    assert str(error.value) == (
        f"the generated corpus has no language {language!r}: {reason}. Use a language code that "
        "num2words and babel both support, like en, de or fr."
    )


@pytest.mark.parametrize("count", [0, -1, 365_246])
def test_more_pairs_than_there_are(count):
    """73,049 days, a fifth of the pairs, allow 365,245."""
    with pytest.raises(InputError) as error:
        generate(count, "en", "de", seed=1)
    assert str(error.value) == (
        f"the generated corpus has 1 to 365245 pairs, asked for {count}. Give another number as "
        "data.generated_pairs."
    )


@pytest.mark.parametrize("package", ["babel", "num2words"])
@pytest.mark.parametrize(
    "use",
    [
        lambda: corpora.check(DataConfig()),
        lambda: generate(1, "en", "de", seed=1),
        lambda: number_in_words(1, "en"),
    ],
    ids=["before training", "generate", "number_in_words"],
)
def test_a_missing_package_is_an_error_that_names_the_extra(package, use, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError) as error:
        use()
    assert str(error.value).startswith(
        f"the generated corpus needs the package {package}: pip install "
        "'tf_transformer[generated]', or pip install '.[generated]' in the repository."
    )


def test_other_corpora_need_no_package_of_the_extra(monkeypatch, tmp_path):
    for package in ("babel", "num2words"):
        monkeypatch.setitem(sys.modules, package, None)
    for name in ("a.en", "a.de"):
        (tmp_path / name).write_text("one\n")
    corpora.check(
        DataConfig(train_source=str(tmp_path / "a.en"), train_target=str(tmp_path / "a.de"))
    )
