"""XML in the encoding that its byte-order mark or its first line names."""

import codecs
import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import read_test, stream
from tf_transformer.errors import InputError
from tf_transformer.files import text_lines, xml_text

FIELDS = ("source", "target")
MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
}
LETTERS = {
    **{"iso-8859-1": " aéÿ\xad", "cp1252": " a€“ü", "iso-8859-2": " aőł", "koi8-r": " aЖя"},
    **{"shift_jis": " aカ文", "gb18030": " a文€😀", "big5": " a文字"},
}
# Encoding of the bytes, declared encoding (None: no declaration), and whether there is a mark.
FILES = [
    *(("utf-8", "UTF-8", False), ("utf-8", None, False), ("utf-8", None, True)),
    *(("utf-16-le", "UTF-16", True), ("utf-16-be", "utf-16", True), ("utf-16-le", None, True)),
    *(("utf-16-le", "UTF-16LE", False), ("utf-16-be", "UTF-16", False), ("utf-32-le", None, True)),
    *(("iso-8859-1", "ISO-8859-1", False), ("cp1252", "windows-1252", False)),
    *(("iso-8859-2", "ISO-8859-2", False), ("koi8-r", "KOI8-R", False)),
    *(("shift_jis", "Shift_JIS", False), ("gb18030", "GB18030", False), ("big5", "Big5", False)),
    *(("utf-8", "UTF-16", False), ("utf-8", "ISO-8859-1", True), ("utf-8", "unicode", False)),
]


def memory(source: str, encoding: str, declared: str | None, with_mark: bool) -> bytes:
    head = f'<?xml version="1.0" encoding="{declared}"?>\n' if declared else ""
    segments = f'<tuv lang="en"><seg>{source}</seg></tuv><tuv lang="de"><seg>y</seg></tuv>'
    text = f'{head}<tmx version="1.1"><body><tu>{segments}</tu></body></tmx>'
    return (MARKS[encoding] if with_mark else b"") + text.encode(encoding)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("xml") / "a.tmx"


def read(path) -> str:
    return read_test(Corpus(path=str(path)), FIELDS, DataConfig())[0][0]


@settings(max_examples=80)
@given(st.sampled_from(FILES), st.data(), st.booleans())
def test_a_memory_is_read_in_the_encoding_that_it_names(path, file, data, is_compressed):
    """An out-of-date name of an encoding of other width does not count, nor does an unknown one."""
    texts = st.text(LETTERS.get(file[0], " aü文😀\u2028\ufeff"), min_size=1)
    source = data.draw(texts) * data.draw(st.sampled_from([1, 3000]))  # more than a chunk
    content = memory(source, *file)
    path.write_bytes(gzip.compress(content) if is_compressed else content)
    assert read(path) == source


def test_the_identity_of_a_memory_does_not_depend_on_its_encoding(path):
    identities = set()
    for file in (("utf-8", None, False), ("utf-8", None, True), ("utf-16-be", None, True)):
        path.write_bytes(memory("ü", *file))
        identities.add(stream([Corpus(path=str(path))], FIELDS, DataConfig()).identity)
    assert len(identities) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            memory("ü", "iso-8859-1", None, False),
            "line 1 of .* is not well-formed XML: not well-formed .* in <seg> of line 1. If the "
            "file is not in UTF-8, its first line must name the encoding.$",
        ),
        (
            memory("ü", "iso-8859-1", "Shift_JIS", False).replace(b"\xfc", b"\xff"),
            r"a\.tmx is not Shift_JIS, the encoding that it names: .* position .* Correct the name",
        ),
        (memory("one", "utf-16-le", "UTF-16", True)[:-1], "not UTF-16, the encoding .* truncated"),
        (b"PK\x03\x04<tmx>", "is a zip archive"),
        (memory("\1", "utf-16-le", "UTF-16", True), "not well-formed .* in <seg> of line 2"),
        (b'<?xml version="1.0" encoding="zlib"?>\n<tmx>\xff', "line 2 of .* is not well-formed"),
    ],
)
def test_bytes_that_are_not_in_the_encoding_are_errors(path, content, message):
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_file_in_utf8_that_names_another_encoding_gives_one_warning(path, capsys):
    text_lines.warn.cache_clear()
    path.write_bytes(memory("ü", "utf-8", "ISO-8859-1", False))
    assert [read(path), read(path)] == ["Ã¼"] * 2
    assert capsys.readouterr().err == (
        f"warning: {path} is read as ISO-8859-1, the encoding that its first line names. It seems "
        "to be UTF-8; if letters come out wrong, correct the name.\n"
    )


def test_the_warning_comes_too_if_the_start_is_ascii(path, capsys):
    text_lines.warn.cache_clear()
    for content in ("x" * 20_000 + "ü", "ü" + "x" * 20_000):
        path.write_bytes(memory(content, "iso-8859-1", "ISO-8859-1", False))
        assert read(path) == content
    path.write_bytes(memory("x" * 20_000, "utf-8", "ISO-8859-1", False))
    assert read(path) == "x" * 20_000
    assert not capsys.readouterr().err
    path.write_bytes(memory("x" * 20_000 + "ü", "utf-8", "ISO-8859-1", False))
    assert read(path).endswith("Ã¼")
    assert capsys.readouterr().err.count("It seems to be UTF-8; if letters come out wrong") == 1


def test_iso_8859_1_holds_the_punctuation_of_windows(path):
    """As the WHATWG standard "Encoding" says. Five bytes have no character of Windows."""
    controls = "\x81\x8d\x8f\x90\x9d"
    for name in ("ISO-8859-1", "latin1", "iso-8859-1"):
        path.write_bytes(memory("don’t “go” – 5 €", "cp1252", name, False))
        assert read(path) == "don’t “go” – 5 €"
        path.write_bytes(memory(controls, "iso-8859-1", name, False))
        assert read(path) == controls


def test_entities_of_a_memory_in_another_encoding_are_errors(path):
    head = '<!DOCTYPE tmx [<!ENTITY a "b">]>'
    path.write_bytes(("\ufeff" + head + "<tmx>&a;</tmx>").encode("utf-16-le"))
    with pytest.raises(InputError, match=r"line 1 of .* declares or uses an entity"):
        read(path)


def test_a_piece_may_be_empty_and_a_character_may_be_in_two_pieces():
    content = memory("ü", "utf-16-le", "UTF-16", True)
    pieces = [b"", *(content[i : i + 1] for i in range(len(content)))]
    text = b"".join(xml_text.as_utf8(pieces, "x")).decode()
    assert text == memory("ü", "utf-8", "UTF-16", False).decode()
