"""The repair of spans that a model lost, changed or repeated."""

import itertools
import random
import re
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import tensorflow as tf

from tests.text.test_kept_spans import SPANS, WORDS
from tf_transformer.errors import InputError
from tf_transformer.inference.kept_graph import KeptSpans, attention
from tf_transformer.inference.kept_places import Drawn
from tf_transformer.inference.span_symbols import SYMBOLS, SpanSymbols
from tf_transformer.inference.text_predictor import TextPredictor
from tf_transformer.inference.translator import Translation, Translator
from tf_transformer.models.ensemble import Ensemble
from tf_transformer.text.elements import is_well_formed
from tf_transformer.text.kept_spans import TAG, spans, without_spans
from tf_transformer.text.sequences import shift_right

KEPT = KeptSpans(["common"])
ELEMENTS = [("<b>", "</b>"), ('<x id="1">', "</x>"), ("<i >", "</i>")]


STRING, NUMBER = tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int32)
OF_TOKENS = tf.TensorSpec((None,), tf.int32), tf.TensorSpec((None, None), tf.float32)


@tf.function(input_signature=[STRING, STRING, *OF_TOKENS, NUMBER], autograph=False)
def repaired(source, output, ends, weights, fixed):
    def count_words(starts):
        return tf.cast(tf.strings.split(KEPT.untagged(starts)).row_lengths(), tf.int32)

    return KEPT.repair(source, Drawn(output, ends, weights, fixed), count_words)


@pytest.fixture(scope="module")
def keeping(run):
    """A translator that keeps spans; its graphs are traced once."""
    return Translator.from_run(run, keep="common", max_source_length=32)


def repair(source, output, weights=None, rng=None, fixed=0):
    """Repairs an output of words, with a diagonal attention or other weights.

    The model reads the words of the source without the tags of elements.
    """
    words = output.split(" ")
    ends = [0, *np.cumsum([len(word.encode()) + 1 for word in words]) - 1]
    shape = len(words), max(1, len(KEPT.untagged(tf.constant([source])).numpy()[0].split()))
    if weights is None:
        weights = np.eye(*shape) if rng is None else rng.dirichlet(np.ones(shape[1]), shape[0])
    args = source, output, np.array(ends, np.int32), np.float32(weights), np.int32(fixed)
    return repaired(*map(tf.constant, args)).numpy().decode()


@pytest.mark.parametrize(
    ("source", "output", "right"),
    [
        (
            "Go to https://a.org now .",
            "Gehe zu https://b.org jetzt .",
            "Gehe zu https://a.org jetzt .",
        ),
        ("It weighs 5 kg in all .", "Es wiegt 5 Kilo in allem .", "Es wiegt 5 kg in allem ."),
        ("Hi {name} , hello", "Hallo Name , hallo", "Hallo {name} , hallo"),
        ("a {x} b {x} c", "A {x} B {y} C", "A {x} B {x} C"),
        ("a {x} b", "A {x} {x} B", "A {x} B"),
        ("Nice 🙂", "Schön", "Schön 🙂"),
        ("{a} b", "b {a}", "b {a}"),
        ("A {x} .", "Ein {x} {x} .", "Ein {x} ."),
        ("a {x}, b", "A {x}, B {x}, C", "A {x}, B, C"),
    ],
)
def test_a_span_stands_where_the_model_put_its_copy(source, output, right):
    assert repair(source, output) == right


@pytest.mark.parametrize("number", ["5", "1.5"])
def test_a_number_without_attention_belongs_to_the_unit_behind_it(number):
    source, output = f"It weighs {number} kg in all .", f"Es wiegt {number} Kilo in allem ."
    weights = np.eye(7)[[0, 1, 1, 3, 4, 5, 6]]  # the number from "weighs"
    assert repair(source, output, weights) == f"Es wiegt {number} kg in allem ."


