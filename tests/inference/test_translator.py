"""Strings to strings: order, empty lines, batches, scores, alignments, constraints."""

import itertools
import pickle
import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.config import Config, DecodeConfig
from tf_transformer.decoding import NEG_INF
from tf_transformer.errors import InputError
from tf_transformer.inference.attention_record import Tokens, join_pieces
from tf_transformer.inference.predictor import PairScore, Prediction, predictions_of
from tf_transformer.inference.search import Search
from tf_transformer.inference.text_generator import TextGenerator
from tf_transformer.inference.translator import Alignment, Translator
from tf_transformer.tasks.encoder_decoder import build_model
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import without_letters
from tf_transformer.text.special_ids import EOS_ID
from tf_transformer.text.tokenizer import Tokenizer

SENTENCES = [
    "one",
    "two hundred and twelve thousand, nine hundred",
    "",
    "twenty-one",
    "  ",
    "seven",
]


@pytest.fixture(scope="module")
def translator(run):
    return Translator.from_run(run)


def with_options(translator, **options):
    """The same model with other options of the search."""
    return Translator(translator.model, translator.codec, DecodeConfig(**options))


def pieces_of(translator):
    """All pieces of the vocabulary that a translation can contain."""
    tokenizer = translator.tokenizer
    return [tokenizer.piece(i) for i in range(EOS_ID + 1, tokenizer.vocabulary_size)]


def of_pieces(translator, *pieces, **options):
    """A translator whose translations contain these pieces only."""
    excluded = tuple(piece for piece in pieces_of(translator) if piece not in pieces)
    return with_options(translator, excluded_tokens=excluded, **options)


def of_one_word(translator, **options):
    """A translator with a vocabulary of one word: its translations can be counted by hand."""
    word = max(pieces_of(translator), key=lambda piece: piece.startswith("▁") * len(piece))
    return of_pieces(translator, word, **options), word.removeprefix("▁")


def texts_of(translations):
    return [translation.text for translation in translations]


def test_the_order_and_number_of_sentences_is_kept(translator):
    alone = [translator([sentence])[0] for sentence in SENTENCES]
    together = translator(SENTENCES)
    assert texts_of(together) == texts_of(alone)
    np.testing.assert_allclose([t.score for t in together], [t.score for t in alone], atol=1e-4)


