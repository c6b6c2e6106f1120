"""Python reads, divides and writes texts as the graph of a translator does, which is the oracle."""

import pathlib
import shutil
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tf_transformer.decoding import NEG_INF, Hypotheses
from tf_transformer.errors import InputError
from tf_transformer.export.standalone import options_of
from tf_transformer.imports import marian_folder
from tf_transformer.inference.kept_graph import attention
from tf_transformer.inference.parts import Parts
from tf_transformer.inference.text_graph import IDS
from tf_transformer.inference.translator import Translator
from tf_transformer.text.plain_texts import PlainTexts, Scored
from tf_transformer.text.special_ids import EOS_ID

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "marian"
WORDS = st.sampled_from(
    [
        "two hundred",
        "seven,",
        "TWENTY-ONE;",
        "Nine: “",
        "十二，",
        "Mr.",
        "EU",
        "17.",
        "A Big Old Dog",
    ]
) | st.sampled_from(
    ["。", "\n", "  ", "\ufeff", "\0", "?", "…", "é", "\ud800", "„Ja“ –", ">>nld<<"]
)
MARKED = st.lists(
    WORDS
    | st.sampled_from(["{a. B}", "<b>", "<b>two</b>", "</b>", "<br/>", "5 km", "🙂", "a@b.c"]),
    max_size=9,
).map(" ".join)
FORMS = ["Seven", "SEVEN!", "A Big Old Dog"]
TEXTS = st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=9) | MARKED
STRINGS = tf.TensorSpec((None,), tf.string)
EXAMPLES = settings(max_examples=40, deadline=None)


@pytest.fixture(scope="module")
def translators(run, tmp_path_factory):
    """Translators with each rule for texts; one has target tags, of an imported model.

    The last two keep spans: one model reads the spans, the other one emoji.
    """
    plain = Translator.from_run(run, max_length=3)
    options = {"copy_without_letters": True, "lower_capitals": True}
    dividing = replace(plain.config, split="sentences", split_language="en", max_source_length=16)
    dividing = replace(dividing, keep=("common",))
    folder = tmp_path_factory.mktemp("imported") / "model"
    shutil.copytree(FIXTURES / "shared", folder)
    for side in ("source", "target"):
        shutil.copy(FIXTURES / f"{side}.spm", folder)
    tagged = marian_folder.read(folder)
    of_tagged = replace(plain.config, target_tag=">>nld<<", punctuation="opus", split="sentences")
    of_tagged = replace(of_tagged, keep=("common",), keep_as="emoji")
    return {
        "plain": plain,
        "dividing": Translator(plain.model, plain.codec, dividing, **options),
        "tagged": Translator(tagged.model, tagged.codec, of_tagged, **options),
    }


@pytest.fixture(scope="module")
def graphs(translators):
    return {kind: translator.graph() for kind, translator in translators.items()}


@pytest.fixture(scope="module")
def dividing(graphs):
    """The parts of texts in each graph, traced once."""
    return {
        kind: tf.function(graph.divide, input_signature=[STRINGS], autograph=False)
        for kind, graph in graphs.items()
    }


@pytest.fixture(scope="module")
def plain(translators):
    return {
        kind: PlainTexts(translator.codec, options_of(translator))
        for kind, translator in translators.items()
    }