def test_lost_tags_stand_beside_the_words_that_stood_beside_them():
    assert repair("a <b> b </b> c", "A B C") == "A <b> B </b> C"
    assert repair("a <b> b </b> c", "B A C", np.eye(3)[[1, 0, 2]]) == "<b> B </b> A C"


@pytest.mark.parametrize(
    ("source", "attended", "right"),
    [
        ("a <b>b</b> c", [0, 1, 2], "A <b>B</b> C"),
        ("<b>a b</b> c", [0, 1, 2], "<b>A B</b> C"),
        ("<b>a b</b> c", [1, 0, 2], "<b>A B</b> C"),
        ("a <i><b>b</b></i> c", [0, 1, 2], "A <i><b>B</b></i> C"),
        ("a <b></b> b c", [0, 1, 2], "A <b></b> B C"),
        ("a <b>b</b> c", [2, 1, 0], "A <b>B</b> C"),
        ("a <b>b d</b> c", [0, 1, 3], "A <b>B</b> C"),
        ("<i>a</i> <b>b</b> c", [1, 0, 2], "<b>A</b> <i>B</i> C"),
    ],
)
def test_a_lost_element_encloses_what_became_of_its_content(source, attended, right):
    assert repair(source, "A B C", np.eye(4)[attended]) == right


@pytest.mark.parametrize(
    ("ranges", "right"),
    [
        (((0, 2), (1, 3)), "<i>A</i> <b>B C</b>"),
        (((1, 3), (0, 2)), "<b>A</b> <i>B C</i>"),
        (((0, 3), (0, 3)), "<i><b>A B C</b></i>"),
        (((0, 2), (0, 3)), "<b><i>A B</i> C</b>"),
        (((0, 3), (1, 2)), "<i>A <b>B</b> C</i>"),
    ],
)
def test_elements_that_share_words_stand_in_each_other_or_apart(ranges, right):
    """Words in a range attend to the content of an element, other words to the rest."""
    weights = np.zeros((3, 3))
    for content, (first, stop) in enumerate(ranges):
        weights[first:stop, content] = 0.6
    weights[:, 2] = 0.01
    assert repair("<i>a</i> <b>b</b> c", "A B C", weights) == right


def test_overlapping_elements_stay_well_formed_and_keep_words_for_any_attention():
    rng, draws = random.Random(0), np.random.default_rng(0)
    for _ in range(200):
        parts = [part for _ in range(rng.randrange(1, 4)) for part in ["x", *tree(rng, 1)]]
        parts = [part for part in parts if part != "<br/>"]  # words in its place would go
        source, words = " ".join(parts), rng.choices("ABCDEFGH", k=rng.randrange(1, 6))
        result = repair(source, " ".join(words), rng=draws)
        assert tags_parse(result), (source, result)
        assert sorted(spans(result)) == sorted(spans(source)), (source, result)
        assert without_spans(result).split() == words


def test_an_element_with_words_encloses_words_for_any_attention():
    rng, draws = random.Random(0), np.random.default_rng(0)
    for _ in range(200):
        words, marks = rng.choices("abcdefgh", k=6), rng.choices("ABCDEFGH.,", k=5)
        first, stop = sorted(rng.sample(range(7), 2))
        source = " ".join([*words[:first], "<b>", *words[first:stop], "</b>", *words[stop:]])
        result = repair(source, " ".join([*marks, "Z"]), rng=draws)
        before, content, after = re.split("</?b>", result)
        assert re.search("[A-Z]", content), (source, result)
        assert (before + content + after).split() == [*marks, "Z"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a <b>b c</b>, <i><x id='1'>d</x></i>", "a b c, d"),
        ("<li>a</li><li>b</li>", "a b"),
        ("a<br/>b {x, select, y {<b>z</b>}}", "a<br/>b {x, select, y {<b>z</b>}}"),
        ("un<b>believ</b>able <3", "unbelievable <3"),
        ("</b> a <b>", " a "),
    ],
)
def test_the_model_does_not_read_tags_of_elements(text, read):
    texts = KEPT.untagged(tf.constant(["", text, "a < b"])).numpy()
    assert [x.decode() for x in texts] == ["", read, "a < b"]


