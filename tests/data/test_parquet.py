"""Parquet files as corpora."""

import pyarrow
import pyarrow.parquet
import pytest

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import read_test, stream
from tf_transformer.errors import InputError

FIELDS = ("source", "target")
SOURCES, TARGETS = ["a house", "two", "three"], ["ein Haus", "zwei", None]
NESTED = [{"de": t, "en": s} for s, t in zip(SOURCES, TARGETS, strict=True)]


@pytest.fixture
def table(tmp_path):
    """Writes a table and gives its corpus."""

    def write(columns: dict, *names: str, **options) -> Corpus:
        path = tmp_path / "a.parquet"
        pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
        return Corpus(path=str(path), columns=names)

    return write


def examples(corpus: Corpus):
    return stream([corpus], FIELDS, DataConfig()).read()


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"id": [1, 2, 3], "translation": NESTED}, ()),
        ({"translation": [*NESTED[:2], {"en": "three", "de": ""}]}, ("en", "de")),
        ({"source": SOURCES, "target": TARGETS}, ()),
        ({"de": TARGETS, "en": pyarrow.array(SOURCES, pyarrow.large_string())}, ()),
        ({"x": TARGETS, "y": pyarrow.array(SOURCES).dictionary_encode()}, ("y", "x")),
        ({"en": TARGETS, "de": TARGETS, "y": SOURCES}, ("y", "de")),
    ],
)
def test_texts_are_columns_or_in_the_column_translation(table, columns, names):
    corpus = table(columns, *names, row_group_size=2)
    read = examples(corpus)
    assert read.texts == {"source": SOURCES[:2], "target": TARGETS[:2]}
    assert read.skipped == {"empty text": 1}
    assert read_test(corpus, FIELDS, DataConfig()) == [SOURCES, ["ein Haus", "zwei", ""]]


def test_a_row_without_a_translation_is_empty(table):
    read = examples(table({"translation": [NESTED[0], None]}))
    assert read["source"] == ["a house"]
    assert read.skipped == {"empty text": 1}


def test_a_language_model_reads_one_column(table):
    corpus = table({"text": SOURCES, "id": [1, 2, 3]})
    assert stream([corpus], ["text"], DataConfig()).read().texts == {"text": SOURCES}


def test_the_content_identifies_a_corpus(table):
    def identity(columns: dict) -> str:
        return stream([table(columns)], FIELDS, DataConfig()).identity

    first = identity({"en": SOURCES, "de": TARGETS})
    assert identity({"en": SOURCES, "de": TARGETS}) == first
    assert identity({"en": TARGETS, "de": SOURCES}) != first


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        ({"a": ["x"]}, (), "the columns 'a'; expected 'source' and 'target', or 'en' and 'de'. Gi"),
        ({"translation": [{"fr": "x"}]}, (), "the columns 'translation', 'translation.fr'; exp"),
        ({"en": ["x"], "de": [1]}, (), "the column 'de' must be text, got int64"),
        ({"en": ["x"], "de": ["y"], "translation": NESTED[:1]}, (), "has two pairs of texts: 'en'"),
        ({"en": ["x"], "de": ["y"]}, ("en", "fr"), "'de'; expected 'en' and 'fr'"),
        (
            {"en": pyarrow.array([], "string"), "de": pyarrow.array([], "string")},
            (),
            "at least one",
        ),
    ],
)
def test_errors_name_the_columns(table, columns, names, message):
    with pytest.raises(InputError, match=message):
        examples(table(columns, *names))


def test_a_broken_file_is_an_error(table, tmp_path):
    corpus, path = table({"en": SOURCES, "de": SOURCES}), tmp_path / "a.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"a\.parquet is not a whole Parquet file: "):
        examples(corpus)
    path.unlink()
    with pytest.raises(InputError, match=r"a\.parquet is not a file"):
        examples(corpus)
