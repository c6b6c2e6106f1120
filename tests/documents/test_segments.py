"""Segments: codes become tags, and a translation gets each code back once, well-formed."""

import re

import hypothesis.strategies as st
from hypothesis import given

from tf_transformer.documents.segments import Code, Segment, without_layout

WORD = st.sampled_from(["one", " two ", "x < y", "<b>", "<a>", "</A>", "<a/>", "\n"])
ALONE = st.builds(Code, st.sampled_from(["alone", "break", "value"]), st.integers(), st.none())


@st.composite
def trees(draw, depth=3):
    """Items with nested pairs; sometimes half of a pair."""
    items = []
    for kind in draw(st.lists(st.sampled_from("waph"), max_size=4)):
        if kind == "w":
            items.append(draw(WORD))
        elif kind == "a":
            items.append(draw(ALONE))
        elif kind == "h":
            items.append(Code(draw(st.sampled_from(["open", "close"])), object(), object()))
        elif depth:
            key = object()
            items += [Code("open", object(), key), *draw(trees(depth - 1)), Code("close", 1, key)]
    return items


def codes(items):
    return [item for item in items if isinstance(item, Code)]


def text(items):
    return "".join(item for item in items if isinstance(item, str))


def require_nested(items):
    """Each pair of the segment is closed in order."""
    keys = [code.key for code in codes(items) if code.key]
    opened = []
    for code in codes(items):
        if keys.count(code.key) == 2:
            if code.kind == "open":
                opened.append(code.key)
            else:
                assert opened.pop() is code.key
    assert not opened


@given(trees())
def test_the_own_text_gives_the_own_items(items):
    segment = Segment(items)
    assert segment.restored(segment.text) == (segment.items, True)
    assert text(segment.items) == text(items)
    assert codes(segment.items) == codes(items)


@given(trees(), st.randoms(use_true_random=False))
def test_any_translation_gets_each_code_once_and_nested(items, random):
    segment = Segment(items)
    pieces = re.findall(r"<[^<>]*>|[^<]+|<", segment.text)
    random.shuffle(pieces)
    kept = [piece for piece in pieces if random.random() < 0.7]
    restored, _ = segment.restored("".join(kept + pieces[:2]))
    key = lambda code: (id(code.content), code.kind)  # noqa: E731
    assert sorted(map(key, codes(restored))) == sorted(map(key, codes(items)))
    require_nested(restored)


def test_lost_tags_stand_at_the_end_and_are_told():
    bold = [Code("open", "<b>", 1), "big", Code("close", "</b>", 1)]
    segment = Segment(["a ", *bold, " world ", Code("value", "%s"), "!"])
    assert segment.text == "a <a>big</a> world <b/>!"
    items, is_whole = segment.restored("eine große Welt!")
    assert [x if isinstance(x, str) else x.content for x in items] == [
        *("eine große Welt!", "<b>", "</b>", "%s")
    ]
    assert not is_whole


def test_layout_and_pairs_around_the_words_are_outside():
    line, image = Code("alone", "<br>"), Code("alone", "<img>")
    pair = Code("open", "<p>", 1), Code("close", "</p>", 1)
    before, inside, after = without_layout([line, pair[0], image, "words", pair[1], " ", line])
    assert inside == ["words"]
    assert [*before, *after] == [line, pair[0], image, pair[1], " ", line]
    value = Code("value", "%s")
    assert without_layout([pair[0], value, " words", pair[1]])[1] == [value, " words"]


def test_spaces_stand_around_the_tag_of_a_break():
    segment = Segment(["one", Code("break", 1), "two ", Code("break", 2), " three"])
    assert segment.text == "one <a/> two <b/> three"
    for translation in ("eins <a/> zwei <b/> drei", "eins<a/>zwei <b/> drei"):
        items, _ = segment.restored(translation)
        contents = [item if isinstance(item, str) else item.content for item in items]
        assert contents == ["eins", 1, "zwei ", 2, " drei"]


def test_a_text_with_such_tags_gets_other_tags():
    segment = Segment(["</A><b/> < c ", Code("value", 1), " d"])
    assert segment.text == "</A><b/> < c <c/> d"
    assert segment.restored(segment.text) == (segment.items, True)


def test_tags_in_capitals_and_crossed_pairs_are_read():
    items = [Code("open", 1, 1), "a ", Code("open", 2, 2), "b", Code("close", 3, 2), " c"]
    segment = Segment([*items, Code("close", 4, 1), " d"])
    assert segment.text == "<a>a <b>b</b> c</a> d"
    restored, is_whole = segment.restored("<A>A <B>B</A> C</B> D")
    contents = [item if isinstance(item, str) else item.content for item in restored]
    assert (contents, is_whole) == ([1, "A ", 2, "B", 3, 4, " C D"], True)