def test_a_text_with_tags_is_translated_as_without_them(keeping):
    plain, *marked = keeping(["twenty one", "twenty <b>one</b>", "<p>twenty <i>one</i></p>"])
    for prediction, count in zip(marked, (2, 4), strict=True):
        assert len(spans(prediction.text)) == count
        assert "".join(without_spans(prediction.text).split()) == "".join(plain.text.split())
        assert prediction.score == plain.score


def test_a_prefix_stays_and_all_spans_of_the_text_follow():
    rng, draws = random.Random(0), np.random.default_rng(0)
    known = [span for kind in SPANS.values() for span in kind]
    for _ in range(400):
        parts = [rng.choice(known if rng.random() < 0.4 else WORDS) for _ in range(8)]
        source, output = " ".join(parts), " ".join(damaged(parts, rng))
        start = output[: rng.randrange(len(output) + 1)] if rng.random() < 0.5 else ""
        fixed = len(start.encode())
        result = repair(source, output, rng=draws, fixed=fixed)
        assert result.startswith(start), (source, output, result)
        assert Counter(spans(result)) >= Counter(spans(source)), (source, output, result)


def test_a_word_goes_or_stays_whole():
    """One of 3 letters, or 2 of 3, are a copy of the span by their attention."""
    for width, right in ((1, "In {x} ist es"), (2, "In {x} es")):
        ends = np.array([0, 2, 3 + width, 6, 9], np.int32)
        weights = np.eye(4, dtype=np.float32)[[0, 1, 2, 3]]
        args = "In {x} is it", "In ist es", ends, weights, np.int32(0)
        result = repaired(*map(tf.constant, args))
        assert result.numpy().decode() == right


def damaged(parts, rng):
    """Loses, repeats, changes and moves some parts of a text."""
    result = []
    for part in parts:
        kind = rng.randrange(6)
        result += {0: [], 1: [part, part], 2: [part[:-1] + "e"], 3: [part[1:]]}.get(kind, [part])
    if rng.random() < 0.3:
        rng.shuffle(result)
    return result


def test_each_span_stands_in_the_output_once_for_any_output_and_attention():
    rng, draws = random.Random(0), np.random.default_rng(0)
    known = [span for kind in SPANS.values() for span in kind]
    for _ in range(400):
        parts = [
            rng.choice(known if rng.random() < 0.4 else WORDS) for _ in range(rng.randrange(9))
        ]
        gap = rng.choice(["", " "])
        source, output = gap.join(parts), gap.join(damaged(parts, rng))
        result = repair(source, output, rng=draws)
        wanted, counts = Counter(spans(source)), Counter(spans(result))
        assert {span: counts[span] for span in wanted} == wanted, (source, output, result)


def tree(rng, depth=3):
    """The parts of a random well-formed text."""
    parts = []
    for _ in range(rng.randrange(1, 4)):
        opening, closing = rng.choice(ELEMENTS)
        inner = tree(rng, depth - 1) if depth else []
        parts += rng.choice([[rng.choice("abc")], [opening, *inner, closing], ["<br/>"]])
    return parts


def tags_parse(text):
    try:
        ElementTree.fromstring(f"<r>{''.join(span for span in spans(text) if span[0] == '<')}</r>")
    except ElementTree.ParseError:
        return False
    return True


def spaces_between_tags(text):
    """The white space between tags that have nothing else between them, by these two tags."""
    counts, found = Counter(), {}
    numbered = [(counts.update([tag[0]]), tag, counts[tag[0]]) for tag in re.finditer(TAG, text)]
    for (_, one, number), (_, other, next_number) in itertools.pairwise(numbered):
        if not (between := text[one.end() : other.start()]).strip():
            found[one[0], number, other[0], next_number] = between
    return found


