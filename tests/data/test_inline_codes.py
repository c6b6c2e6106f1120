"""Inline codes of TMX: what stands in the text in place of a code."""

from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import read_test, stream

FIELDS = ("source", "target")


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """Writes a memory of one unit whose source is the given XML; gives its corpus."""
    path = tmp_path_factory.mktemp("tmx") / "a.tmx"

    def write(segment: str) -> Corpus:
        target = '<tuv xml:lang="de"><seg>y</seg></tuv>'
        unit = f'<tu><tuv xml:lang="en"><seg>{segment}</seg></tuv>{target}</tu>'
        path.write_text(f'<tmx version="1.4"><body>{unit}</body></tmx>', "utf-8")
        return Corpus(path=str(path))

    return write


def read(corpus: Corpus) -> str:
    return read_test(corpus, FIELDS, DataConfig())[0][0]


def code(element: str, content: str) -> str:
    return f"<{element}>{escape(content)}</{element}>"


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        # a code that stands alone
        ('First line<ph type="lb"/>second line', "First line second line"),
        ('Let us go!<ph x="1"/>Now.', "Let us go! Now."),
        ('A note<ph type="fnote"/>. Page <ph/>, (<ph/>x) a<ph/> b<ph/>', "A note. Page , (x) a b"),
        ("A<ph/>.NET B<ph/>,5 C<ph/>…", "A .NET B ,5 C…"),
        # tags of documents: HTML, OpenDocument, Office Open XML, XLIFF
        ("A" + code("ph", "<td>") + "B" + code("ph", "</td>") + "C", "A B C"),
        ("one" + code("it", "<br />") + "two" + code("it", "<BR0>") + "three", "one two three"),
        ("H" + code("bpt", "<sub>") + "2" + code("ept", "</sub>") + "O", "H2O"),
        ("un" + code("ph", "<b>") + "do" + code("ph", "</b>") + "ne", "undone"),
        (
            "<bpt>&lt;h1 class='a'></bpt>A<ept>&lt;/h1></ept><bpt>&lt;p></bpt>B<ept>&lt;/p></ept>",
            "A B",
        ),
        (
            "Two" + code("ph", "<text:s/>") + "words" + code("ph", "<w:tab/>") + "now",
            "Two words now",
        ),
        ("a" + code("ph", "</w:t></w:r><w:r><w:t>") + "b" + code("ph", "<!-- c -->") + "c", "abc"),
        ('See <x id="1"/>now <g id="2">b</g>old<br/>ly <hi>her</hi>e', "See now bold ly here"),
        # white space and escapes
        ("10" + code("ph", "&nbsp;") + "km" + code("ph", "&#160;") + "!", "10 km !"),
        (
            "a<ut>\n</ut>b" + code("ut", "\\n") + "c" + code("ut", "\\tab ") + "d<ph> </ph>.",
            "a b c d .",
        ),
        ("a" + code("ut", "{\\b ") + "b" + code("ut", "}") + "c" + code("it", "{1}") + "d", "abcd"),
        # values of programs, and characters
        ("You have <ph>%d</ph> messages.", "You have %d messages."),
        (
            "<ph>{0}</ph>x" + code("ph", "&file;") + " 3" + code("ph", "&times;") + "4",
            "{0}x&file; 3×4",
        ),
        ("a" + code("ph", '\\"') + "b" + code("ph", "\\'a0") + "c", 'a\\"b c'),
        # another text inside of a code
        ("a<ph>&lt;img alt='<sub>b <bpt>x</bpt></sub>'/&gt;</ph>c", "a c"),
        # spaces
        ("a <it/> b <bpt/> c\n<ph/>\n d", "a b c d"),
        ("<ph/> a <ph>&lt;br/></ph>", "a"),
        ("a<!-- <ph/> -->b <![CDATA[<c>]]>", "ab <c>"),
        ("  two  spaces  ", "  two  spaces  "),
    ],
)
def test_codes(memory, segment, expected):
    """By TMX 1.4b, section "Content Markup", and by what each code does in its document."""
    assert read(memory(segment)) == expected


