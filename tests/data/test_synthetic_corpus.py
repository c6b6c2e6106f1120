"""The files of a synthetic corpus: pairs within limits, and a card of their origin."""

import json

import pytest

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers import open_corpus
from tf_transformer.data.synthetic_corpus import Limits, SyntheticCorpus, Translation
from tf_transformer.errors import InputError

LIMITS = Limits(min_score=-2.0, max_ratio=3.0)
KEPT = Translation("a \u2028house", "ein Haus", -0.5, 1.0)
DROPPED = {
    "score below -2": Translation("a", "b", -2.01, 1.0),
    "length ratio above 3": Translation("a", "b c d", -0.1, 3.5),
    "translation at its length limit": Translation(
        "a", "b b b", -0.1, 1.0, "translation at its length limit"
    ),
    "empty": Translation("a", " ", -0.1, 1.0),
}


@pytest.fixture
def corpus(tmp_path):
    """The translation to keep, and 1, 2, 4 and 8 of those to drop."""
    corpus = SyntheticCorpus(tmp_path / "synthetic")
    corpus.begin({"--text": "a", "model": "b"})
    lines = [KEPT, *(row for i, row in enumerate(DROPPED.values()) for _ in range(2**i))]
    corpus.translations.write_text("".join(f"{row.to_json()}\n" for row in lines), "utf-8")
    return corpus


def test_each_reason_to_drop_a_translation_is_counted(corpus):
    summary = corpus.select(LIMITS)
    counts = dict(zip(DROPPED, (1, 2, 4, 8), strict=True))
    listed = [f"{count} dropped ({reason})" for reason, count in reversed(counts.items())]
    assert summary == ", ".join(["1 pairs", *listed])
    card = json.loads(corpus.card.read_text("utf-8"))
    assert card == {
        "origin": {"--text": "a", "model": "b"},
        "limits": {"min_score": -2.0, "max_ratio": 3.0},
        "kept": 1,
        "dropped": counts,
    }


def test_the_pairs_are_a_corpus(corpus):
    corpus.select(LIMITS)
    rows = open_corpus(Corpus(path=str(corpus.pairs)), ("source", "target"), DataConfig())
    assert rows.texts() == [[KEPT.source], [KEPT.target]]


def test_other_limits_select_from_the_same_translations(corpus):
    corpus.select(LIMITS)
    assert corpus.select(Limits(-3.0, 4.0)).startswith("4 pairs, ")
    with pytest.raises(InputError, match=r"0 pairs, 8 dropped \(empty\).* lower min_score"):
        corpus.select(Limits(0.0, 1.0))


def test_a_folder_has_translations_of_one_origin(corpus):
    corpus.begin({"--text": "a", "model": "b"})
    other = {"--text": "a", "model": "c", "--beam_size": "2"}
    with pytest.raises(InputError, match=r"other values of --beam_size, model\. Give the same"):
        corpus.begin(other)
    corpus.translations.unlink()
    corpus.begin(other)  # nothing would be lost
    assert json.loads(corpus.card.read_text("utf-8")) == {"origin": other}


@pytest.mark.parametrize("name", ["translations.jsonl", "pairs.jsonl", "card.json"])
def test_files_of_others_stay(tmp_path, name):
    (tmp_path / name).write_text('{"mine": 1}')
    with pytest.raises(InputError, match=f"{name} is not a file of this command"):
        SyntheticCorpus(tmp_path).begin({"--text": "a"})
    assert [path.read_text() for path in tmp_path.iterdir()] == ['{"mine": 1}']