def test_tags_that_touch_each_other_have_the_spaces_of_the_source():
    rng, draws = random.Random(0), np.random.default_rng(0)
    compared = 0
    for _ in range(300):
        source = "".join(part + rng.choice(["", "", " ", "\n "]) for part in tree(rng, 2))
        words = rng.choices(["A", "Bc", "D.", "E!"], k=rng.randrange(1, 6))
        result = repair(source, " ".join(words), rng=draws)
        wanted, found = map(spaces_between_tags, (source, result))
        both = wanted.keys() & found.keys()
        assert {key: found[key] for key in both} == {key: wanted[key] for key in both}, result
        compared += len(both)
    assert compared > 300


KEPT_TEXTS = [
    *("Please visit https://example.org/a?b=c for more.", "Write to tom@example.org today."),
    *("Hello {name}, you have %(count)d new messages.", "The <b>red</b> house is <i>old</i>."),
    *("I love you 🙂 and you 👍🏽.", "It weighs 1,000.5 kg.", "CLICK {button} NOW!", "{a}"),
    *("{0, plural, one {# file} other {# files}} deleted.", "<b>", "🙂", "  %s  "),
    "<i>one.</i><b>two.</b>  <b><i>six</i></b>",
]
PLAIN_TEXTS = ["twenty-one", "", "a big house", "IT IS RAINING"]


@pytest.mark.parametrize(
    ("lower_capitals", "keep_as"),
    [
        *(pytest.param(lower, "text", marks=pytest.mark.slow) for lower in (False, True)),
        (True, "emoji"),
    ],
)
def test_translations_keep_spans_in_python_and_in_the_graph(run, lower_capitals, keep_as):
    """By a model that has never seen most of their characters; plain texts do not change."""
    plain = Translator.from_run(run, beam_size=3, num_hypotheses=3)
    model, codec = plain.model, plain.codec
    config = replace(plain.config, keep=("common",), keep_as=keep_as)
    keeping = Translator(model, codec, config, lower_capitals=lower_capitals)
    unchanged = Translator(model, codec, plain.config, lower_capitals=lower_capitals)
    assert keeping.n_best(PLAIN_TEXTS) == unchanged.n_best(PLAIN_TEXTS)
    n_best = keeping.n_best(KEPT_TEXTS)
    for text, row in zip(KEPT_TEXTS, n_best, strict=True):
        for prediction in row:
            wanted, counts = Counter(spans(text)), Counter(spans(prediction.text))
            assert {span: counts[span] for span in wanted} == wanted
    outputs = keeping._graph.n_best(tf.constant(KEPT_TEXTS))["translations"].numpy()
    in_graph = [[text.decode() for text in row if text] for row in outputs]
    assert in_graph == [[prediction.text for prediction in row] for row in n_best]


def test_spans_follow_the_attention_of_the_head_that_aligns(run):
    ids = tf.constant([[5, 6, 7, 2]]), tf.constant([[8, 9, 2]])
    translator = Translator.from_run(run)
    weights = np.asarray(translator.model.run((ids[0], shift_right(ids[1]))).cross_attention[0])
    for head, of_head in ((-1, weights.mean(1)), (1, weights[:, 1])):
        config = replace(translator.config, alignment_layer=0, alignment_head=head)
        expected = of_head[..., :3] / of_head[..., :3].sum(-1, keepdims=True)  # without the end
        found = attention(translator.model, *ids, config)
        np.testing.assert_allclose(found[..., :3], expected, atol=1e-5)


