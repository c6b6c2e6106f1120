"""What each format keeps, and where it puts translations; small documents by hand."""

import io
import pathlib
import re
import zipfile

import pytest
from document_cases import CASES, upper

from tf_transformer.documents import Options, read_document, translated
from tf_transformer.documents.subtitles import divided
from tf_transformer.errors import InputError

OPTIONS = Options("en", "de")


@pytest.fixture
def translate(tmp_path):
    """translate(ending, content): the texts to translate, and the document in capitals."""

    def run(ending, content, function=upper, options=OPTIONS):
        texts = []
        path = pathlib.Path(tmp_path) / f"in{ending}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        result, _ = translated(
            read_document(path, options), lambda new: texts.extend(new) or function(new)
        )
        return texts, result if isinstance(content, bytes) else result.decode()

    return run


# --- markdown --------------------------------------------------------------------------------

PAGE = """\
+++
title = "stays"
+++
# Head *em* \\* &amp; `code`

    indented = code

> quote **one**
> two [l](http://a/ü "t") [r][ref] ![An image](i.png)

| a | b \\| c |
|---|---|
| x | y **z** |

1. one\\
   cont
2. two <br> <b>bold</b> <https://x.org> end[^1]

- [ ] task

<div><p title="A tip">Inside</p></div>

Setext
======

[ref]: http://ref
[^1]: A note.
"""
IN_CAPITALS = """\
+++
title = "stays"
+++
# HEAD *EM* \\* & `code`

    indented = code

> QUOTE **ONE** TWO [L](http://a/ü "t") [R][ref] ![AN IMAGE](i.png)

| A | B \\| C |
|---|---|
| X | Y **Z** |

1. ONE\\
   CONT
2. TWO <br> <b>BOLD</b> <https://x.org> END[^1]

- [ ] TASK

<div><p title="A TIP">INSIDE</p></div>

SETEXT
======

[ref]: http://ref
[^1]: A NOTE.
"""


def test_markdown_keeps_code_addresses_and_definitions(translate):
    pytest.importorskip("markdown_it")
    texts, result = translate(".md", PAGE)
    assert result == IN_CAPITALS
    assert "quote <a>one</a> two <b>l</b> <c>r</c>" in texts


# --- html ------------------------------------------------------------------------------------


def test_html_keeps_scripts_code_and_what_says_no(translate):
    content = """\
<!DOCTYPE html><html><head><title>A &amp; b</title><style>p { color: red }</style></head>
<p>Hello <b>big</b> world,<br>
   <a href="x?a=1&amp;b=2" title='A "tip"'>the <i>link</i></a> &copy;.</p><!-- stays -->
<p translate="no">Brand <p>x</p></p><span class="x notranslate">Acme</span> is <code>x</code> good
<pre>stays</pre><img alt="A picture"><option>One<option>Two</html>
"""
    texts, result = translate(".html", content)
    assert texts == [
        "A & b",
        'A "tip"',
        "Hello <a>big</a> world, <b/> <c>the <d>link</d></c> ©.",
        "<a/> is <b/> good",
        "A picture",
        "One",
        "Two",
    ]
    expected = content.replace("<html>", '<html lang="de">')
    for old, new in (
        *(("A &amp; b", "A &amp; B"), ("Hello", "HELLO"), ("big", "BIG"), ("world", "WORLD")),
        *(("<br>\n   <a", "<br> <a"), ("'A \"tip\"'", "'A &quot;TIP&quot;'"), ("&copy;", "©")),
        *(("the <i>link", "THE <i>LINK"), ("is <code>x</code> good", "IS <code>x</code> GOOD")),
        *(("A picture", "A PICTURE"), ("One", "ONE"), ("Two", "TWO")),
    ):
        expected = expected.replace(old, new)
    assert result == expected


# --- subtitles -------------------------------------------------------------------------------

CUES = """\
1
00:00:01,000 --> 00:00:02,500
I went to the shop

2
00:00:02,600 --> 00:00:04,000
<i>and bought a loaf
of bread.</i>

3
00:00:05,000 --> 00:00:06,000
- Hello there
- {\\an8}Hi!

4
00:00:07,000 --> 00:00:08,000
♪ 17 ♪

5
00:00:09,000 --> 00:00:10,000
The end
and

6
00:00:20,000 --> 00:00:21,000
nothing
"""


