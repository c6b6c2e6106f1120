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
WORDS = st.text("aäб7文", min_size=1) | st.sampled_from(["<ph>%s</ph>", "<ph>&amp;euro;</ph>"])


@settings(max_examples=80)
@given(st.lists(st.tuples(BETWEEN, WORDS), min_size=1, max_size=6))
def test_one_space_stands_between_words_wherever_something_parts_them(memory, parts):
    shown = {"<ph>%s</ph>": "%s", "<ph>&amp;euro;</ph>": "€"}
    segment, expected = "a", "a"
    for between, word in parts:
        segment += "".join(between) + word
        expected += " " * any(each in APART for each in between) + shown.get(word, word)
    assert read(memory(segment)) == expected


@pytest.mark.parametrize("inline", ["<it/>", "<ph>%d</ph>", "<hi>b</hi>", '<x id="1"/>'])
def test_the_identity_changes_only_where_inline_elements_are(memory, inline):
    """Token stores of earlier versions may hold other words for such a memory."""
    plain, coded = (
        stream([memory(text)], FIELDS, DataConfig()).identity for text in ("a", f"a{inline}b")
    )
    assert ["with codes" in identity for identity in (plain, coded)] == [False, True]


def test_a_segment_inside_a_segment_is_read_once(memory):
    assert read(memory("a<seg>b</seg>c<ph>d<seg>e</seg></ph>")) == "b"