@pytest.mark.parametrize("keep", [["common"], ["tags", "[A-Z]{2}-[0-9]+"]])
def test_symbols_become_the_spans_that_they_hide(keep):
    rng, symbols = random.Random(0), SpanSymbols(keep)
    known = [*(span for kind in SPANS.values() for span in kind), "AB-12", "😀", "😃🏽", *SYMBOLS]
    texts = [
        " ".join(rng.choice(known if rng.random() < 0.4 else WORDS) for _ in range(12))
        for _ in range(200)
    ]
    text = tf.constant(texts)
    hidden = symbols.hide(text)
    if "common" in keep:
        assert {span for short in hidden.numpy() for span in spans(short.decode())} <= {*SYMBOLS}
    assert tf.reduce_all(symbols.show(hidden[:, None], text)[:, 0] == text)
    assert tf.reduce_any(hidden != text)


@pytest.mark.parametrize(
    ("text", "hidden", "output", "shown"),
    [
        ("See {a}, a 🙂.", "See 😀, a 😁.", "Sieh 😀, ein 😁.", "Sieh {a}, ein 🙂."),
        ("a<br/>b <br/> c", "a😀 b 😁 c", "A 😀 B 😁 C", "A <br/>B <br/> C"),
        ("{a} and {b}", "😀 and 😁", "😁 und 😅", "{b} und "),
        ("nice", "nice", "schön 😀", "schön 😀"),
    ],
)
def test_spaces_divide_symbols_of_tags_from_words(text, hidden, output, shown):
    symbols = SpanSymbols(["common"])
    assert symbols.hide(tf.constant([text])).numpy()[0].decode() == hidden
    result = symbols.show(tf.constant([[output]]), tf.constant([text]))
    assert result.numpy()[0, 0].decode() == shown


def test_a_pattern_that_re2_cannot_read_is_an_error():
    with pytest.raises(InputError, match="RE2"):
        KeptSpans(["a(?=b)"])


def test_a_text_of_spans_alone_is_its_own_translation(keeping):
    assert keeping(["{a}  <b>🙂</b>", "7 {a}"]) == [
        *(Translation("{a}  <b>🙂</b>", 0.0), Translation("7 {a}", 0.0))
    ]


@pytest.mark.slow
def test_a_prefix_stays_in_python_and_in_the_graph(run):
    translator = Translator.from_run(run, keep=("common",), num_hypotheses=2)
    texts, prefixes = ["twenty {a} <b>one</b>"] * 4, ["", "{b} ein", "<b>ein", "zw "]
    n_best = translator.n_best(texts, prefixes=prefixes)
    for prefix, row in zip(prefixes, n_best, strict=True):
        for prediction in row:
            assert prediction.text.startswith(prefix.rstrip())
            counts = Counter(spans(prediction.text))
            assert counts["{a}"] == counts["<b>"] == counts["</b>"] == 1
    columns = {"prefix": prefixes, "terms": [""] * len(texts)}
    given = [tf.constant(columns[kind.name]) for kind in translator.graph().inputs]
    outputs = translator.graph().n_best(tf.constant(texts), *given)["translations"].numpy()
    in_graph = [[text.decode() for text in row if text] for row in outputs]
    assert in_graph == [[prediction.text for prediction in row] for row in n_best]


def test_spans_behind_the_end_of_a_cut_text_stand_in_its_translation(keeping):
    text = "<b>" + "twenty-one " * 20 + "</b> {a}"
    (translation,) = keeping([text])
    assert translation.cut
    assert spans(translation.text) == spans(text)


def test_small_letters_of_a_span_do_not_hide_that_a_text_is_in_capitals(run):
    plain = Translator.from_run(run)
    translator = Translator(
        *(plain.model, plain.codec, replace(plain.config, keep=("common",))), lower_capitals=True
    )
    upper, usual = translator(["TWENTY {a} ONE", "Twenty {a} one"])
    assert upper.text == usual.text.upper().replace("{A}", "{a}")


@pytest.mark.parametrize("span", ["{}", "<b>", "🙂", "5 km "])
def test_any_number_of_spans_stand_in_the_translation(keeping, span):
    text = "twenty " + span * 20_000
    (translation,) = keeping([text])
    assert spans(translation.text) == spans(text)


