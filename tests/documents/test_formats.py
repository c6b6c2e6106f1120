"""Each format: no text is lost or moved, the rest stays, and other projects read the result."""

import importlib
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import zipfile

import hypothesis.strategies as st
import pytest
from document_cases import CASES, upper
from hypothesis import given

from tf_transformer.documents import (
    FORMATS,
    Options,
    is_document,
    read_content,
    read_document,
    translated,
)
from tf_transformer.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]
OPTIONS = Options("en", "de")
# In Markdown, punctuation is markup.
WORDS = st.text("abcdefghijklmnopqrstuvwxyzäéøżабв日本", min_size=1, max_size=9)
PLAIN = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
MARKS = st.sampled_from(["&", "&amp;", "<b>", "a < b", '"', "'", "%s", "{name}", "\\", "–", "🙂"])
ANY = st.lists(WORDS | MARKS, min_size=1, max_size=6).map(" ".join)
TEXTS = {
    ending: st.lists(
        PLAIN
        if ending in (".md", ".srt")
        else WORDS.flatmap(lambda x: ANY.map(f"{x} {{}}".format)),
        min_size=1,
        max_size=8,
    )
    for ending in CASES
}


@pytest.fixture(params=CASES)
def case(request):
    make, texts_of, packages = CASES[request.param]
    for package in packages:
        pytest.importorskip(package)
    return request.param, make, texts_of


def translate(folder, ending, content, function, options=OPTIONS):
    path = pathlib.Path(folder) / f"in{ending}"
    path.write_bytes(content)
    return translated(read_document(path, options), function)


def test_every_format_has_a_case():
    assert {FORMATS[ending].reader for ending in CASES} == {x.reader for x in FORMATS.values()}


def test_texts_stay_in_number_and_order(case, tmp_path):
    ending, make, texts_of = case

    @given(TEXTS[ending])
    def check(texts):
        content = make(texts)
        assert texts_of(content) == texts
        same, lost = translate(tmp_path, ending, content, list)
        assert texts_of(same) == texts
        assert lost == 0
        other, lost = translate(tmp_path, ending, content, upper)
        assert texts_of(other) == upper(texts)
        assert lost == 0

    check()


@pytest.mark.parametrize("ending", [".txt", ".md", ".html", ".srt", ".json"])
def test_a_document_whose_texts_are_equal_keeps_each_byte(ending, tmp_path):
    for package in CASES[ending][2]:
        pytest.importorskip(package)
    content = CASES[ending][0](["one", "two & three", "four"]).replace(b"\n", b"\r\n")
    content = b"\xef\xbb\xbf" + content.replace(b"lang=en", b'lang="de"')
    assert translate(tmp_path, ending, content, list) == (content, 0)


PIECES = st.sampled_from(
    [
        *("word", " ", "\n", "\n\n", "\r\n", "\t", "&", "&amp;", "&#x41;", "\\", "é", "\u00a0"),
        *("<b>", "</b>", "<p>", "</p>", "<br/>", "<img alt='a'>", "<!-- c -->", "<", ">", "<pre>"),
        *(
            '<a title="t">',
            "</a>",
            '<p translate="no">',
            "<script>",
            "</script>",
            "<![CDATA[",
            "<?x",
        ),
        *("*", "**", "_", "~~", "`", "``", "[", "](", ")", "![", "](x)", "][x]", "[x]: y", "# "),
        *("> ", "- ", "1. ", "    ", "| ", "|---|", "---", "===", "```", "  \n", "\\\n", "[^1]"),
        *("<x@y.z>", "<http://x>", "[ ] ", '"', "'", "00:00:01,000 --> 00:00:02,000\n", "{\\an8}"),
    ]
)


@pytest.mark.parametrize("ending", [".md", ".html", ".srt"])
@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_markup_is_read_and_kept(tmp_path_factory, ending, text):
    for package in CASES[ending][2]:
        pytest.importorskip(package)
    head = "1\n00:00:00,000 --> 00:00:01,000\n" if ending == ".srt" else ""
    content = f"{head}{text}".encode()
    folder = tmp_path_factory.getbasetemp()
    assert translate(folder, ending, content, list, Options("en")) == (content, 0)


def test_equal_texts_are_translated_once(tmp_path):
    calls = []
    content = CASES[".json"][0](["one", "17", "one", "two"])
    translate(tmp_path, ".json", content, lambda texts: calls.append(texts) or texts)
    assert calls == [["one", "two"]]


def test_a_text_whose_translation_is_empty_stays(tmp_path):
    content = b'{"a": "one"}'
    assert translate(tmp_path, ".json", content, lambda texts: [""]) == (content, 0)


def test_a_document_without_texts_is_not_translated(tmp_path):
    content = b'{"a": ["17", "", " - "]}'
    assert translate(tmp_path, ".json", content, None) == (content, 0)