def test_a_sentence_of_subtitles_may_run_over_cues(translate):
    german = {
        "I went to the shop and bought a loaf of bread.": "Ich ging einkaufen und nahm ein Brot.",
        "Hello there": "Hallo ihr da",
        "Hi!": "Hallo!",
        "The end and": "Schluss",
        "nothing": "nichts",
    }
    texts, result = translate(".srt", CUES, lambda new: [german[text] for text in new])
    assert texts == list(german)
    expected = CUES
    for old, new in (
        *(("I went to the shop", "Ich ging einkaufen"), ("and bought a loaf", "und nahm ein")),
        *(("of bread.", "Brot."), ("Hello there", "Hallo ihr da"), ("Hi!", "Hallo!")),
        *(("The end\nand", "Schluss"), ("nothing", "nichts")),
    ):
        expected = expected.replace(old, new)
    assert result == expected


@pytest.mark.parametrize(
    ("text", "weights", "parts"),
    [
        ("one two three four", [1, 1], ["one two", "three four"]),
        ("one two three four", [1, 3], ["one", "two three four"]),
        ("one two", [1, 1, 1], ["one", "", "two"]),
        ("日本語の字幕", [2, 4], ["日本", "語の字幕"]),
        ("word", [1, 1], ["", "word"]),
        ("", [1, 1], ["", ""]),
    ],
)
def test_texts_are_divided_in_proportion(text, weights, parts):
    assert divided([text], weights) == parts


# --- po --------------------------------------------------------------------------------------


SLOVENE = "(n%100==1 ? 1 : n%100==2 ? 2 : n%100==3 || n%100==4 ? 3 : 0)"


@pytest.mark.parametrize(
    ("header", "language", "forms"),
    [
        ("nplurals=2; plural=(n != 1);", "de", ["file", "files"]),
        ("nplurals=2; plural=n>1", "fr", ["file", "files"]),
        ("nplurals=1; plural=0;", "ja", ["files"]),
        (f"nplurals=4; plural={SLOVENE};", "sl", ["files", "file", "files", "files"]),
        ("nplurals=INTEGER; plural=EXPRESSION;", "pl", ["file", "files", "files"]),
        ("", "zh-Hant", ["files"]),
        ("", "", ["file", "files"]),
    ],
)
def test_po_gets_the_plural_forms_of_its_language(translate, header, language, forms):
    """As babel, which has the table of CLDR, and polib read them."""
    polib = pytest.importorskip("polib")
    babel = pytest.importorskip("babel.messages.pofile")
    content = (
        f'msgid ""\nmsgstr ""\n"Plural-Forms: {header}\\n"\n\n'
        'msgid "file"\nmsgid_plural "files"\nmsgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""\n'
    )
    options = Options("en", language)
    _, result = translate(".po", content, options=options)
    (message,) = polib.pofile(result)
    assert [*message.msgstr_plural.values()] == [form.upper() for form in forms]
    (_, message) = babel.read_po(io.StringIO(result), ignore_obsolete=True, abort_invalid=True)
    assert message.string == tuple(form.upper() for form in forms)


def test_wrong_plural_forms_are_an_error(translate):
    pytest.importorskip("polib")
    content = 'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=2; plural=n n;\\n"\n'
    with pytest.raises(InputError, match=r"its plural forms are wrong: .* Correct 'nplurals=2"):
        translate(".po", content)


def test_po_gets_fuzzy_forms_and_keeps_translations(translate):
    polib = pytest.importorskip("polib")
    content = (
        'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=3; plural=n<4?n-1:2;\\n"\n\n'
        '#, c-format\nmsgid "%d file\\n"\nmsgid_plural "%d files\\n"\n'
        'msgstr[0] ""\nmsgstr[1] ""\n\n'
        'msgid "done"\nmsgstr "fertig"\n\n#, fuzzy\nmsgid "guess"\nmsgstr "alt"\n'
    )
    texts, result = translate(".po", content, lambda new: [f"de {text}" for text in new])
    assert texts == ["%d file", "%d files"]
    file, done, guess = polib.pofile(result)
    assert file.msgstr_plural == {0: "de %d file\n", 1: "de %d files\n", 2: "de %d files\n"}
    assert file.flags == ["fuzzy", "c-format"]
    assert (done.msgstr, done.fuzzy, guess.msgstr, guess.fuzzy) == ("fertig", False, "alt", True)
    assert polib.pofile(result).metadata["Language"] == "de"
    again = Options("en", "de", retranslate=True)
    assert "done" in translate(".po", content, options=again)[0]