@pytest.mark.parametrize("parallel_batches", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_the_batch_size_and_batches_at_a_time_change_nothing(run, translator, parallel_batches):
    other = Translator.from_run(run, batch_size=1, parallel_batches=parallel_batches)
    assert texts_of(other(SENTENCES)) == texts_of(translator(SENTENCES))


def test_options_that_are_none_are_those_of_the_run(run, translator):
    other = Translator.from_run(run, beam_size=3, length_penalty=None)
    assert other.config.beam_size == 3
    assert other.config.length_penalty == translator.config.length_penalty


def test_empty_and_blank_lines_translate_to_nothing(translator):
    blank = ["", "  ", "\t", "\r", "\u00a0", "\u2028", "\u200b\ufeff", "\x00"]
    assert [translator([text])[0] for text in blank] == [Prediction("", 0.0)] * len(blank)
    assert translator([]) == []


@pytest.mark.slow
def test_texts_without_letters_are_copied(translator):
    """As an option, over all of Unicode by its categories, in Python and in the graph."""
    config = DecodeConfig(beam_size=2, num_hypotheses=2, max_length=1)
    copying = Translator(translator.model, translator.codec, config, copy_without_letters=True)
    characters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    of_kind = {}
    for character in characters:  # some of each category and plane
        of_kind.setdefault((unicodedata.category(character), ord(character) >> 13), character)
    texts = ["17", "***", " 12:30", "4 x", "", "\t", *(f"1{c}" for c in of_kind.values())]
    letters = [any(unicodedata.category(c)[0] == "L" for c in text) for text in texts]
    n_best = copying.n_best(texts)
    for text, row, has_letters in zip(texts, n_best, letters, strict=True):
        if text.strip() and not has_letters:
            assert row == [Prediction(text, 0.0)]
        else:
            assert row[0].text != text or not text
    assert copying(["17"], ["ein"])[0].text.startswith("ein")
    assert translator(["17"])[0].text != "17"
    found = copying.graph(jit_compile=False).predict(tf.constant(texts))
    assert [text.decode() for text in found["translation"].numpy()] == [r[0].text for r in n_best]
    np.testing.assert_allclose(found["score"], [row[0].score for row in n_best], atol=1e-4)
    assert found["truncated"].numpy().tolist() == [row[0].truncated for row in n_best]


def test_the_inside_of_a_class_has_all_letters():
    """The expression of the graph holds for the same characters as Python's categories."""
    characters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    found = without_letters(tf.constant(characters)).numpy()
    assert found.tolist() == [unicodedata.category(c)[0] != "L" for c in characters]


HALF_CHARACTERS = {
    "beam": {"beam_size": 3, "num_hypotheses": 3},
    "greedy": {"beam_size": 1},
    "samples": {"sampling": True, "num_hypotheses": 4},
    "short": {"beam_size": 3, "max_length": 2},
}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(options, id=name, marks=[] if name == "beam" else pytest.mark.slow)
        for name, options in HALF_CHARACTERS.items()
    ],
)
def test_outputs_have_whole_characters_only(translator, options):
    """A model that can predict bytes of characters only, in Python and in the graph."""
    bytes_of = [f"<0x{byte:02X}>" for byte in "éÃ猫🙂".encode()]
    of_bytes = of_pieces(translator, *bytes_of, "▁", **options)
    n_best = of_bytes.n_best(SENTENCES)
    texts = [prediction.text for row in n_best for prediction in row]
    assert not any("\ufffd" in text for text in texts)
    found = of_bytes._graph.n_best(tf.constant(SENTENCES))
    in_graph = [
        [text.decode("utf-8") for text, score in zip(*row, strict=True) if score > NEG_INF]
        for row in zip(found["translations"].numpy(), found["scores"].numpy(), strict=True)
    ]
    assert in_graph == [[prediction.text for prediction in row] for row in n_best]


@pytest.mark.slow
def test_after_a_prefix_that_ends_in_a_space_a_new_word_follows(translator):
    """Of all prefixes of a translation, at least one ends in a space; others continue a word."""
    for options in ({"beam_size": 3}, {"beam_size": 1}, {"sampling": True}):
        predict = with_options(translator, min_length=8, **options)
        prefixes = ["ein ", "ein", "ein\u00a0", "e", " ", ""]
        texts = texts_of(predict(["twenty-one"] * len(prefixes), prefixes))
        assert texts[0].startswith("ein ")
        assert len(texts[0]) > len("ein ")
        assert texts[2] == texts[0]
        assert texts[1].startswith("ein")
        assert texts[3].startswith("e")
        assert texts[4] == texts[5] == predict(["twenty-one"])[0].text


def test_a_long_sentence_is_cut_at_max_source_length(run):
    short = Translator.from_run(run, max_source_length=5)
    assert short(["one " * 50])[0] == short(["one " * 90])[0]


def test_progress_counts_sentences_with_text_and_their_target_tokens(translator):
    counts = []
    four, _ = of_one_word(translator, min_length=4, max_length=4, batch_size=2, num_hypotheses=2)
    four(SENTENCES, progress=lambda *newly: counts.append(newly))
    assert counts == [(1, 4), (2, 8), (1, 4)]


class Batches:
    """Replaces the search and records its inputs."""

    def __init__(self, search):
        self.search = search
        self.sources = []

    def __call__(self, text, source):
        self.sources.append(source)
        return self.search(text, source)


@pytest.mark.parametrize(("batch_size", "batch_tokens"), [(64, 60), (3, 4096), (64, 5)])
def test_batches_keep_both_limits_and_hold_sentences_of_similar_length(
    translator, batch_size, batch_tokens
):
    texts = ["one two three"] * 5 + ["seven"] * 10 + ["two hundred and one"] * 4
    other = with_options(translator, beam_size=1, batch_size=batch_size, batch_tokens=batch_tokens)
    other._search = batches = Batches(other._search)
    other(texts)
    assert sum(len(source) for source in batches.sources) == len(texts)
    for source in batches.sources:
        assert len(source) <= batch_size
        assert source.size <= batch_tokens or len(source) == 1  # a single sentence may be longer
        lengths = (source != 0).sum(axis=1)
        assert 2 * min(lengths) >= max(lengths)


