"""Test sets of WMT as corpora: documents, and the choice of a reference."""

import pytest

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import languages_of, read_test, stream
from tf_transformer.errors import InputError

FIELDS = ("source", "target")


def side(tag: str, language: str, texts: dict, attributes: str = "") -> str:
    segments = "".join(f'<seg id="{n}">{text}</seg>\n' for n, text in texts.items())
    return f'<{tag} lang="{language}" {attributes}><p>{segments}</p></{tag}>\n'


def document(source: dict, *references: tuple[str, dict], language: str = "de") -> str:
    refs = [side("ref", language, texts, f'translator="{name}"') for name, texts in references]
    output = side("hyp", language, dict.fromkeys(source, "no"), 'system="x"')
    return f'<doc origlang="en" id="d">{side("src", "en", source)}{"".join(refs)}{output}</doc>'


TWO = document(
    {1: "one", 2: "a &amp; b"}, ("A", {1: "eins", 2: "a &amp; B"}), ("B", {1: "EINS", 2: "B"})
)
ONE = document({2: "three", 1: "four"}, ("A", {1: "vier", 2: "drei"}))


@pytest.fixture
def dataset(tmp_path):
    """Writes documents and gives their corpus."""

    def write(*documents: str, **options) -> Corpus:
        head = '<?xml version="1.0" encoding="UTF-8"?>\n<dataset id="x"><collection id="y">'
        text = f"{head}{''.join(documents)}</collection></dataset>"
        (tmp_path / "a.xml").write_text(text, "utf-8")
        return Corpus(path=str(tmp_path / "a.xml"), **options)

    return write


def examples(corpus: Corpus):
    return stream([corpus], FIELDS, DataConfig()).read()


def test_documents_and_segments_keep_their_order(dataset):
    texts = read_test(dataset(TWO, ONE), FIELDS, DataConfig())
    assert texts == [["one", "a & b", "three", "four"], ["eins", "a & B", "drei", "vier"]]


@pytest.mark.parametrize("name", ["B", "refB"])
def test_the_columns_choose_a_reference(dataset, capsys, name):
    corpus = dataset(TWO, ONE, columns=("en", f"de:{name}"))
    read = examples(corpus)
    assert read.texts == {"source": ["one", "a & b"], "target": ["EINS", "B"]}
    assert read.skipped == {f"without reference {name}": 2}
    assert read_test(corpus, FIELDS, DataConfig())[1] == ["EINS", "B"]
    assert f"left out 2 without reference {name}" in capsys.readouterr().err
    assert languages_of(corpus, DataConfig()) == ("en", "de")


def test_either_side_may_be_the_source(dataset):
    read = examples(dataset(TWO, columns=("de:B", "en")))
    assert read.texts == {"source": ["EINS", "B"], "target": ["one", "a & b"]}


def test_segments_without_a_reference_are_skipped_and_counted(dataset):
    documents = document({1: "one", 2: "two"}, ("A", {2: "zwei"})), document({1: "three"})
    read = examples(dataset(*documents, ONE))
    assert read.texts == {"source": ["two", "three", "four"], "target": ["zwei", "drei", "vier"]}
    assert read.skipped == {"without en or de": 2}


def test_segments_without_an_id_are_numbered(dataset):
    corpus = dataset(TWO.replace(' id="1"', "").replace(' id="2"', ""))
    assert read_test(corpus, FIELDS, DataConfig()) == [["one", "a & b"], ["eins", "a & B"]]


@pytest.mark.parametrize(
    ("documents", "columns", "message"),
    [
        ([TWO, ONE], ("en", "de:C"), r"a\.xml has no reference C; its references are A, B\. Name"),
        ([TWO], ("en", "fr"), "no translation unit in en and fr; its languages are en, de"),
        ([document({1: "a"})], (), "no translation unit in en and de; its languages are en"),
        (
            [TWO, ONE.replace('id="2"', 'id="1"')],
            (),
            r"line 1\d of .*a\.xml has a second segment 1 ",
        ),
        ([TWO, "\n<doc>"], (), r"line 1\d of .*a\.xml is not well-formed XML: mismatched tag"),
    ],
)
def test_errors_name_what_the_file_has(dataset, documents, columns, message):
    with pytest.raises(InputError, match=message):
        examples(dataset(*documents, columns=columns))