def test_a_memory_of_omegat(memory):
    """Segments as OmegaT 3.6.0 writes them to its file of level 2.

    Its tags have the first letter of the document's element: t0 joins two runs of text in a .docx
    file, s0 is the space <text:s/> in an .odt file, and sub and sup in HTML.
    """
    segments = {
        'Big<ph x="0">&lt;t0/&gt;</ph>ger': "Bigger",
        'Two<ph x="0">&lt;s0/&gt;</ph>words': "Two words",
        'First line<it pos="begin" x="0">&lt;br0&gt;</it>': "First line",
        'tab and a<ph x="0">&lt;br0/&gt;</ph>': "tab and a",
        'See note<ph x="0">&lt;t0/&gt;</ph>.': "See note.",
        'H<bpt i="0" x="0">&lt;s0&gt;</bpt>2<ept i="0">&lt;/s0&gt;</ept>O': "H2O",
        '<bpt i="1" x="1">&lt;f1&gt;</bpt>bold<ept i="1">&lt;/f1&gt;</ept>ly': "boldly",
    }
    assert {segment: read(memory(segment)) for segment in segments} == segments


JOINED = ["<bpt>&lt;b></bpt>", "<ept>&lt;/b></ept>", "<hi></hi>", "<it/>", "<ut>{\\i</ut>"]
APART = [
    *(
        " <it/>",
        "<ut>}</ut>\n",
        "<ph/>",
        "<ph>&lt;br/></ph>",
        "<it>&lt;p></it>",
        "<ut>\\line </ut>",
    ),
    *("<bpt>&lt;li></bpt>", "<ph>&amp;nbsp;</ph>", "<ph>\\'a0</ph>", '<x id="1"/>'),
]
BETWEEN = st.lists(st.sampled_from(JOINED + APART), max_size=5)
WORDS = st.text("aäб7한", min_size=1) | st.sampled_from(["<ph>%s</ph>", "<ph>&amp;eacute;</ph>"])
WITHOUT_SPACES = st.text("文々カｶーのไำກ។မ。、「！", min_size=1)


@settings(max_examples=80)
@given(st.lists(st.tuples(BETWEEN, WORDS), min_size=1, max_size=6))
def test_one_space_stands_between_words_wherever_something_parts_them(memory, parts):
    shown = {"<ph>%s</ph>": "%s", "<ph>&amp;eacute;</ph>": "é"}
    segment, expected = "a", "a"
    for between, word in parts:
        segment += "".join(between) + word
        expected += " " * any(each in APART for each in between) + shown.get(word, word)
    assert read(memory(segment)) == expected


CODES = st.sampled_from([*JOINED, "<ph/>", "<ph>&lt;br/></ph>", "<it>&lt;p></it>", '<x id="1"/>'])


@settings(max_examples=80)
@given(st.lists(st.tuples(st.lists(CODES, max_size=3), WITHOUT_SPACES | st.just("a")), min_size=1))
def test_codes_put_no_space_into_scripts_without_spaces(memory, parts):
    """Nor between them and a word of another script."""
    segment, previous, expected = "文", "文", "文"
    for codes, word in parts:
        segment += "".join(codes) + word
        is_parted = any(each in APART for each in codes)
        expected += " " * (is_parted and previous == word == "a") + word
        previous = word
    assert read(memory(segment)) == expected


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        ("点击<ph x='1'/>这里<ph x='2'/>。", "点击这里。"),
        ("ไทย<ph/>ไทย 中文<ph/> 中文", "ไทยไทย 中文 中文"),
        ("50<ph/>% of 5<ph/>€ and $<ph/>7", "50% of 5€ and $7"),
        ("a %<ph/>b 5 €<ph/>c d<ph/>$e", "a % b 5 € c d $e"),
        ("„<ph/>Haus<ph/>“ “<ph/>x<ph/>” «<ph/>y<ph/>»", "„Haus“ “x” «y»"),
        ('"<ph/>x<ph/>" „Ja“<ph/>Nein a<ph/>„b“', '"x" „Ja“ Nein a „b“'),
        ("and<ph/>/or and/<ph/>or l'<ph/>eau it<ph/>’s", "and/or and/or l'eau it’s"),
        ("well<ph/>-known well-<ph/>known", "well-known well-known"),
        ("one<ph/>- two -<ph/>three a<ph/>'bin c'", "one - two - three a 'bin c'"),
        ("word.<ph/>Next? one;<ph/>two x)<ph/>y", "word. Next? one; two x) y"),
    ],
)
def test_codes_beside_punctuation(memory, segment, expected):
    assert read(memory(segment)) == expected