def test_n_best_are_sorted_and_start_with_the_result_of_a_call(run):
    several = Translator.from_run(run, beam_size=4, num_hypotheses=3)
    n_best = several.n_best(SENTENCES)
    assert [hypotheses[0] for hypotheses in n_best] == several(SENTENCES)
    assert [len(hypotheses) for hypotheses in n_best] == [3, 3, 1, 3, 1, 3]
    for hypotheses in n_best:
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == sorted(scores, reverse=True)


def test_there_may_be_fewer_hypotheses_but_at_least_one(translator):
    """With two tokens: the end; the word and the end; the word twice."""
    other, word = of_one_word(translator, beam_size=5, num_hypotheses=5, max_length=2)
    few, empty = other.n_best(["one", ""])
    assert sorted(texts_of(few)) == ["", word, f"{word} {word}"]
    assert empty == [Prediction("", 0.0)]


@pytest.mark.parametrize(
    ("options", "count"),
    [({"beam_size": 8}, 3), pytest.param({"sampling": True}, 8, marks=pytest.mark.slow)],
)
def test_n_best_texts_are_distinct_and_the_best_of_their_equals(translator, options, count):
    """The oracle keeps the best of equal texts. A word is one piece, or a blank and a letter."""
    options = {"max_length": 5} | options
    pieces = ("▁t", "▁", "t")
    every = of_pieces(translator, *pieces, **options, num_hypotheses=8, distinct=False)
    distinct = of_pieces(translator, *pieces, **options, num_hypotheses=count)
    repeated = 0
    for row, found in zip(every.n_best(SENTENCES), distinct.n_best(SENTENCES), strict=True):
        best = {each.text: each for each in reversed(row)}
        expected = sorted(best.values(), key=lambda each: -each.score)[:count]
        assert texts_of(found) == texts_of(expected)
        repeated += len(row) - len(best)
    assert repeated


def test_truncated_is_a_cut_text_or_a_translation_without_its_end(translator):
    """Counted by hand: a translation of as many words as its limit has no room for the end."""
    texts = [*SENTENCES, "one " * 50]
    options = {"max_length": 2, "sampling": True, "max_source_length": 60}
    other, word = of_one_word(translator, **options)
    found = set()
    for text, each in zip(texts, other(texts), strict=True):
        is_cut = len(other.tokenizer.encode(text)) > 60
        assert (each.cut, each.at_limit) == (is_cut, each.text.count(word) == 2)
        assert each.truncated == (each.cut or each.at_limit)
        found.add((is_cut, each.truncated))
    assert found == {(False, False), (False, True), (True, True)}


@pytest.mark.parametrize(
    "options",
    [
        {"num_hypotheses": 3},
        *(pytest.param(x, marks=pytest.mark.slow) for x in ({}, {"beam_size": 1})),
    ],
)
def test_translations_are_those_of_ids_by_the_tokenizer_of_the_data(translator, options):
    """The oracle has `sentencepiece` in place of the ops of the graph, and cuts by hand."""
    odd = [
        "one\x00\x07",
        "\ud800 half",
        "\u05e9 日本 \U0001f44d\U0001f3fd",
        "x" * 300,
        "ﬁ ½ e\u0301",
    ]
    texts = [text for text in [*SENTENCES, *odd] if text.strip()]
    other = with_options(translator, max_source_length=9, distinct=False, **options)
    search, tokenizer = Search(other.model, other.config), translator.tokenizer
    search = tf.function(search, [tf.TensorSpec((None, None), tf.int32)], autograph=False)
    for text, row in zip(texts, other.n_best(texts), strict=True):
        ids = tokenizer.encode(text)
        cut = len(ids) > 9
        hypotheses = search(np.array([[*ids[:8], EOS_ID] if cut else ids], np.int32))
        expected = [tokenizer.decode(hypothesis) for hypothesis in hypotheses.ids.numpy()[0]]
        assert texts_of(row) == expected
        np.testing.assert_allclose([p.score for p in row], hypotheses.scores[0], atol=1e-4)
        at_limit = EOS_ID not in hypotheses.ids.numpy()[0, 0]
        assert {(p.cut, p.at_limit) for p in row} == {(cut, at_limit)}


