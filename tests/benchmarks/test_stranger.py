"""benchmarks/translations/stranger: the classes of the set, and the scores of a run on it."""

import itertools
from collections import Counter

import pytest

from benchmarks.translations import stranger
from benchmarks.translations.stranger import Line
from benchmarks.translations.stranger_scores import is_loop, scored
from tf_transformer.data.augmentation.spans import is_held_out
from tf_transformer.errors import InputError

COUNT = 12
NAMES = ["names", "names without accents"]
VERBS = [("saw", "sah"), ("heard", "hörte"), ("found", "fand")]
PAIRS = [
    (f"Tom {verb[0]} the dog number {number}.", f"Tom {verb[1]} den Hund Nummer {number}.")
    for number, verb in itertools.product(range(70), VERBS)
]


@pytest.fixture(scope="module")
def rows():
    return list(stranger.made(PAIRS, ("en", "de"), COUNT, seed=1))


def of(rows, group):
    return [row for row in rows if row.group == group]


def test_all_classes_have_the_same_number_of_lines(rows):
    assert set(Counter(row.group for row in rows).values()) == {COUNT}
    assert len({row.group for row in rows}) == 13
    assert rows == list(stranger.made(PAIRS, ("en", "de"), COUNT, seed=1))
    assert rows != list(stranger.made(PAIRS, ("en", "de"), COUNT, seed=2))


def test_lines_have_what_their_class_says(rows):
    assert {(row.source, row.target) for row in of(rows, "plain")} <= set(PAIRS)
    for row in of(rows, "several sentences"):
        count = int(row.kind[0])
        assert (row.source.count("."), row.target.count(".")) == (count, count)
    for row in of(rows, "case"):
        is_kind = {"upper": str.isupper, "lower": str.islower, "title": str.istitle}[row.kind]
        assert is_kind(row.source)
        assert is_kind(row.target)
    assert all(row.source[-1] != "." != row.target[-1] for row in of(rows, "no end mark"))
    assert all(len(row.source.split()) == 1 for row in of(rows, "one word"))
    assert all(len(row.source.split()) > stranger.MOST_WORDS for row in of(rows, "long"))
    assert all(not row.target.isascii() for row in of(rows, "typographic marks"))
    for group, is_plain in zip(NAMES, (False, True), strict=True):
        assert all(row.spans[0].isascii() == is_plain for row in of(rows, group))
    plain = [(row.source.replace(" ", ""), row.target) for row in of(rows, "plain")]
    odd = [("".join(row.source.split()), row.target) for row in of(rows, "odd spaces")]
    assert odd == plain
    assert all(row.source != " ".join(row.source.split()) for row in of(rows, "odd spaces"))


@pytest.mark.parametrize("group", ["emoji", "addresses", "markup", *NAMES])
def test_spans_are_on_both_sides_and_no_training_draws_them(rows, group):
    for row in of(rows, group):
        assert row.spans
        for span in row.spans:
            assert span in row.source
            assert span in row.target
        if group in ("addresses", *NAMES):
            assert all(map(is_held_out, row.spans))


def test_too_few_sentences_are_an_error():
    with pytest.raises(InputError, match=r"expected 72 plain sentences, got 50\."):
        list(stranger.made(PAIRS[:50], ("en", "de"), COUNT, seed=1))
    without_names = [(source.lower(), target.lower()) for source, target in PAIRS]
    with pytest.raises(InputError, match=r"expected 12 sentences with a name on both sides, got 0"):
        list(stranger.made(without_names, ("en", "de"), COUNT, seed=1))


def test_words_are_in_the_direction_of_the_files():
    swapped = [pair[::-1] for pair in PAIRS]
    rows = {
        languages: of(stranger.made(pairs, languages, COUNT, seed=1), "one word")
        for languages, pairs in {("en", "de"): PAIRS, ("de", "en"): swapped}.items()
    }
    words = {(row.source, row.target) for row in rows["en", "de"]}
    assert {(row.target, row.source) for row in rows["de", "en"]} == words
    assert not of(stranger.made(PAIRS, ("en", "fr"), COUNT, seed=1), "one word")


def test_a_file_of_the_set_is_read_as_written(tmp_path, rows, capsys):
    for ending, side in zip(("en", "de"), zip(*PAIRS, strict=True), strict=True):
        (tmp_path / f"test.{ending}").write_text("".join(f"{x}\n" for x in side), "utf-8")
    path = tmp_path / "set.jsonl"
    stranger.main(str(tmp_path / "test.en"), str(tmp_path / "test.de"), str(path), lines=COUNT)
    assert [row._replace(spans=list(row.spans)) for row in rows] == stranger.read(str(path))
    assert "several sentences: 12 lines\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        ("der Ruf der Stadt der Ruf der Stadt der Ruf", "Der Ruf.", True),
        ("hahahahahahaha", "Er lacht.", True),
        ("hahahahahahaha", "Er sagt hahahahahahaha.", False),
        ("Er ging in die Stadt. Sie ging in die Stadt.", "Sie gingen.", False),
        (
            "immer wieder, immer wieder, immer wieder,",
            "immer wieder, immer wieder, immer wieder,",
            False,
        ),
        ("", "Er ging.", False),
    ],
)
def test_loops_are_repetitions_that_the_reference_lacks(text, reference, expected):
    assert is_loop(text, reference) == expected


def test_scores_of_classes_are_relative_to_the_first():
    rows = [
        Line("plain", "plain", "x", "Tom sieht den Hund im Garten."),
        Line("emoji", "emoji", "x", "Tom sieht den Hund im Garten. 😀", ["😀"]),
        Line("emoji", "emoji", "x", "Tom sieht ihn. 🐶", ["🐶"]),
    ]
    texts = ["Tom sieht den Hund im Garten.", "Tom sieht den Hund im Garten. 😀", " "]
    plain, emoji = scored(rows, texts, [row.group for row in rows])
    assert plain == {
        **{"class": "plain", "lines": 1, "bleu": 100.0, "chrf": 100.0, "spans_kept": None},
        **{"loops": 0, "empty": 0, "ratio": 1.0},
    }
    assert (emoji["lines"], emoji["spans_kept"], emoji["empty"]) == (2, 0.5, 1)
    assert emoji["ratio"] == pytest.approx(emoji["chrf"] / 100, abs=1e-3)
    (alone,) = scored(rows, texts, ["", "a", ""], relative_to=50.0)
    assert (alone["class"], alone["ratio"]) == ("a", 2.0)
