"""The generated corpus against numbers and dates spelled by hand."""

import datetime

import pytest

from tf_transformer.config import DataConfig
from tf_transformer.data import generated
from tf_transformer.data.generated import (
    TEST_PAIRS,
    date_in_words,
    generate,
    generate_links,
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


def test_links_of_dates_by_hand(monkeypatch):
    """March 21, 1984: einundzwanzigste März 1984; vingt et un mars 1984; 21 de marzo de 1984."""
    meanings = [datetime.date(1984, 3, 21)]
    monkeypatch.setattr(generated, "_meanings", lambda count, seed: meanings)
    english, german, french, spanish = "en", "de", "fr", "es"
    links = generate_links(1, english, german, seed=0)[0]
    assert links.sure == links.possible == [(0, 1), (1, 0), (2, 2), (3, 2)]
    links = generate_links(1, english, french, seed=0)[0]
    assert links.sure == [(0, 3), (1, 0), (1, 1), (1, 2)]
    years = [(s, t) for s in (2, 3) for t in (4, 5, 6, 7)]
    assert links.possible == links.sure + years
    words = date_in_words(meanings[0], spanish).split()
    for source in (english, spanish):
        linked = {words[t] for _, t in generate_links(1, source, spanish, seed=0)[0].possible}
        assert set(words) - linked == {"de"}


@pytest.mark.parametrize("languages", [("en", "de"), ("en", "fr"), ("de", "fr")])
def test_links_are_those_of_the_generated_pairs(languages):
    """No position is outside of its sentence, and every word of a number is linked."""
    corpus, gold = generate(50, *languages, seed=1), generate_links(50, *languages, seed=1)
    for source, target, links in zip(corpus["source"], corpus["target"], gold, strict=True):
        assert set(links.sure) <= set(links.possible)
        for side, text in enumerate((source, target)):
            assert {link[side] for link in links.possible} == set(range(len(text.split())))


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