@tf.function(reduce_retracing=True, autograph=False)
def in_joined(text, output):
    return KEPT.in_joined(text[None], output[None, None], tf.constant([[True]]))[0, 0]


def test_joined_outputs_of_parts_keep_the_spans_and_the_nesting_of_the_whole_text():
    rng = random.Random(0)
    for _ in range(400):
        text = tree(rng)
        ends = sorted(rng.choices(range(len(text) + 1), k=2))
        parts = [text[: ends[0]], text[ends[0] : ends[1]], text[ends[1] :]]
        output = [part for of_part in parts for part in rng.sample(of_part, len(of_part))]
        source, joined = " ".join(text), " ".join([*output, *rng.choice([[], ["20 %d"]])])
        result = in_joined(tf.constant(source), tf.constant(joined)).numpy().decode()
        wanted, counts = Counter(spans(source)), Counter(spans(result))
        assert {span: counts[span] for span in wanted} == wanted
        assert tags_parse(result), (source, joined, result)


@pytest.mark.slow
def test_divided_texts_keep_their_spans_in_python_and_in_an_export(run, tmp_path):
    rng = random.Random(0)
    translator = Translator.from_run(run, keep="common", split="sentences", beam_size=1)
    sentences = [*KEPT_TEXTS, *PLAIN_TEXTS, "See <b>twenty {a}. Then", "{b, select, x {Y. Z}}</b>."]
    sentences += ["It has <i>twenty 20.", "%s days</i> left!", '<a title="One. Two">two</a> three.']
    texts = [
        "".join(rng.choice(sentences) + rng.choice([" ", "\n", "  "]) for _ in range(4))
        for _ in range(40)
    ]
    n_best = translator.n_best(texts)
    for text, row in zip(texts, n_best, strict=True):
        for prediction in row:
            wanted, counts = Counter(spans(text)), Counter(spans(prediction.text))
            assert {span: counts[span] for span in wanted} == wanted, (text, prediction)
            assert tags_parse(prediction.text) or not tags_parse(text)
            wanted, found = map(spaces_between_tags, (text, prediction.text))
            assert all(wanted[key] == found[key] for key in wanted.keys() & found.keys())
    assert max(row[0].parts for row in n_best) > 3
    translator.save(str(tmp_path / "1"))
    loaded = tf.saved_model.load(str(tmp_path / "1"))
    outputs = loaded.signatures["n_best"](text=tf.constant(texts))["translations"].numpy()
    in_graph = [[text.decode() for text in row if text] for row in outputs]
    assert in_graph == [[prediction.text for prediction in row] for row in n_best]


def test_only_translators_keep_spans(run):
    translator = Translator.from_run(run)
    config = replace(translator.config, keep=("common",))
    with pytest.raises(InputError, match=r"decode.keep is for translators.* Give --keep \[\]"):
        TextPredictor(translator.model, translator.codec, config)


@pytest.mark.slow
def test_an_ensemble_keeps_spans_by_the_attention_of_its_first_model(keeping):
    twice = Ensemble([keeping.model, keeping.model])
    both = Translator(twice, keeping.codec, keeping.config)
    assert [x.text for x in both(KEPT_TEXTS)] == [x.text for x in keeping(KEPT_TEXTS)]


def test_well_formed_markup_stays_well_formed():
    rng, draws = random.Random(0), np.random.default_rng(0)
    for _ in range(400):
        parts = tree(rng)
        text, output = " ".join(parts), " ".join(damaged(parts, rng))
        mixed = " ".join(rng.sample(parts, rng.randrange(len(parts) + 1)))
        for markup in (text, mixed):
            assert is_well_formed(tf.constant(spans(markup), tf.string)) == tags_parse(markup)
        result = repair(text, output, rng=draws)
        assert tags_parse(result), (text, output, result)
