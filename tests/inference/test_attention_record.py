"""Records of attention: the model's own weights, for every task, by pieces and by words."""

import functools

import numpy as np
import pytest

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.inference.attention_record import (
    AttentionRecord,
    Tokens,
    join_pieces,
    read_json,
    write_json,
)
from tf_transformer.inference.label_predictor import LabelPredictor
from tf_transformer.inference.masked_predictor import MaskedPredictor
from tf_transformer.inference.parser import Parser
from tf_transformer.inference.text_generator import TextGenerator
from tf_transformer.inference.translator import Translator
from tf_transformer.models.encoder_only import Classifier, MaskedLanguageModel
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.models.recurrent import RecurrentModel
from tf_transformer.models.transformer import Transformer
from tf_transformer.parsing.linearization import symbols
from tf_transformer.text.codec import Codec
from tf_transformer.text.sequences import shift_right
from tf_transformer.text.tokenizer import BYTES, Tokenizer

SIZES = {"num_layers": 2, "d_model": 8, "d_ff": 9, "num_heads": 2}
TEXTS = ["twenty-one houses", "", "é 日本", "one hundred"]
OUTPUTS = ["ein Haus", "x", "", "zwei hundert"]


@functools.cache
def tokenizer(size=330):
    lines = ["twenty-one houses", "ein Haus und hundert Häuser", "one hundred", "(ä)"] * 5
    return Tokenizer.train(lines, size)


def predictor(kind, model_class, *arguments, **options):
    """A predictor with an untrained model."""
    config = ModelConfig(**SIZES | options)
    model = model_class(tokenizer().vocabulary_size, *arguments, config=config)
    model.build()
    return kind(model, Codec(tokenizer()), DecodeConfig())


@functools.cache
def translator():
    return predictor(Translator, Transformer)


PREDICTORS = {
    "translation": (translator, ["encoder", "decoder", "cross"]),
    "recurrent": (
        lambda: predictor(Translator, RecurrentModel, architecture="luong"),
        ["cross"],
    ),
    "language modelling": (lambda: predictor(TextGenerator, LanguageModel), ["decoder"]),
    "masked words": (lambda: predictor(MaskedPredictor, MaskedLanguageModel), ["encoder"]),
    "labels": (lambda: predictor(LabelPredictor, Classifier, ["a", "b"]), ["encoder"]),
    "linear self-attention": (
        lambda: predictor(Translator, Transformer, attention="linear"),
        ["cross"],
    ),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_every_kind_of_model_has_a_record_whose_rows_sum_to_one(name):
    make, kinds = PREDICTORS[name]
    records = make().attention(TEXTS, OUTPUTS)
    assert [record.text for record in records] == TEXTS
    assert [record.output for record in records] == OUTPUTS
    for record in records:
        assert [each.kind for each in record.maps] == kinds
        for each in record.maps:
            sizes = (len(each.queries.pieces), len(each.keys.pieces))
            assert each.weights.shape[2:] == sizes
            assert each.by_words().shape[2:] == (len(each.queries.words), len(each.keys.words))
            for weights in (each.weights, each.by_words()):
                np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)


def test_the_weights_are_those_of_a_forward_pass_over_the_pair_alone():
    """The records of a batch of all pairs have no trace of padding."""
    model, encode = translator().model, translator().tokenizer.encode
    for text, output, record in zip(
        TEXTS, OUTPUTS, translator().attention(TEXTS, OUTPUTS), strict=True
    ):
        found = model.run((np.array([encode(text)]), shift_right(np.array([encode(output)]))))
        expected = (found.encoder_attention, found.decoder_attention, found.cross_attention)
        for each, layers in zip(record.maps, expected, strict=True):
            np.testing.assert_allclose(
                each.weights, np.stack([np.asarray(layer)[0] for layer in layers]), atol=1e-5
            )


def test_a_decoder_attends_to_the_tokens_before_the_predicted_one():
    decoder = translator().attention(["one"], ["ein Haus"])[0].maps[1]
    assert decoder.keys.words == ["<s>", "ein", "Haus"]
    assert decoder.queries.words == ["ein", "Haus", "</s>"]
    assert not np.triu(decoder.weights, 1).any()


@pytest.mark.parametrize("attention", ["local", "strided"])
def test_sparse_attention_is_shown_by_position(attention):
    """A window as long as the text is full attention; the mask of a step says what another has."""
    sparse = predictor(Translator, Transformer, attention=attention, attention_window=2)
    long = predictor(Translator, Transformer, attention=attention, attention_window=200)
    for each in (sparse, long):
        for weights, own in zip(each.model.weights, translator().model.weights, strict=True):
            weights.assign(own)
    for kind in (0, 1):
        full, whole, some = (
            each.attention(TEXTS, OUTPUTS)[0].maps[kind].weights
            for each in (translator(), long, sparse)
        )
        np.testing.assert_allclose(whole, full, atol=1e-5)
        np.testing.assert_allclose(some.sum(axis=-1), 1, atol=1e-5)
        stack = (sparse.model.encoder, sparse.model.decoder)[kind]
        positions = np.arange(some.shape[-1])
        mask = np.asarray(stack.layers[0].self_attention.visible(positions, positions[None]))[0]
        np.testing.assert_array_equal(some > 0, np.broadcast_to(mask, some.shape))


def test_actions_of_trees_are_words():
    pieces = symbols(["NP", "S"], "lexical_in_order")
    trained = Tokenizer.train(["the dogs bark"] * 9, 330, symbols=pieces)
    model = Transformer(trained.vocabulary_size, ModelConfig(**SIZES))
    model.build()
    parser = Parser(model, Codec(trained), DecodeConfig())
    tree = "(S (NP (DT the) (NNS dogs)) (VBP bark))"
    decoder = parser.attention(["the dogs bark"], [tree])[0].maps[1]
    actions = ["the", "<(NP>", "dogs", "<)>", "<(S>", "bark", "<)>", "</s>"]
    assert decoder.queries.words == actions


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("zwei Häuser", ["zwei", "Häuser"]),
        ("日本 é, (x)", ["日本", "é,", "(x)"]),  # bytes, too
        ("", []),
    ],
)
@pytest.mark.parametrize("size", [330, BYTES])
def test_blanks_separate_words(text, words, size):
    tokens = Tokens.of(tokenizer(size).encode(text), tokenizer(size))
    assert tokens.words == [*words, "</s>"]
    assert tokens.word_of == sorted(tokens.word_of)
    assert max(tokens.word_of) == len(words)


def test_several_blanks_separate_the_same_words():
    """Only a vocabulary of bytes keeps them."""
    tokens = Tokens.of(tokenizer(BYTES).encode("a  b"), tokenizer(BYTES))
    assert [word.strip() for word in tokens.words] == ["a", "b", "</s>"]


def test_joining_adds_over_keys_and_averages_over_queries():
    queries = Tokens(["x1", "x2", "y"], ["x", "y"], [0, 0, 1])
    keys = Tokens(["a", "b1", "b2"], ["a", "b"], [0, 1, 1])
    weights = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(join_pieces(weights, queries, keys), [[0.4, 0.6], [0.0, 1.0]])


def test_json_keeps_records():
    records = translator().attention(TEXTS, OUTPUTS)
    for record, read in zip(records, read_json(write_json(records)), strict=True):
        assert isinstance(read, AttentionRecord)
        assert read[:2] == record[:2]
        for each, other in zip(read.maps, record.maps, strict=True):
            assert each[:3] == other[:3]
            np.testing.assert_allclose(each.weights, other.weights, atol=1e-6)
