"""What an inspection finds in small corpora that are counted by hand."""

import random

import pytest

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.inspection import EXAMPLES, Inspection, SideCounts, inspect
from tf_transformer.errors import InputError
from tf_transformer.visualization.corpus_page import corpus_page, tables

TRAINING = [
    ("A man rides a brown horse.", "Ein Mann reitet ein braunes Pferd."),
    ("", "leer"),
    ("A man rides a brown horse.", "Ein Mann reitet ein braunes Pferd."),
    ("Two dogs run in the snow.", "Zwei Hunde rennen im Schnee."),
    ("The same words here", "The same words here"),
]
TEST = [
    ("Two dogs run in the snow.", "Zwei Hunde laufen durch Schnee."),
    ("A cat.", "Ein Mann reitet  ein braunes Pferd."),
    ("A bird.", "Ein Vogel."),
    ("A cat.", "Eine Katze."),
]


@pytest.fixture
def corpus(tmp_path):
    def write(name, pairs):
        for side, place in (("en", 0), ("de", 1)):
            lines = "".join(f"{pair[place]}\n" for pair in pairs)
            (tmp_path / f"{name}.{side}").write_text(lines, "utf-8")
        return Corpus(str(tmp_path / f"{name}.en"), str(tmp_path / f"{name}.de"))

    return write


def inspected(near=False, **splits):
    return inspect({name: [part] for name, part in splits.items()}, DataConfig(), near)


def test_pairs_are_counted_with_the_numbers_of_their_lines(corpus):
    (report,) = inspected(training=corpus("train", TRAINING)).corpora
    assert (report.pairs, report.skipped) == (4, {"empty text": 1})
    assert [side.distinct for side in report.sides] == [3, 3]
    assert [side.words for side in report.sides] == [22, 21]
    counts = {name: found.count for name, found in report.findings.items() if found.count}
    counts.pop("language", None)  # which needs a package
    assert counts == {"duplicate": 1, "identical": 1}
    (duplicate,) = report.findings["duplicate"].examples
    assert (duplicate.line, duplicate.texts) == (3, TRAINING[2])
    assert report.findings["identical"].examples[0].line == 5


def test_lines_of_a_test_set_that_are_in_the_training_text(corpus):
    found = inspected(training=corpus("train", TRAINING), test=corpus("test", TEST))
    assert [(report.split, report.pairs) for report in found.corpora] == [
        ("training", 4),
        ("test", 4),
    ]
    (overlap,) = found.overlaps
    assert [report.name for report in found.corpora] == ["train.en-de", "test.en-de"]
    assert (overlap.held_out, overlap.split, overlap.pairs) == ("test", "training", 4)
    assert {part: shared.count for part, shared in overlap.exact.items()} == {
        "source": 1,
        "target": 1,
        "pair": 0,
    }
    (example,) = overlap.exact["target"].examples
    assert (example.line, example.texts) == (1, TRAINING[0])
    assert example.other == "line 2 of test.en-de"


def test_each_split_is_compared_with_each_other(corpus):
    parts = {name: corpus(name, TEST) for name in ("training", "validation", "test")}
    overlaps = inspected(**parts).overlaps
    assert [(x.held_out, x.split) for x in overlaps] == [
        ("test", "training"),
        ("validation", "training"),
        ("test", "validation"),
    ]
    for overlap in overlaps:  # all lines, two of which have one source
        assert {shared.count for shared in overlap.exact.values()} == {4}


def test_pairs_of_an_earlier_corpus_of_the_split_are_found(corpus):
    """A pair that a corpus has twice counts twice; one of the same corpus, or of the test, not."""
    listed = [corpus("a", TRAINING), corpus("b", TEST[2:] * 2), corpus("c", [*TEST, *TRAINING[2:]])]
    splits = {"training": listed, "test": [corpus("test", TRAINING)]}
    reports = inspect(splits, DataConfig(), compares_near=False).corpora
    assert [report.repeated and report.repeated.count for report in reports] == [None, 0, 5, None]
    assert [example.line for example in reports[2].repeated.examples] == [3, 4, 5, 6, 7]
    (row,) = [row for row in tables(Inspection(reports, []))[1].rows if row[0] == "repeated"]
    assert row[3:] == ["–", "0", "5 (71 %)", "–"]
    assert "repeated: 5 pairs" in corpus_page(Inspection(reports, []), [], "")