# --- xliff and tmx ---------------------------------------------------------------------------


def translations_in(content, name="target"):
    """The start tags and contents of elements, without their namespaces."""
    content = re.sub(r' xmlns(:\w+)?="[^"]*"', "", content)
    return re.findall(rf"<{name}( [^>]*)?>(.*?)</{name}>", content, re.DOTALL)


def test_xliff_1_keeps_codes_and_sets_states(translate):
    pytest.importorskip("lxml")
    texts, result = translate(
        ".xliff",
        """\
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en">
<trans-unit id="1"><source>Hello <g id="1">big <x id="2"/></g>
   world &lt;b&gt;</source></trans-unit>
<trans-unit id="2"><source>x</source><seg-source><mrk mtype="seg" mid="0">A \
<bpt id="1">{b}</bpt>b<ept id="1">{/b}</ept>.</mrk> <mrk mtype="seg" mid="1">C.</mrk></seg-source>
<target state="new">x</target><alt-trans><target>alternative</target></alt-trans></trans-unit>
<trans-unit id="3" approved="yes"><source>A</source><target/></trans-unit>
<group translate="no"><trans-unit id="4"><source>Acme</source></trans-unit></group>
<trans-unit id="5"><source>done</source><target>fertig</target></trans-unit>
</file></xliff>""",
    )
    assert texts == [
        "Hello <a>big <c/></a> world <b>",
        "A <a>b</a>.",
        "C.",
    ]
    state = ' state="needs-review-translation" state-qualifier="mt-suggestion"'
    assert translations_in(result) == [
        (state, 'HELLO <g id="1">BIG <x id="2"/></g> WORLD &lt;b&gt;'),
        (
            state,
            '<mrk mtype="seg" mid="0">A <bpt id="1">{b}</bpt>B<ept id="1">{/b}</ept>.</mrk> '
            '<mrk mtype="seg" mid="1">C.</mrk>',
        ),
        ("", "alternative"),
        ("", "fertig"),
    ]
    assert 'target-language="de"' in result


def test_xliff_2_keeps_codes_and_sets_states(translate):
    pytest.importorskip("lxml")
    source = 'A <pc id="1">b</pc><ph id="2" dataRef="d"/> <sc id="3"/>c<ec startRef="3"/>'
    texts, result = translate(
        ".xlf",
        f"""\
<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en"><file id="f">
<unit id="1"><segment subState="a:b"><source>{source}</source></segment>
<segment state="final"><source>x</source><target>y</target></segment>
<ignorable><source> </source></ignorable></unit></file></xliff>""",
    )
    assert texts == ["A <a>b</a><b/> <c>c</c>"]
    target = source.replace(">b<", ">B<").replace(">c<", ">C<")
    assert translations_in(result) == [("", target), ("", "y")]
    assert '<segment state="translated">' in result
    assert 'trgLang="de"' in result


def test_tmx_gets_a_variant(translate):
    pytest.importorskip("lxml")
    texts, result = translate(
        ".tmx",
        """\
<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4">
<header srclang="en"/><body>
<tu><tuv xml:lang="en-US"><seg>A <bpt i="1">{b}</bpt>b<ept i="1">{/b}</ept></seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Done</seg></tuv><tuv xml:lang="DE"><seg>Fertig</seg></tuv></tu>
</body></tmx>""",
    )
    assert texts == ["A <a>b</a>"]
    variants = [text for _, text in translations_in(result, "seg")]
    assert variants[1:] == ['A <bpt i="1">{b}</bpt>B<ept i="1">{/b}</ept>', "Done", "Fertig"]
    assert result.count("<tuv ") == 4
    assert result.count('xml:lang="de"') == 1
    assert "<!DOCTYPE tmx" in result


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (".xliff", '<x id="1" ctype="lb"/>'),
        (".xlf", '<ph id="1" type="fmt" subType="xlf:lb"/>'),
        (".tmx", '<ph x="1" type="lb">&lt;br/&gt;</ph>'),
    ],
)
def test_the_code_of_a_line_break_divides_words(translate, ending, code):
    pytest.importorskip("lxml")
    content = CASES[ending][0](["CODE"]).decode().replace("CODE", f"One{code}two")
    texts, result = translate(ending, content)
    assert texts == ["One <a/> two"]
    assert f"ONE{code}TWO</" in result