def test_a_prediction_is_a_plain_record():
    for cut, at_limit in itertools.product((False, True), repeat=2):
        (prediction,) = predictions_of(["eins"], [-1.0], cut, at_limit)
        assert pickle.loads(pickle.dumps(prediction)) == prediction
        assert (prediction.cut, prediction.at_limit) == (cut, at_limit)
        assert prediction.truncated == (cut or at_limit)


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 3},
        *(pytest.param(x, marks=pytest.mark.slow) for x in ({"beam_size": 1}, {"sampling": True})),
    ],
)
def test_translations_start_with_their_prefixes(translator, options):
    prefixes = ["eins", "zwei hundert", "", "", "drei", "s"]
    other = with_options(translator, max_extra_length=5, **options)
    found = other(SENTENCES, prefixes)
    for translation, prefix, text in zip(found, prefixes, SENTENCES, strict=True):
        assert translation.text.startswith(prefix if text.strip() else "")
    alone = other(SENTENCES)[3]
    assert (found[3].text, found[3].score) == (alone.text, pytest.approx(alone.score, abs=1e-4))


@pytest.mark.parametrize("length_penalty", [pytest.param(0.0, marks=pytest.mark.slow), 0.6])
def test_the_score_of_a_translation_is_the_score_of_its_search(translator, length_penalty):
    """The tokenizer keeps the one word whole; at the length limit the end token is missing."""
    options = {"length_penalty": length_penalty, "beam_size": 6, "num_hypotheses": 6}
    other, word = of_one_word(translator, max_length=8, **options)
    texts = ["one", "two hundred and twelve"]
    compared = set()
    for text, hypotheses in zip(texts, other.n_best(texts), strict=True):
        scored = other.score([text] * 6, texts_of(hypotheses))
        for translation, found in zip(hypotheses, scored, strict=True):
            length = translation.text.count(word) + 1
            if length <= 8:
                compared.add(length)
                assert found.score == pytest.approx(translation.score, abs=1e-4)
                penalty = ((5 + length) / 6) ** length_penalty
                assert found.log_probability == pytest.approx(found.score * penalty, rel=1e-5)
    assert len(compared) >= 3


def test_a_pair_of_empty_texts_has_the_score_of_an_empty_translation(translator):
    assert (
        translator.score(["", "  "], ["", " "]) == [PairScore(*[translator([""])[0].score] * 2)] * 2
    )
    assert all(pair.score < 0 for pair in translator.score(["", "one"], ["eins", ""]))


def source_of(translator, text):
    return np.array([translator.tokenizer.encode(text)], np.int32)


def test_alignments_have_a_row_per_target_token_that_sums_to_one(translator):
    translations = ["eins", "zwei hundert", "x", "", "", "sieben"]
    for text, translation, alignment in zip(
        SENTENCES, translations, translator.align(SENTENCES, translations), strict=True
    ):
        pieces = [len(translator.tokenizer.encode(side)) for side in (translation, text)]
        assert [len(alignment.target.pieces), len(alignment.source.pieces)] == pieces
        assert alignment.weights.shape == tuple(pieces)
        np.testing.assert_allclose(alignment.weights.sum(axis=1), 1, atol=1e-5)
        end = translator.tokenizer.piece(EOS_ID)
        assert alignment.source.pieces[-1] == alignment.target.pieces[-1] == end
        assert "".join(alignment.target.pieces[:-1]).replace("▁", " ").strip() == translation
        assert alignment.target.words == [*translation.split(), end]
        assert len(alignment.links("pieces")) == (pieces[0] - 1 if pieces[1] > 1 else 0)


def words(*pieces):
    """Tokens whose words are these tuples of pieces, then the end token."""
    parts = [*pieces, ("</s>",)]
    return Tokens(
        [piece for word in parts for piece in word],
        ["".join(word) for word in parts],
        [number for number, word in enumerate(parts) for _ in word],
    )