def test_examples_are_the_first_five(corpus):
    (report,) = inspected(training=corpus("train", [("a b c", "a b c")] * 9)).corpora
    finding = report.findings["identical"]
    assert finding.count == 9
    assert [example.line for example in finding.examples] == list(range(1, EXAMPLES + 1))


def test_near_texts_are_found_and_equal_ones_are_not(corpus):
    """The pairs differ by a mark, a case and a word. Random texts resemble no other."""
    pytest.importorskip("rensa")
    letters = random.Random(1)
    noise = ["".join(letters.choices("abcdefghij ", k=40)) for _ in range(300)]
    near = [
        "Two young men are walking along the river in the morning sun.",
        "Two young men are walking along the river in the morning sun!",
        "two young men are walking along the river in the Morning sun",
        "Two young men are walking along a river in the morning sun.",
        "Two young men are walking along the river in the morning sun.",
    ]
    texts = [*noise, *near]
    training = corpus("train", [(text, text) for text in texts])
    test = corpus("test", [(near[0], "a"), ("Two young men walk home", near[3])])
    (report, _), (overlap,) = inspected(near=True, training=training, test=test)
    assert [example.line for example in report.near["source"].examples] == [302, 303, 304]
    assert report.near["source"].count == 3
    assert {side: shared.count for side, shared in overlap.near.items()} == {
        "source": 1,
        "target": 1,
    }
    assert overlap.exact["target"].count == 1


def test_a_sample_has_pairs_from_all_of_the_corpus(corpus):
    """Oracle: 1,000 of 4,000 pairs; a quarter of 1,000 in each quarter, ± 5 standard deviations."""
    pairs = [(f"text {n}", f"Text {n}") for n in range(4000)]
    (report,) = inspected(training=corpus("train", pairs)).corpora
    numbers = [int(source.split()[1]) for source, _ in report.sample]
    assert len(set(numbers)) == 1000
    for quarter in range(4):
        assert abs(sum(n // 1000 == quarter for n in numbers) - 250) < 60


def test_words_lengths_and_scripts():
    side = SideCounts()
    for text in ["a b c", "a", "ж ж ж ж 1º"]:
        side.add(text)
    assert (side.words, side.distinct_words) == (9, 5)
    assert [side.length(share) for share in (0.3, 0.5, 1)] == [1, 3, 5]
    assert side.scripts() == {"Cyrillic": 4, "Latin": 5}
    assert side.heaps() is None


def test_the_growth_of_the_vocabulary_is_fitted():
    """Oracle: every second word is new, so distinct = words / 2."""
    side = SideCounts()
    for n in range(5000):
        side.add(f"same w{n}")
    constant, exponent = side.heaps()
    assert exponent == pytest.approx(1, abs=0.02)
    assert constant == pytest.approx(0.5, abs=0.1)


def test_corpora_that_cannot_be_read_are_errors(corpus):
    part = corpus("train", TRAINING)
    with pytest.raises(InputError, match="no example"):
        inspected(training=corpus("empty", [("", "")]))
    with pytest.raises(InputError, match="is not a file"):
        inspected(training=Corpus(part.source, part.target + "x"))


def test_texts_in_other_languages_are_found_if_the_languages_are_known(corpus, tmp_path):
    pytest.importorskip("py3langid")
    pair = ("Where is the next train station?", "Où est la prochaine gare ?")
    named = corpus("a", [*TRAINING, pair])
    (report,) = inspected(training=named).corpora
    assert [example.line for example in report.findings["language"].examples] == [5, 6]
    (tmp_path / "a.tsv").write_text("\t".join(pair))
    (report,) = inspected(training=Corpus(path=str(tmp_path / "a.tsv"))).corpora
    assert "language" not in report.findings
