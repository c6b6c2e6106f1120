"""Readers give the same pairs for each order of entries and each encoding that a format allows."""

import random
from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import read_test, stream

FIELDS = ("source", "target")
Pair = tuple[str, str]
Document = Callable[[Sequence[Pair], random.Random], str]
"""document(pairs, draw): a document of the format, whose entries have a random order."""


def shuffled(items: Sequence[str], draw: random.Random) -> str:
    return "".join(draw.sample(items, len(items)))


def tmx(pairs: Sequence[Pair], draw: random.Random) -> str:
    """Variants in any order, one in a third language; TMX 1.1 and 1.4 name it by other words."""
    units = []
    for source, target in pairs:
        name = draw.choice(["lang", "xml:lang"])
        texts = [("en-US", source), ("DE", target), ("fr", "autre")]
        variants = [f'<tuv {name}="{x}"><seg>{escape(text)}</seg></tuv>\n' for x, text in texts]
        units.append(f"<tu>{shuffled(variants, draw)}</tu>")
    return f'<tmx version="1.4"><header/><body>{"".join(units)}</body></tmx>'


def xliff(pairs: Sequence[Pair], draw: random.Random) -> str:
    """Units of XLIFF 1.2 with one or several parts, whose translations have any order."""
    units = []
    rest = list(pairs)
    while rest:
        taken = [rest.pop(0) for _ in range(draw.randint(1, len(rest)))]
        source, target = (
            [
                f'<mrk mtype="seg" mid="{n}">{escape(pair[side])}</mrk>'
                for n, pair in enumerate(taken)
            ]
            for side in (0, 1)
        )
        units.append(
            f"<trans-unit><source>whole</source><seg-source>{''.join(source)}</seg-source>"
            f"<target>{shuffled(target, draw)}</target></trans-unit>"
        )
    body = f'<file source-language="en" target-language="de"><body>{"".join(units)}</body></file>'
    return f'<xliff version="1.2">{body}</xliff>'


def xliff_2(pairs: Sequence[Pair], draw: random.Random) -> str:
    """Units of XLIFF 2.0 with several segments, and white space between them that is no pair."""
    segments = [
        f"<segment><source>{escape(source)}</source><target>{escape(target)}</target></segment>"
        + "<ignorable><source> </source></ignorable>" * draw.randint(0, 1)
        for source, target in pairs
    ]
    body = f'<file id="f"><unit id="u">{"".join(segments)}</unit></file>'
    return f'<xliff version="2.0" srcLang="en" trgLang="de">{body}</xliff>'


def wmt(pairs: Sequence[Pair], draw: random.Random) -> str:
    """Documents whose references, and the segments in them, have any order."""
    half = draw.randint(0, len(pairs))
    documents = []
    for part in filter(None, (pairs[:half], pairs[half:])):
        source, target = (
            [f'<seg id="{n}">{escape(pair[side])}</seg>' for n, pair in enumerate(part)]
            for side in (0, 1)
        )
        others = [
            f'<ref lang="de" translator="A"><p>{shuffled(target, draw)}</p></ref>',
            f'<ref lang="fr" translator="B"><p>{shuffled(target, draw)}</p></ref>',
            f'<hyp lang="de" system="x">{shuffled(source, draw)}</hyp>',
        ]
        documents.append(
            f'<doc><src lang="en">{"".join(source)}</src>{shuffled(others, draw)}</doc>'
        )
    return f"<dataset>{''.join(documents)}</dataset>"


def po(pairs: Sequence[Pair], draw: random.Random) -> str:
    """Messages with contexts and comments, long texts in several lines, and fuzzy ones between."""

    def quoted(text: str) -> str:
        text = text.replace("\\", r"\\").replace('"', r"\"")
        place = draw.randint(0, len(text))
        if text[place - 1 : place] == "\\":
            place = 0
        return f'""\n"{text[:place]}"\n"{text[place:]}"'

    messages = []
    for number, (source, target) in enumerate(pairs):
        notes = draw.sample(["# note\n", "#: a.c:7\n", "#. extracted\n"], 2)
        text = f"msgid {quoted(source)}\nmsgstr {quoted(target)}\n"
        messages.append(f'{"".join(notes)}msgctxt "{number}"\n{text}')
        if draw.random() < 0.3:
            messages.append(f'#, fuzzy\nmsgctxt "fuzzy {number}"\nmsgid "x"\nmsgstr "y"\n')
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset={}\\n"\n'
    return "\n".join([header, *messages])


DOCUMENTS = {"tmx": tmx, "xlf": xliff, "xliff": xliff_2, "xml": wmt}
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "iso-8859-1", "iso-8859-15"]
ENCODINGS += ["windows-1252", "koi8-r", "us-ascii"]
# Any characters that XML can hold, but no line breaks of other systems.
CHARACTERS = st.characters(
    codec="utf-8", exclude_characters="\r\ufffe\uffff", exclude_categories=("Cs", "Cc")
)
TEXTS = st.text(CHARACTERS | st.sampled_from("äß€„“&<>\"'\\"), max_size=9).map(lambda x: f"x{x}x")
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5)


def check(path, pairs: Sequence[Pair]) -> None:
    corpus = Corpus(path=str(path))
    columns = [list(column) for column in zip(*pairs, strict=True)]
    assert read_test(corpus, FIELDS, DataConfig()) == columns
    assert list(stream([corpus], FIELDS, DataConfig())) == pairs


@pytest.mark.parametrize("ending", DOCUMENTS)
@settings(max_examples=40)
@given(PAIRS, st.sampled_from(ENCODINGS), st.randoms(use_true_random=False))
def test_documents_of_xml(tmp_path_factory, ending, pairs, encoding, draw):
    """Characters that an encoding lacks are references. The first line names the encoding."""
    text = DOCUMENTS[ending](pairs, draw)
    name = {"utf-8-sig": "utf-8", "utf-16-le": "utf-16"}.get(encoding, encoding)
    text = f'<?xml version="1.0" encoding="{name}"?>\n{text}'
    mark = "\ufeff" * (encoding == "utf-16-le")
    path = tmp_path_factory.getbasetemp() / f"a.{ending}"
    path.write_bytes((mark + text).encode(encoding, "xmlcharrefreplace"))
    check(path, pairs)


@settings(max_examples=40)
@given(st.data(), st.sampled_from(["utf-8", "iso-8859-1", "windows-1252", "koi8-r"]))
def test_messages_of_po(tmp_path_factory, data, charset):
    pytest.importorskip("polib")
    characters = st.characters(codec=charset, exclude_categories=("Cs", "Cc"))
    texts = st.text(characters | st.sampled_from('\\"'), max_size=9).map(lambda x: f"x{x}x")
    pairs = data.draw(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
    text = po(pairs, data.draw(st.randoms(use_true_random=False))).replace("{}", charset, 1)
    path = tmp_path_factory.getbasetemp() / "a.po"
    path.write_bytes(text.encode(charset))
    check(path, pairs)