def test_links_go_to_the_likeliest_source_token_except_the_end():
    weights = np.array([[0.1, 0.5, 0.4], [0.3, 0.1, 0.6], [1.0, 0.0, 0.0]])
    two = Alignment(words("a", "b"), words("x", "y"), weights)
    assert two.links() == two.links("pieces") == [(1, 0), (0, 1)]
    assert Alignment(words(), words("x"), np.ones((2, 1))).links() == []
    assert Alignment(words("a"), words(), np.ones((1, 2)) / 2).links() == []


def test_words_are_linked_if_any_of_their_pieces_are():
    weights = np.eye(5)[[0, 3, 1, 1, 4]]  # of the pieces x1 x2 y1 y2 </s>
    aligned = Alignment(words("a", ("b1", "b2"), "c"), words(("x1", "x2"), ("y1", "y2")), weights)
    assert aligned.links("pieces") == [(0, 0), (3, 1), (1, 2), (1, 3)]
    assert aligned.links() == [(0, 0), (2, 0), (1, 1)]


def test_the_attention_for_a_token_depends_on_earlier_tokens_only(translator):
    """As when a search chooses the token."""
    one, other = translator.align(["twenty-one"] * 2, ["x y", "x zwei"])
    same = [a == b for a, b in zip(one.target.pieces, other.target.pieces, strict=False)]
    shared = same.index(False) + 1
    np.testing.assert_allclose(one.weights[:shared], other.weights[:shared], atol=1e-6)
    assert not np.allclose(one.weights[shared], other.weights[shared], atol=1e-6)


ODD_WORDS = [
    "a\u2581b c",
    "one\u00a0two\tthree",
    "a \u200b b",
    "\u2581",
    "x\x1cy",
    "\ufeffone \0 two",
]


@pytest.mark.parametrize("normalization", ["identity", "nmt_nfc"])
def test_links_and_weights_are_those_of_the_words_of_split(translator, normalization):
    texts = [*ODD_WORDS, "one two", "twenty-one  ", "\t", ""] * 2
    lines = ["one two three", "ein zwei"]
    codec = Codec(Tokenizer.train(lines, 320, normalization))
    model = build_model(Config(model=translator.model.config), codec, "float32")
    aligner = Translator(model, codec, DecodeConfig(max_source_length=12))
    for text, translation, found in zip(
        texts, texts[::-1], aligner.align(texts, texts[::-1]), strict=True
    ):
        for source, target in found.links():
            assert 0 <= source < len(text.split())
            assert 0 <= target < len(translation.split())
        if found.source.pieces:
            weights = join_pieces(found.weights, found.target, found.source)[:-1, :-1]
            assert weights.shape == (
                len(translation.replace("\0", "").split()),
                len(text.replace("\0", "").split()),
            )
            assert np.isfinite(weights).all()


def test_alignments_do_not_depend_on_the_batch(translator):
    texts, translations = SENTENCES[:2], ["eins", "zwei hundert und zwei"]
    together = translator.align(texts, translations)
    for place, alignment in enumerate(together):
        alone = translator.align(texts[place : place + 1], translations[place : place + 1])[0]
        np.testing.assert_allclose(alignment.weights, alone.weights, atol=1e-5)


def test_bfloat16_computes_the_same_less_precisely(translator):
    half = translator.with_dtype("bfloat16")
    assert {weight.dtype for weight in half.model.weights} == {"bfloat16"}
    assert half.config == translator.config
    assert len(half(SENTENCES)) == len(SENTENCES)
    expected = translator.score(SENTENCES, SENTENCES)
    np.testing.assert_allclose(half.score(SENTENCES, SENTENCES), expected, rtol=0.05)
    assert half.score(SENTENCES, SENTENCES) != expected


def test_another_dtype_is_an_error(run, translator):
    assert translator.with_dtype("float32") is translator
    with pytest.raises(
        InputError, match="dtype must be one of float32, bfloat16, int8, got float16"
    ):
        Translator.from_run(run, "float16")


