"""Strings to strings: order, emptiness, batches, and what a search is allowed."""

import numpy as np
import pytest
from keras import ops

from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.layers import PAD_ID
from tf_transformer.model import Transformer
from tf_transformer.tokenizer import EOS_ID
from tf_transformer.translator import Translator, search

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


def test_the_order_and_number_of_sentences_is_kept(translator):
    alone = [translator([sentence])[0] for sentence in SENTENCES]
    together = translator(SENTENCES)
    assert [t.text for t in together] == [t.text for t in alone]
    np.testing.assert_allclose([t.score for t in together], [t.score for t in alone], atol=1e-4)


def test_the_batch_size_changes_nothing(run, translator):
    other = Translator.from_run(run, batch_size=1)
    assert [t.text for t in other(SENTENCES)] == [t.text for t in translator(SENTENCES)]


def test_empty_and_blank_lines_translate_to_nothing(translator):
    assert [translator([text])[0] for text in ("", "  ")] == [("", 0.0)] * 2
    assert translator([]) == []


def test_a_long_sentence_is_cut_at_the_documented_length(run):
    short = Translator.from_run(run, max_source_length=5)
    assert short(["one " * 50])[0] == short(["one " * 90])[0]


def test_progress_counts_sentences_with_text(translator):
    counts = []
    translator(SENTENCES, progress=counts.append)
    assert sum(counts) == len(SENTENCES) - 2


class NeverEnding(Transformer):
    """Gives the end token no chance, so that only the limit ends a translation."""

    def decode_step(self, ids, cache, index, memory):
        logits, cache = super().decode_step(ids, cache, index, memory)
        return logits - 1e4 * ops.one_hot(EOS_ID, self.vocabulary_size), cache


@pytest.mark.parametrize("beam_size", [1, 2])
@pytest.mark.parametrize(("position", "limits"), [("sinusoidal", [54, 52]), ("learned", [40, 40])])
def test_translations_have_at_most_fifty_tokens_more_than_the_source(beam_size, position, limits):
    """Section 6.1, for each sentence by itself; a learned table may end before that."""
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 2}
    model = NeverEnding(11, ModelConfig(**sizes, position=position, max_length=40))
    model.build()
    source = np.array([[5, 6, 7, EOS_ID], [5, EOS_ID, PAD_ID, PAD_ID]], np.int32)
    found = search(model, source, DecodeConfig(beam_size=beam_size, max_extra_length=50))
    assert np.asarray(found.lengths)[:, 0].tolist() == limits