BROKEN = {
    ".json": (b'{"a": ', "it is not JSON"),
    ".xliff": (b"<xliff>", "not well-formed XML"),
    ".xlf": (b"<a/>", "expected XLIFF 1.2 or 2.0"),
    ".tmx": (b"<tmx/>", "expected TMX with a header"),
    ".docx": (b"PK no", "it is not a Word document"),
    ".srt": (b"no cue", "it has no cue"),
    ".po": (b"no message\n", "line 1 of the document is not PO"),
    ".html": (b"\xe9t\xe9", "is not UTF-8: it has the byte 0xe9. Convert it"),
    ".md": (b"\xff\xfea\0b\0", "is UTF-16; expected UTF-8"),
}


@pytest.mark.parametrize("ending", BROKEN)
def test_a_broken_file_is_an_error_with_its_name_and_advice(ending, tmp_path):
    content, message = BROKEN[ending]
    for package in CASES[ending][2]:
        pytest.importorskip(package)
    with pytest.raises(InputError, match=message) as error:
        translate(tmp_path, ending, content, list)
    assert f"in{ending}" in str(error.value)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(InputError, match="is not a file"):
        read_document(tmp_path / "missing.json")


@pytest.mark.parametrize("name", ["a.pdf", "a", "docx"])
def test_a_name_without_the_ending_of_a_format_is_an_error(name):
    with pytest.raises(InputError, match=rf"{name} is no document: .* \.md, .*\.docx"):
        read_content(b"", name)


def test_a_missing_package_is_an_error_with_the_extra(tmp_path, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name=name)

    (tmp_path / "a.po").write_bytes(b"")
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(InputError, match=r"pip install 'tf_transformer\[documents\]'"):
        read_document(tmp_path / "a.po")


@pytest.mark.parametrize("name", ["a.docx", "b/A.HTML", "x.tar.po"])
def test_the_ending_of_a_name_tells_documents(name):
    assert is_document(name)
    assert not is_document(f"{name}.txt")


def test_a_document_of_another_language_is_an_error(tmp_path):
    for ending in (".xliff", ".tmx"):
        for package in CASES[ending][2]:
            pytest.importorskip(package)
        with pytest.raises(InputError, match="another --run_dir"):
            translate(tmp_path, ending, CASES[ending][0](["one"]), list, Options("fr", "de"))


def test_a_document_that_needs_a_language_says_so(tmp_path):
    pytest.importorskip("lxml")
    for ending in (".xlf", ".tmx"):
        with pytest.raises(InputError, match="Give --target_language"):
            translate(tmp_path, ending, CASES[ending][0](["one"]), list, Options())


READ = """
import importlib, json, sys
module, kind, path = sys.argv[1:]
store = getattr(importlib.import_module(f"translate.storage.{module}"), kind).parsefile(path)
units = [unit for unit in store.units if unit.istranslatable()]
print(json.dumps([[str(unit.source), str(unit.target), unit.isfuzzy()] for unit in units]))
"""


@pytest.mark.parametrize(
    ("ending", "module", "kind", "is_fuzzy"),
    [
        (".xliff", "xliff", "Xliff1File", True),
        (".xlf", "xliff2", "Xliff2File", False),
        (".tmx", "tmx", "tmxfile", False),
        (".po", "pypo", "pofile", True),
    ],
)
def test_the_translate_toolkit_reads_the_result(ending, module, kind, is_fuzzy, tmp_path):
    """In a process of its own: translate.py here has the name of its package."""
    for package in CASES[ending][2]:
        pytest.importorskip(package)
    if "translate-toolkit" not in {x.name for x in importlib.metadata.distributions()}:
        pytest.skip("needs translate-toolkit")
    texts = ["one <b>", "two & three", "four"]
    result, _ = translate(tmp_path, ending, CASES[ending][0](texts), upper)
    path = tmp_path / f"out{ending}"
    path.write_bytes(result)
    command = [sys.executable, "-P", "-c", READ, module, kind, path]
    folders = [x for x in sys.path if pathlib.Path(x or ".").resolve() != ROOT]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    read = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    new = [unit for unit in json.loads(read.stdout) if unit[0] in texts]
    assert new == [[text, *upper([text]), is_fuzzy] for text in texts]


def test_other_files_in_a_word_document_stay(tmp_path):
    pytest.importorskip("docx")
    content, _ = translate(tmp_path, ".docx", CASES[".docx"][0](["one"]), upper)
    (tmp_path / "out.docx").write_bytes(content)
    old, new = (zipfile.ZipFile(tmp_path / f"{name}.docx") for name in ("in", "out"))
    assert new.namelist() == old.namelist()
    changed = {name for name in old.namelist() if old.read(name) != new.read(name)}
    assert changed <= {"word/document.xml", "word/styles.xml"}
