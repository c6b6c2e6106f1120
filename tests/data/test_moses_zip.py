"""Zip archives of OPUS as corpora."""

import tracemalloc
import zipfile

import pytest

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import read_test, stream
from tf_transformer.errors import InputError

FIELDS = ("source", "target")
FILES = {"README": "x", "LICENSE": "y", "B.de-en.xml": "<z/>"}
PAIR = {"B.de-en.de": "ein Haus\nzwei\n\n", "B.de-en.en": "a house\ntwo\nthree\n"}


@pytest.fixture
def archive(tmp_path):
    """Writes an archive of texts and gives its corpus."""

    def write(files: dict[str, str], **options) -> Corpus:
        with zipfile.ZipFile(tmp_path / "a.txt.zip", "w", zipfile.ZIP_DEFLATED) as file:
            for name, text in files.items():
                file.writestr(name, text)
        return Corpus(path=str(tmp_path / "a.txt.zip"), **options)

    return write


def examples(corpus: Corpus, source="en", target="de"):
    data = DataConfig(source_language=source, target_language=target)
    return stream([corpus], FIELDS, data).read()


def test_line_n_of_one_file_belongs_to_line_n_of_the_other(archive):
    corpus = archive(FILES | PAIR)
    read = examples(corpus)
    assert read.texts == {"source": ["a house", "two"], "target": ["ein Haus", "zwei"]}
    assert read.skipped == {"empty text": 1}
    assert examples(corpus, "de", "en")["source"] == ["ein Haus", "zwei"]
    assert read_test(corpus, FIELDS, DataConfig())[0] == ["a house", "two", "three"]


def test_a_language_also_stands_for_its_varieties(archive):
    corpus = archive({"x/B.en-pt_BR.en": "one", "x/B.en-pt_BR.pt_BR": "um"}, columns=("en", "pt"))
    assert examples(corpus).texts == {"source": ["one"], "target": ["um"]}


def test_the_texts_identify_a_corpus_and_not_their_compression(archive, tmp_path):
    def identity(corpus: Corpus) -> str:
        return stream([corpus], FIELDS, DataConfig()).identity

    first = identity(archive(FILES | PAIR))
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_STORED) as file:
        for name, text in PAIR.items():
            file.writestr(name, text)
    assert identity(Corpus(path=str(tmp_path / "b.zip"))) == first
    assert identity(archive(PAIR | {"B.de-en.en": "a house\ntwo\nfour\n"})) != first


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            FILES,
            r"has 0 pairs of files in en and de, .* Its files are README, LICENSE, B\.de-en\.x",
        ),
        (PAIR | {"C.en": "a", "C.de": "b"}, "has 2 pairs of files in en and de"),
        ({"A.en": "a", "B.de": "b"}, "has 0 pairs"),
        (
            {"A.en": "a\nb\n", "A.de": "b\n"},
            r"A\.de in .*zip ends after line 1, but A\.en in .* has",
        ),
        ({"A.en": "", "A.de": ""}, "expected at least one line"),
        ({"A.en": "\x00" * 100, "A.de": "a"}, r"A\.en in .*zip is binary data"),
    ],
)
def test_errors_name_the_files(archive, files, message):
    with pytest.raises(InputError, match=message):
        examples(archive(files))


def test_a_broken_archive_is_an_error(archive, tmp_path):
    corpus = archive({"A.en": "a house " * 1000, "A.de": "b"})
    path = tmp_path / "a.txt.zip"
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(InputError, match=r"a\.txt\.zip is not a whole zip archive: File is not"):
        examples(corpus)
    path.write_bytes(whole[:50] + b"\xff" * 4 + whole[54:])
    with pytest.raises(InputError, match=r"a\.txt\.zip is not a whole zip archive"):
        examples(corpus)
    path.unlink()
    with pytest.raises(InputError, match=r"a\.txt\.zip is not a file"):
        examples(corpus)


def test_memory_holds_a_piece_of_an_archive_of_any_size(archive):
    corpus = archive({"A.en": "word word\n" * 300_000, "A.de": "Wort Wort\n" * 300_000})
    tracemalloc.start()
    count = sum(1 for _ in stream([corpus], FIELDS, DataConfig()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 300_000
    assert peak < 1_000_000
