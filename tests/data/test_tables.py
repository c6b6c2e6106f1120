"""Tables of tab-separated values, and what shows that their writer meant other values."""

import contextlib
import csv
import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import stream
from tf_transformer.errors import InputError
from tf_transformer.files import text_lines

FIELDS = ("source", "target")


@pytest.fixture
def table(tmp_path):
    """Writes a table and gives its corpus. Warnings of earlier tests are forgotten."""
    text_lines.warn.cache_clear()

    def write(content: str, *columns: str) -> Corpus:
        (tmp_path / "a.tsv").write_text(content)
        return Corpus(path=str(tmp_path / "a.tsv"), columns=columns)

    return write


def pairs(corpus: Corpus) -> list[tuple[str, ...]]:
    return list(stream([corpus], FIELDS, DataConfig()))


TEXTS = st.text('ab"', min_size=1, max_size=6)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(TEXTS, TEXTS), max_size=4),
    st.none() | st.tuples(TEXTS, st.sampled_from("\t\n"), TEXTS),
)
def test_what_a_writer_of_csv_means_is_read_or_reported(tmp_path_factory, rows, odd):
    """The writer of Python's csv quotes a text with a tab, a newline or a quotation mark."""
    path = tmp_path_factory.mktemp("tables") / "a.tsv"
    rows = [("one", "eins"), *rows, *([("".join(odd), "x")] if odd else [])]
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(rows)
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        try:
            is_read = pairs(Corpus(path=str(path))) == rows
        except InputError:
            is_read = False
            assert odd, "the quotation marks of CSV are no error"
            return
    assert is_read == (not stderr.getvalue())


@pytest.mark.parametrize(
    ("content", "columns", "expected"),
    [
        (
            "en\tde\none\teins\ttwo\n",
            ("en", "de"),
            "line 2 of .* has 3 values, but the first .* 2. A",
        ),
        (
            "one\teins\na\tb\tc\nd\te\tf\n",
            (),
            "line 2 of .* has 3 values, .* first line has 2. A tab",
        ),
        (
            'one\t"a ""b"" c"\ntwo\t""""\n',
            (),
            "line 1 of .* a value in quotation marks with doubled",
        ),
        (
            '"a house"\t"ein Haus"\n"two, dogs"\t"zwei Hunde"\n',
            (),
            ".* has quotation marks around each text of its first 2 rows. Here they are text",
        ),
        (
            "id\ten\tde\n" + '7\t"one"\t"a ""b"""\n' * 3 + "x\ty\tz\n",
            ("en", "de"),
            ".* has quotation marks around each text of its first 3 rows. Here they are text",
        ),
    ],
)
def test_the_first_doubtful_row_gives_one_warning(table, capsys, content, columns, expected):
    corpus = table(content, *columns)
    assert pairs(corpus) == pairs(corpus)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.match(f"warning: {expected}", error)


@pytest.mark.parametrize(
    "content",
    [
        "one\teins\tattribution\ntwo\tzwei\n",  # the last column may be missing
        '"Fire!"\t"Feuer!"\nHe said "hi" and "bye"\t"\nx\t""\n',  # quotation marks of a text
        '"one"\t"eins"\n"two"\t"zwei"\nthree\tdrei\n"four"\t"vier"\n',
        '"one"\t"eins"\n',
    ],
)
def test_other_rows_give_no_warning(table, capsys, content):
    expected = [tuple(line.split("\t")[:2]) for line in content.splitlines()]
    assert pairs(table(content)) == expected
    assert not capsys.readouterr().err


def test_two_columns_of_one_name_are_an_error(table):
    with pytest.raises(
        InputError, match=r"a\.tsv has 2 columns 'en'\. Give each a name of its own"
    ):
        pairs(table("en\tde\ten\none\teins\tuno\n", "en", "de"))
    assert pairs(table("en\tde\tx\tx\none\teins\t1\t2\n", "en", "de")) == [("one", "eins")]