@pytest.mark.parametrize("ending", [".xliff", ".tmx"])
def test_entities_are_refused(translate, ending):
    pytest.importorskip("lxml")
    for content in ("<a>&b;</a>", '<a c="&b;"/>', "<a/>"):
        with pytest.raises(InputError, match="it uses entities"):
            translate(ending, f'<!DOCTYPE a [<!ENTITY b "c">]>{content}')
    # No other file is read.
    with pytest.raises(InputError, match="it uses entities"):
        translate(ending, '<!DOCTYPE a SYSTEM "http://localhost/a.dtd"><a>&b;</a>')


# --- docx ------------------------------------------------------------------------------------


def test_a_word_document_whose_parts_are_too_large_is_an_error(translate):
    docx = pytest.importorskip("docx")
    content = io.BytesIO()
    docx.Document().save(content)
    with zipfile.ZipFile(content) as archive:
        size = sum(info.file_size for info in archive.infolist())
    assert translate(".docx", content.getvalue(), options=Options(unpacked_bytes=size))[0] == []
    with pytest.raises(
        InputError, match=f"its parts have {size:,} bytes; at most {size - 1:,} are"
    ):
        translate(".docx", content.getvalue(), options=Options(unpacked_bytes=size - 1))


def add_field(paragraph, shape):
    for kind in shape:
        run = paragraph.add_run("3" if kind == "text" else "")
        name = "w:instrText" if kind == "code" else "w:fldChar"
        if kind != "text":
            element = run._r.makeelement(qualified(name), {})
            element.text = " PAGE " if kind == "code" else None
            if kind != "code":
                element.set(qualified("w:fldCharType"), kind)
            run._r.append(element)


def qualified(name):
    from docx.oxml.ns import qn

    return qn(name)


def test_word_keeps_formats_links_fields_and_tables(translate):
    docx = pytest.importorskip("docx")
    document = docx.Document()
    paragraph = document.add_paragraph("Hello ")
    paragraph.add_run("b").bold = True
    paragraph.add_run("ig").bold = True
    paragraph.add_run(" world, page ")
    add_field(paragraph, ["begin", "code", "separate", "text", "end"])
    paragraph.add_run(".")
    link = paragraph._p.makeelement(qualified("w:hyperlink"), {qualified("w:anchor"): "x"})
    run = document.add_paragraph("Left\tRight\nlast").add_run(" link")
    link.append(run._r)
    document.paragraphs[1]._p.append(link)
    document.add_paragraph("New").runs[0].add_break(docx.enum.text.WD_BREAK.PAGE)
    document.paragraphs[2].add_run("page")
    document.add_table(1, 1).cell(0, 0).text = "Cell"
    document.sections[0].header.paragraphs[0].text = "Header"
    content = io.BytesIO()
    document.save(content)
    texts, result = translate(".docx", content.getvalue())
    assert texts == [
        "Hello <a>big</a> world, page <b>3</b>.",
        "Left <a/> Right <b/> last<c> link</c>",
        *("New", "page", "Cell", "Header"),
    ]
    document = docx.Document(io.BytesIO(result))
    first, second = document.paragraphs[:2]
    assert first.text == "HELLO BIG WORLD, PAGE 3."
    assert [run.text for run in first.runs if run.bold] == ["BIG"]
    kinds = re.findall(r'fldCharType="(\w+)"', first._p.xml)
    assert kinds == ["begin", "separate", "end"]
    assert second.text == "LEFT\tRIGHT\nLAST LINK"
    assert document.paragraphs[2].text == "NEWPAGE"
    assert '<w:br w:type="page"/>' in document.paragraphs[2]._p.xml
    assert second.hyperlinks[0].text == " LINK"
    assert document.tables[0].cell(0, 0).text == "CELL"
    assert document.sections[0].header.paragraphs[0].text == "HEADER"