def valid(text):
    """A text that TensorFlow can have: U+FFFD in place of lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.mark.parametrize("kind", ["plain", "dividing", "tagged"])
@EXAMPLES
@given(TEXTS)
def test_texts_are_read_as_in_the_graph(graphs, plain, kind, text):
    source, read = plain[kind].read(text), graphs[kind].read(tf.constant([valid(text)]))
    assert bool(source.ids) == (read.lengths.numpy()[0] > 0)
    assert source.copy == read.copies.numpy()[0].decode()
    if source.ids:
        assert source.ids == read.ids.to_list()[0]


@pytest.mark.parametrize("kind", ["dividing", "tagged"])
@EXAMPLES
@given(TEXTS)
def test_texts_are_divided_as_in_the_graph(dividing, plain, kind, text):
    parts, (of_parts,) = dividing[kind](tf.constant([valid(text)]))
    found = plain[kind].parts(text)
    assert [part.tag + part.text for part in found] == [x.decode() for x in of_parts.numpy()]
    assert [part.after for part in found] == [x.decode() for x in parts.after.numpy()]


@EXAMPLES
@given(TEXTS, TEXTS)
def test_given_translations_are_read_as_in_the_graph(graphs, plain, text, target):
    strings = [tf.constant([valid(x)]) for x in (text, target)]
    sources, targets, _ = graphs["dividing"].read_pairs(*strings)
    found = plain["dividing"].read_pair(text, target)
    assert found == (sources.to_list()[0], targets.to_list()[0])


@pytest.mark.parametrize("kind", ["plain", "dividing", "tagged"])
@EXAMPLES
@example(ids=[4], text="A Big Old Dog")  # the byte 0, which a search may predict
@given(st.lists(st.integers(3, 999), max_size=8), st.sampled_from(FORMS))
def test_translations_are_written_as_in_the_graph(graphs, plain, kind, ids, text):
    graph, texts = graphs[kind], plain[kind]
    ids = [*(token % texts.codec.size("target") for token in ids), EOS_ID]
    fields = (np.array([[ids]], np.int32), np.array([[len(ids)]], np.int32), 0, 0)
    drawn = graph.decode(Hypotheses(*map(tf.constant, fields)), tf.constant([text]))
    assert texts.written([ids], texts.read(text)) == [drawn.numpy()[0, 0].decode()]


@pytest.fixture(scope="module")
def keeping(graphs):
    """The outputs (B, N) of each graph with kept spans, for ids (B, N, L) and texts (B,)."""

    def kept_in(graph):
        def kept(ids, text):
            lengths = tf.reduce_sum(tf.cast(ids > 0, tf.int32), axis=2)
            hypotheses = Hypotheses(ids, lengths, 0, 0)
            shown = graph.shown(graph.decode(hypotheses, text), text)
            return graph.kept_spans(hypotheses, text, shown)

        ids = tf.TensorSpec((None, None, None), tf.int32)
        return tf.function(kept, input_signature=[ids, STRINGS], autograph=False)

    return {kind: kept_in(graph) for kind, graph in graphs.items() if graph.kept_spans}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dividing", "tagged"])
def test_spans_are_kept_as_in_the_graph(graphs, keeping, plain, kind):
    """For a source and random ids, with the attention of the model."""
    graph, texts = graphs[kind], plain[kind]
    attended = tf.function(
        lambda *pair: attention(graph.model, *pair, graph.config), input_signature=[IDS, IDS]
    )

    def test(ids, text):
        if (source := texts.read(text)).ids:
            ids = [*(3 + token % (texts.codec.size("target") - 3) for token in ids), EOS_ID]
            attend = lambda *pair: attended(*([row] for row in pair)).numpy()[0]  # noqa: E731
            in_graph = keeping[kind](tf.constant([[ids]]), tf.constant([source.text]))
            assert texts.written([ids], source, attend) == [in_graph.numpy()[0, 0].decode()]

    ids = st.lists(st.integers(0, 999), max_size=8)
    settings(max_examples=2000, deadline=None)(given(ids, MARKED)(test))()


@pytest.mark.parametrize("tag", ["", ">>nld<< "])
def test_a_span_at_the_start_does_not_stand_in_place_of_what_came_from_the_target_tag(plain, tag):
    source = plain["tagged"].read(f"{tag}<br/> 十二")

    def attend(source, drawn):
        return np.eye(1, len(source), dtype=np.float32).repeat(len(drawn), axis=0)

    assert plain["tagged"].written([[7, EOS_ID]], source, attend) == ["o <br/>"]


@EXAMPLES
@given(st.data())
def test_translations_of_parts_are_joined_as_in_the_graph(graphs, dividing, plain, data):
    text = valid(data.draw(TEXTS))
    parts, _ = dividing["dividing"](tf.constant([text]))
    scored = st.builds(
        Scored, st.sampled_from(["", "Ja", "是。", "b "]), st.floats(-3, 0, width=32)
    )
    rows = [data.draw(st.lists(scored, min_size=1, max_size=3)) for _ in range(len(parts.texts))]
    empty = Scored("", NEG_INF)
    padded = [row + [empty] * (3 - len(row)) for row in rows]
    fields = [[[x[field] for x in row] for row in padded] for field in (0, 1)]
    columns = [tf.constant(column) for column in fields]
    strings, scores = graphs["dividing"].rejoin(Parts(*parts), *columns)
    expected = [
        (x.decode(), score)
        for x, score in zip(strings.numpy()[0], scores.numpy()[0], strict=True)
        if score > NEG_INF
    ]
    found = plain["dividing"].joined(plain["dividing"].parts(text), rows)
    assert [x.text for x in found] == [x for x, _ in expected]
    np.testing.assert_allclose([x.score for x in found], [x for _, x in expected], atol=1e-6)


def test_tags_are_checked(plain):
    texts = plain["tagged"]
    texts.require_tags(["a house", f"{min(texts.tags)} a house", ""])
    with pytest.raises(InputError, match="unknown target tag '>>xxx<<'; this model has"):
        texts.require_tags([">>xxx<< a house"])
    needing = PlainTexts(texts.codec, {"max_source_length": 9, "target_tag": "required"})
    with pytest.raises(InputError, match="expected a target tag at the start of each text"):
        needing.require_tags(["a house"])
