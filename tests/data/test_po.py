"""PO files as corpora: which messages are pairs."""

import pathlib

import pytest

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import read_test, stream
from tf_transformer.errors import InputError

FIELDS = ("source", "target")
HEADER = r"""msgid ""
msgstr ""
"Language: {language}\n"
"Content-Type: text/plain; charset={charset}\n"
"Plural-Forms: {plural}\n"
"""
RUSSIAN = (
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && "
    "(n%100<12 || n%100>14) ? 1 : 2);"
)


@pytest.fixture
def catalog(tmp_path):
    """Writes a PO file and gives its corpus."""

    def write(messages: str, language="de", charset="UTF-8", plural="", **options) -> Corpus:
        header = HEADER.format(language=language, charset=charset, plural=plural)
        (tmp_path / "a.po").write_bytes(f"{header}\n{messages}\n".encode(charset))
        return Corpus(path=str(tmp_path / "a.po"), **options)

    return write


def examples(corpus: Corpus, source="en", target="de"):
    data = DataConfig(source_language=source, target_language=target)
    return stream([corpus], FIELDS, data).read()


MESSAGES = r"""
# a comment
#: src/main.c:7
#, c-format
msgctxt "menu"
msgid "Open %s\n"
"now"
msgstr "%s \"jetzt\" öffnen"

#, fuzzy, c-format
msgid "Close"
msgstr "Öffnen"

msgid "Save"
msgstr ""

#~ msgid "Old"
#~ msgstr "Alt"
"""


@pytest.mark.parametrize("charset", ["UTF-8", "ISO-8859-1"])
def test_only_messages_with_a_translation_are_pairs(catalog, capsys, charset):
    corpus = catalog(MESSAGES, charset=charset)
    read = examples(corpus)
    assert read.texts == {"source": ["Open %s now"], "target": ['%s "jetzt" öffnen']}
    assert read.skipped == {"fuzzy": 1, "untranslated": 1, "obsolete": 1}
    assert read_test(corpus, FIELDS, DataConfig()) == [["Open %s now"], ['%s "jetzt" öffnen']]
    assert "left out 1 fuzzy, 1 untranslated, 1 obsolete" in capsys.readouterr().err


def plural(*forms: str) -> str:
    lines = [f'msgstr[{n}] "{form}"' for n, form in enumerate(forms)]
    return "\n".join(['msgid "one file"', 'msgid_plural "%d files"', *lines])


@pytest.mark.parametrize(
    ("language", "rule", "forms", "sources"),
    [
        ("de", "nplurals=2; plural=(n != 1);", ["a", "b"], ["one file", "%d files"]),
        ("fr", "nplurals=2; plural=(n > 1);", ["a", "b"], ["one file", "%d files"]),
        ("ru", RUSSIAN, ["a", "b", "c"], ["one file", "%d files", "%d files"]),
        ("ja", "nplurals=1; plural=0;", ["a"], ["%d files"]),
        ("lv", "", ["a", "b", "c"], ["%d files", "one file", "%d files"]),  # CLDR: 0 comes first
        ("de", "", ["a", ""], ["one file"]),
    ],
)
def test_each_plural_form_pairs_with_the_singular_or_the_plural(
    catalog, language, rule, forms, sources
):
    read = examples(catalog(plural(*forms), language, plural=rule), target=language)
    assert read.texts == {"source": sources, "target": [form for form in forms if form]}


def test_a_corpus_may_translate_from_the_translations(catalog):
    corpus = catalog('msgid "a"\nmsgstr "b"', reverse=True)
    assert examples(corpus, "de", "en").texts == {"source": ["b"], "target": ["a"]}


@pytest.mark.parametrize(
    ("messages", "options", "message"),
    [
        ("msgid open", {}, r"line 7 of .*a\.po is not PO: expected a comment, .* got msgid open"),
        ('msgid "a"\nmsgstr "b', {}, 'line 8 of .* is not PO: .* got msgstr "b. Check'),
        ('msgid "a"\nmsgstr "b\u2028c"', {}, "line 8 of .* is not PO"),
        ('msgid "a"\nmsgid "b"', {}, r"a\.po is not a PO file: .*\(line 8\)"),
        (plural("x"), {"plural": "nplurals=2; plural=n%0;"}, "a.po .* plural forms are wrong: "),
        ('msgid "a"\nmsgstr ""', {}, "no example in .* can be used: 1 untranslated"),
        ("", {}, "nothing is in .*a.po"),
        ('msgid "a"\nmsgstr "b"', {"language": "pt_BR"}, "into pt_BR, but data.target_language is"),
        ('msgid "a"\nmsgstr "b"', {"reverse": True}, "into de, but data.source_language is en"),
    ],
)
def test_errors_name_file_and_line(catalog, messages, options, message):
    with pytest.raises(InputError, match=message):
        examples(catalog(messages, **options))


def test_bytes_outside_of_the_charset_are_an_error_with_the_line(catalog):
    corpus = catalog('msgid "a"\nmsgstr "ä"', charset="UTF-8")
    path = pathlib.Path(corpus.path)
    path.write_bytes(path.read_bytes().replace("ä".encode(), b"\xe4"))
    with pytest.raises(
        InputError, match=r"line 8 of .* is not (utf|UTF)-8: .* Correct the charset"
    ):
        examples(corpus)
