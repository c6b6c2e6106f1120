"""Continuations and scores of texts, against the model in NumPy."""

import functools

import numpy as np
import pytest
import reference
import tensorflow as tf
from models.test_language_model import numpy_logits
from reference_search import log_softmax

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.decoding import Hypotheses
from tf_transformer.errors import InputError
from tf_transformer.inference.text_generator import GenerationGraph, TextGenerator, TextScore
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.text.codec import Codec
from tf_transformer.text.special_ids import BOS_ID
from tf_transformer.text.tokenizer import BYTES, Tokenizer

LINES = ["tom is tired", "tom was here", "the house is old", "is the house here"] * 5
# The third is empty; the last are longer than the windows below.
TEXTS = [
    "tom is",
    "the hou",
    "",
    "é 日本 \U0001f44d",
    "old house " * 3,
    "  the   house is\told here x",
]
PROMPTS = TEXTS[:4]
WINDOW = 7


@functools.cache
def make_generator(vocabulary_size=BYTES, model_options=(), **options):
    tokenizer = Tokenizer.train(LINES, vocabulary_size)
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 9, "num_heads": 2, **dict(model_options)}
    model = LanguageModel(tokenizer.vocabulary_size, ModelConfig(**sizes))
    model.build()
    reference.randomize(model, seed=5)
    options = {"beam_size": 1, "max_extra_length": 6, "max_source_length": WINDOW} | options
    return TextGenerator(model, Codec(tokenizer), DecodeConfig(**options))


each_vocabulary = pytest.mark.parametrize("size", [BYTES, 330], ids=["bytes", "SentencePiece"])


def ids_of(generator, prompt, rest) -> tuple[list[int], list[int]]:
    """The ids of a prompt, and of a rest with its end."""
    prompts, rests, _ = generator.graph(jit_compile=False).read_pairs([prompt], [rest])
    return prompts.to_list()[0], rests.to_list()[0]


def token_log_probabilities(model, ids) -> list[float]:
    """ln p of each id of a row that follows the first, by a whole softmax."""
    logits, _ = numpy_logits(model, np.array(ids[:-1]))
    return [log_softmax(row)[token] for row, token in zip(logits, ids[1:], strict=True)]


def text_log_probability(generator, ids, window) -> float:
    """The definition: windows, each half a window after the one before, count new ids only."""
    total, done, start = 0.0, 0, 0
    while done < len(ids):
        before = ids[start - 1] if start else BOS_ID
        of_window = token_log_probabilities(generator.model, [before, *ids[start : start + window]])
        total += sum(of_window[done - start :])
        done = start + len(of_window)
        start += window // 2
    return total


@each_vocabulary
def test_log_probabilities_equal_a_softmax_in_numpy_for_any_length(size):
    generator = make_generator(size)
    rows = [generator.tokenizer.encode(text) for text in TEXTS]
    assert max(map(len, rows)) > 2 * WINDOW
    expected = [TextScore(text_log_probability(generator, row, WINDOW), len(row)) for row in rows]
    np.testing.assert_allclose(generator.score_texts(TEXTS), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 5, 6, 100])
@pytest.mark.parametrize("scored_from", [0, 4])
def test_windows_count_each_id_once(size, scored_from):
    texts = [list(range(10, 10 + length)) for length in (13, 6, 12, 5, 30)]
    graph = make_generator(max_source_length=size).graph(jit_compile=False)
    ids = tf.ragged.constant(texts, dtype=tf.int32)
    found = graph.windows(ids, tf.fill((len(texts),), scored_from))
    counted = [[] for _ in texts]
    for text, before, window, first in zip(
        *(field.numpy().tolist() for field in found[:2]),
        *(found.ids.to_list(), found.scored_from.numpy().tolist()),
        strict=True,
    ):
        assert len(window) <= size
        assert before == (window[0] - 1 if window[0] > 10 else BOS_ID)
        assert window[0] == 10 or first + 1 > size // 2  # context
        counted[text] += window[first:]
    assert counted == [text[scored_from:] for text in texts]


@each_vocabulary
def test_scores_of_given_continuations_equal_numpy(size):
    generator = make_generator(size, max_source_length=100, length_penalty=0.5)
    rests = [" tired", "se is old", "tom", ""]
    for prompt, rest, found in zip(PROMPTS, rests, generator.score(PROMPTS, rests), strict=True):
        start, ids = ids_of(generator, prompt, rest)
        row = [BOS_ID, *start, *ids]
        expected = sum(token_log_probabilities(generator.model, row)[-len(ids) :])
        assert found.log_probability == pytest.approx(expected, abs=1e-4)
        penalty = ((5 + len(ids)) / 6) ** 0.5
        assert found.score == pytest.approx(expected / penalty, abs=1e-4)


def test_each_prompt_of_a_batch_is_continued_as_alone():
    generator = make_generator(330)
    together = generator(PROMPTS)
    for prompt, found in zip(PROMPTS, together, strict=True):
        (alone,) = generator([prompt])
        assert (found.text, found.truncated) == (alone.text, alone.truncated)
        assert found.score == pytest.approx(alone.score, abs=1e-4)