def test_no_translation_contains_excluded_tokens(translator):
    other = with_options(translator, beam_size=2)
    pieces = {
        other.tokenizer.piece(i)
        for i in np.asarray(other.search(other.config)(source_of(other, "one")).ids).flat
        if i > EOS_ID
    }
    without = with_options(translator, beam_size=2, excluded_tokens=tuple(pieces))
    ids = np.asarray(without.search(without.config)(source_of(other, "one")).ids)
    assert pieces.isdisjoint(map(other.tokenizer.piece, ids.flat))


def test_an_excluded_token_that_the_vocabulary_lacks_is_an_error(run):
    with pytest.raises(InputError, match="'▁nowhere' is not a piece of the vocabulary"):
        Translator.from_run(run, excluded_tokens=("▁nowhere",))


def test_a_draw_depends_on_the_sentence_and_the_seed_alone(translator):
    drawing = with_options(translator, sampling=True, seed=3)
    together = texts_of(drawing(SENTENCES))
    alone = [drawing([sentence])[0].text for sentence in SENTENCES]
    assert together == alone
    assert texts_of(with_options(translator, sampling=True, seed=3)(SENTENCES)) == together
    assert texts_of(with_options(translator, sampling=True, seed=4)(SENTENCES)) != together
    assert len(set(texts_of(drawing(["one"] * 3)))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_the_saved_model_gives_the_same_strings(translator, tmp_path, jit_compile):
    """Batches of several sizes and lengths: buckets of a compiled one, and beyond the largest."""
    import tensorflow as tf

    translator.save(tmp_path / "model", jit_compile=jit_compile)
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    for texts in (["one"], SENTENCES, ["", "two"] * 33):
        found = served(tf.constant(texts))
        expected = translator(texts)
        assert [text.decode() for text in found["translation"].numpy()] == texts_of(expected)
        scores = [translation.score for translation in expected]
        np.testing.assert_allclose(found["score"], scores, atol=1e-4)


@pytest.mark.parametrize("method", ["__call__", "n_best", "score", "align", "signatures"])
@pytest.mark.parametrize("text", ["twenty-one", b"twenty-one"])
def test_one_text_in_place_of_a_list_is_an_error(translator, method, text):
    texts = [text] * (2 if method in ("score", "align") else 1)
    message = r"expected a list of texts, got one text \((str|bytes)\); use translator\(\[...\]\)"
    with pytest.raises(InputError, match=message):
        getattr(translator, method)(*texts)


@pytest.mark.parametrize("method", ["__call__", "n_best", "score", "align"])
def test_lists_of_unequal_length_are_an_error(translator, method):
    with pytest.raises(
        InputError, match=r"expected as many (prefixes|predictions|translations) as texts"
    ):
        getattr(translator, method)(["one", "two"], ["eins"])


def test_a_run_of_another_predictor_is_an_error(run):
    with pytest.raises(InputError, match=r"predicts with a Translator. Use Translator.from_run."):
        TextGenerator.from_run(run)


# --- limits ----------------------------------------------------------------------------------


def test_a_beam_beyond_the_vocabulary_is_an_error(run):
    for options in ({"beam_size": 100_000}, {"sampling": True, "top_k": 100_000}):
        with pytest.raises(
            InputError, match=r"\(100,000\) must be at most \d+, the number of tokens"
        ):
            Translator.from_run(run, **options)


def test_a_search_that_does_not_fit_into_memory_is_an_error(run, monkeypatch):
    """The oracle is the error: without it, the process is killed."""
    message = r"^a search with {} hypotheses .* needs about [\d,]+ GiB, and .* has [\d,]+ GiB\."
    with pytest.raises(InputError, match=message.format("1,000,000,000")):
        Translator.from_run(run, sampling=True, num_hypotheses=10**9)(["one"])
    monkeypatch.setattr("tf_transformer.inference.text_predictor.total_memory", lambda: 2**20)
    with pytest.raises(InputError, match=message.format("250")):
        Translator.from_run(run, beam_size=250)(["one"])


def test_a_wide_beam_that_fits_is_searched(run):
    assert Translator.from_run(run, beam_size=100, max_length=3)(["one"])
