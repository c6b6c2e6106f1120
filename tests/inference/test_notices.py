"""Notices of predictions: one set of names for Python, exports, commands and the demo."""

import itertools

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.commands.notice_report import REPORTED
from tf_transformer.inference.notices import Notice, in_order
from tf_transformer.inference.notices_graph import OF_PAIRS, PairNotices, may_show, names_of
from tf_transformer.inference.text_graph import STRINGS, Traced
from tf_transformer.inference.translator import Translator
from tf_transformer.text.faults import scripts_of
from tf_transformer.text.graph_tokenizer import as_strings

N = Notice
TEXTS = {
    "one": (),
    "": (),
    "\n \u2028": (),
    "one\n": (),
    "one\r\n\r\n": (),
    "one\ntwo": (N.SEVERAL_LINES,),
    "one\r\ntwo": (N.SEVERAL_LINES,),
    "one\rtwo": (N.SEVERAL_LINES,),
    "one\u2028two": (N.SEVERAL_LINES,),
    "One. Two.": (N.SEVERAL_SENTENCES,),
    "One.\nTwo. Six.": (N.SEVERAL_LINES, N.SEVERAL_SENTENCES),
    "%1$s of %2$s": (N.PLACEHOLDERS,),
    "%s.\nTwo! Six.": (N.SEVERAL_LINES, N.SEVERAL_SENTENCES, N.PLACEHOLDERS),
}


NOTICES = PairNotices()


def of_translation(source, translation, notices=NOTICES):
    names = names_of(notices(tf.constant([source]), tf.constant([translation])), OF_PAIRS)
    return in_order(names.numpy()[0].decode().split())


@pytest.mark.parametrize("text", TEXTS)
def test_a_translation_shows_what_may_be_lost(text):
    assert of_translation(text, "eins" if text.strip() else "") == TEXTS[text]


@pytest.mark.parametrize(
    ("text", "translation", "notices"),
    [
        ("one", "", (N.EMPTY,)),
        ("17", "", ()),
        ("%s.", "%s.", ()),
        ("one", "<b>eins</b>", (N.PLACEHOLDERS,)),
        ("one", "eins eins eins", (N.LOOP,)),
        ("one and two", "one and two", (N.UNTRANSLATED,)),
        ("one house", "ein дом Haus", (N.SCRIPT,)),
        ("in 1998", "1989", (N.NUMBERS,)),
        ("one and two " * 9, "eins", (N.LENGTH_RATIO,)),
    ],
)
def test_a_translation_is_compared_with_its_text(text, translation, notices):
    assert of_translation(text, translation) == notices


UNITS = [
    "one ",
    "eins ",
    "дом ",
    "家",
    "ha",
    "ßt",
    ":",
    "17 ",
    "1998, ",
    ". B",
    "\n",
    "!",
    "%s",
    "{a}",
]
ANY = st.lists(
    st.sampled_from(UNITS) | st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
    max_size=14,
)


MAY_SHOW = Traced(lambda *sides: may_show(sides[0], sides[1][:, None]), STRINGS, STRINGS)
KNOWN = Traced(NOTICES, STRINGS, STRINGS)


@settings(max_examples=60, deadline=None)
@given(ANY.map("".join), ANY.map("".join))
def test_the_test_for_all_notices_misses_none(text, translation):
    pairs = as_strings([text, "I go."]), as_strings([translation, "Ich gehe."])
    first, second = MAY_SHOW(*pairs).numpy().tolist()
    assert first or not tf.reduce_any(KNOWN(*pairs))
    assert not second


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        *(("one\ntwo", "eins"), ("one house", "ein дом Haus"), ("one", ""), ("1998", "1989")),
        *(("one", "eins eins eins"), ("one and two", "one and two"), ("one " * 9, "eins")),
        ("a house", "hahahahahahaha Haus"),
    ],
)
def test_the_test_for_all_notices_finds_each(text, translation):
    """One pair with a notice among others without."""
    texts, translations = (["Here it is.", x, "We go."] for x in (text, translation))
    translations[0], translations[2] = "Da ist es.", "Wir gehen."
    may_show = MAY_SHOW(as_strings(texts), as_strings(translations))
    assert may_show.numpy().tolist() == [False, True, False]


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.tuples(ANY.map("".join), ANY.map("".join)), max_size=5))
def test_the_notices_of_a_text_do_not_depend_on_the_others_beside_it(pairs):
    """The last pair needs all rules."""
    pairs = [*pairs, ("17 %s. Wo\nист 17", "hahahahahahahaha eins eins eins")]
    texts, translations = (as_strings([pair[side] for pair in pairs]) for side in (0, 1))
    together = NOTICES(texts, translations).numpy().tolist()
    for place, of_pair in enumerate(together):
        alone = NOTICES(texts[place : place + 1], translations[place : place + 1])
        assert alone.numpy().tolist() == [of_pair]


@pytest.mark.slow
def test_all_predictions_of_all_translators_have_the_notices_of_their_text(run, tmp_path):
    """A text is longer than the training text or not."""
    options = {"num_hypotheses": 3, "beam_size": 3, "max_source_length": 12, "max_length": 4}
    translator = Translator.from_run(run, trained_source_length=8, **options)
    translator.save(tmp_path / "saved")
    saved = Translator.load(tmp_path / "saved")
    texts = [*TEXTS, "Zymurgy, seven, ZYMURGY, Кот", "one two six one two", "one " * 20]
    rows = translator.n_best(texts)
    notices_of_pairs = PairNotices(scripts_of(translator.codec["target"].text_pieces))
    found = set()
    for text, row, best, of_export in zip(
        texts, rows, translator(texts), saved.n_best(texts), strict=True
    ):
        tokens = len(translator.tokenizer.encode(text))
        for each in row:
            of_pair = of_translation(text, each.text, notices_of_pairs)
            own = {N.CUT: tokens > 12, N.LONG_INPUT: tokens > 8, N.LENGTH_LIMIT: each.at_limit}
            own[N.UNSEEN] = bool(each.unseen_words)
            assert set(each.notices) == {*of_pair, *(x for x, is_true in own.items() if is_true)}
            assert list(each.notices) == sorted(each.notices, key=list(N).index)
            found |= set(each.notices)
        assert best.notices == row[0].notices
        assert [x.notices for x in of_export] == [x.notices for x in row]
        assert {x.unseen_words for x in (*of_export, *row)} == {row[0].unseen_words}
    unseen = dict(zip(texts, (row[0].unseen_words for row in rows), strict=True))
    assert unseen["Zymurgy, seven, ZYMURGY, Кот"] == ("zymurgy", "zymurgy", "кот")
    assert unseen["One. Two."] == ()
    assert found >= {N.CUT, N.LENGTH_LIMIT, N.LONG_INPUT, N.SEVERAL_LINES, N.PLACEHOLDERS}
    unknown = Translator.from_run(run, trained_source_length=0, **options)(texts)
    assert N.LONG_INPUT not in itertools.chain.from_iterable(each.notices for each in unknown)


def test_the_commands_report_each_notice():
    assert list(REPORTED) == list(Notice)