@pytest.mark.parametrize(
    "tag",
    [
        *("option", "section", "para", "article", "blockquote", "pre", "title", "label"),
        *("entry", "row"),
    ],
)
@pytest.mark.parametrize("element", ["ph", "it"])
def test_tags_of_blocks_stand_between_words(memory, element, tag):
    begin, end = (code(element, f"<{slash}{tag}>") for slash in ("", "/"))
    assert read(memory(f"one{end}{begin}two{end}three")) == "one two three"


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        (code("ut", "{\\tab }"), "a b"),
        (code("ut", "{\\line}"), "a b"),
        (code("ut", "\\par\\pard "), "a b"),
        (code("ut", "{\\b "), "ab"),
        (code("ph", "<w:softHyphen/>"), "ab"),
        (code("ph", "<w:noBreakHyphen/>"), "a-b"),
        ('<it pos="begin" type="lb"/>', "a b"),
        ('<bpt i="1" type="x-LineBreak">1</bpt>', "a b"),
        ('<it pos="begin" type="bold"/>', "ab"),
        ('<it pos="begin" type="bold">\\tab </it>', "a b"),
    ],
)
def test_codes_of_word_processors(memory, segment, expected):
    assert read(memory(f"a{segment}b")) == expected


@pytest.mark.parametrize("element", ["ph", "it", "ut", "bpt", "ept"])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        *(("%s", "%s"), ("%1$d", "%1$d"), ("${n}", "${n}"), ("{{n}}", "{{n}}")),
        *(("{1}%s", "{1}%s"), ("<%= n %>", "<%= n %>"), ("<?= $n ?>", "<?= $n ?>")),
        *(('<g id="x">%s</g>', "%s"), ("\\t%s", " %s"), ("<br/>%s", " %s")),
        *(('<a href="%s">', ""), ("{\\b ", ""), ("<?mso %s?>", "")),
    ],
)
def test_values_of_programs_are_text_in_every_element(memory, element, content, expected):
    expected = " " if element == "ph" and content == "{\\b " else expected  # as it stands alone
    assert read(memory(f"a{code(element, content)}b")) == f"a{expected}b"


@pytest.mark.parametrize(
    ("element", "expected"),
    [("ph", "{name}"), ("ut", "{name}"), ("it", ""), ("bpt", ""), ("ept", "")],
)
def test_a_name_in_braces_is_markup_in_half_of_a_pair(memory, element, expected):
    assert read(memory(f"a{code(element, '{name}')}b")) == f"a{expected}b"


@pytest.mark.parametrize("inline", ["<it/>", "<ph>%d</ph>", "<hi>b</hi>", '<x id="1"/>'])
def test_the_identity_changes_only_where_inline_elements_are(memory, inline):
    """Token stores of earlier versions may hold other words for such a memory."""
    plain, coded = (
        stream([memory(text)], FIELDS, DataConfig()).identity for text in ("a", f"a{inline}b")
    )
    assert ["with codes" in identity for identity in (plain, coded)] == [False, True]


def test_a_segment_inside_a_segment_is_read_once(memory):
    assert read(memory("a<seg>b</seg>c<ph>d<seg>e</seg></ph>")) == "b"