def test_a_continuation_begins_with_a_blank_where_a_word_begins():
    generator = make_generator(330)
    tokenizer, graph = generator.tokenizer, generator.graph(jit_compile=False)
    for prompt, rest in [("tom is", " tired"), ("tom is ti", "red"), ("", "tom is"), ("tom", "")]:
        start, ids = ids_of(generator, prompt, rest)
        assert tokenizer.decode([*start, *ids]) == prompt + rest
        number = tf.constant([[0.0]])
        hypothesis = Hypotheses(tf.constant([[ids]]), tf.constant([[len(ids)]]), number, number)
        assert graph.decode(hypothesis, tf.constant([prompt])).numpy() == [[rest.encode()]]
    assert ids_of(generator, "", "tom is") == ([], tokenizer.encode("tom is"))


def test_prefixes_begin_the_continuations():
    prefixes = [" tired", "se", "tom", ""]
    found = make_generator(330)(PROMPTS, prefixes)
    for prediction, prefix in zip(found, prefixes, strict=True):
        assert prediction.text.startswith(prefix)


@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"beam_size": 3}, marks=pytest.mark.slow),
        pytest.param({"sampling": True, "num_hypotheses": 2}, marks=pytest.mark.slow),
    ],
)
def test_after_a_space_a_new_word_follows(options):
    """In the prompt or the prefix, and in the graph as in Python; else a word may go on."""
    generator = make_generator(330, **options)
    prompts = ["tom", "tom ", "the hou \u00a0", "tom is", "old ", "  ", "is\t"]
    prefixes = [" ", "", "", " here ", "hou", "tom ", "x "]
    of_prompts, of_prefixes = generator(prompts), generator(prompts, prefixes)
    plain = [generator([prompt.rstrip()], [" "])[0].text for prompt in prompts]
    for prompt, prefix, first, second, alone in zip(
        prompts, prefixes, of_prompts, of_prefixes, plain, strict=True
    ):
        if prompt.strip() and prompt[-1:].isspace():
            assert " " + first.text == alone
        elif not prompt.strip():
            assert first.text == generator([""])[0].text
        text = generator.tokenizer.decode(generator.tokenizer.encode(prompt + second.text))
        given = prompt.strip() + (" " if prompt.endswith((" ", "\t")) else "") + prefix
        assert text.startswith(given.lstrip())
        assert len(text) > len(given.lstrip()) or not prefix.endswith(" ")
    graph = GenerationGraph(
        *(generator.search(generator.config), generator.codec, WINDOW, False, "continuation")
    )
    found = graph.predict(np.array([prompt.encode() for prompt in prompts]))
    assert [text.decode() for text in found["continuation"].numpy()] == [
        prediction.text for prediction in of_prompts
    ]
    np.testing.assert_allclose(found["score"], [p.score for p in of_prompts], atol=1e-5)


def test_of_a_long_prompt_the_last_tokens_count():
    generator = make_generator()
    long = generator(["abcdefgh" * 3, "h" + "abcdefgh" * 3])
    assert long[0].text == long[1].text
    assert long[0].truncated
    ids = generator.tokenizer.encode("abcdefgh" * 3)
    short = generator.model.run(np.array([[1, *ids[-WINDOW:-1]]]))
    logits = reference.array(generator.model.output_embedding.logits(short.states))[0, -1]
    best = int(np.argmax(np.where(np.arange(BYTES) < 2, -np.inf, logits)))
    assert generator.tokenizer.encode(long[0].text)[0] == best or best >= 128


@pytest.mark.parametrize(("size", "jit_compile"), [(330, False), (BYTES, True)])
def test_the_graph_gives_what_the_generator_gives(size, jit_compile):
    generator = make_generator(size)
    graph = generator.graph(jit_compile)
    assert isinstance(graph, GenerationGraph)
    found = graph.predict(np.array([text.encode() for text in TEXTS]))
    expected = generator(TEXTS)
    assert [text.decode() for text in found["continuation"].numpy()] == [p.text for p in expected]
    np.testing.assert_allclose(found["score"], [p.score for p in expected], atol=1e-4)
    assert found["truncated"].numpy().tolist() == [each.truncated for each in expected]
    scores = graph.score_text(np.array([text.encode() for text in TEXTS]))
    log_p, tokens = zip(*generator.score_texts(TEXTS), strict=True)
    np.testing.assert_allclose(scores["log_probability"], log_p, rtol=0, atol=1e-3)
    assert scores["tokens"].numpy().tolist() == list(tokens)


def test_the_signatures_are_those_of_the_graph():
    generator = make_generator(330)
    cases = generator.signatures(PROMPTS[:2])
    endpoints = generator.graph(False).endpoints()
    assert cases.keys() == endpoints.keys()
    assert all(list(cases[name].inputs) == endpoints[name][1] for name in cases)


def test_what_a_language_model_cannot_do_is_an_error():
    with pytest.raises(InputError, match="coverage_penalty needs a model that attends to a source"):
        make_generator(coverage_penalty=0.2)
    small = make_generator(model_options=(("position", "learned"), ("max_length", 10)))
    with pytest.raises(InputError, match=r"prompt 'abcdef' and its prefix have more than model.ma"):
        small(["abcdef"], ["ghijk"])
