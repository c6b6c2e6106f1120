"""Vocabularies of other programs: ids against SentencePiece and the table of ids themselves.

The op of tensorflow-text runs SentencePiece, because the divisions of texts by the package depend
on its version.
"""

import json
import os
import pathlib
import random

import pytest
import tensorflow as tf
import tensorflow_text as tf_text
from hypothesis import assume, given
from hypothesis import strategies as st

from tf_transformer.imports.vocabulary import Vocabulary
from tf_transformer.text.codec import Codec
from tf_transformer.text.graph_tokenizer import as_strings, clean
from tf_transformer.text.normalization import is_blank
from tf_transformer.text.special_ids import BLANK, EOS_ID
from tf_transformer.text.target_tag import TAG

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "marian"
OPUS = ("en-mg", "tc-big-en-pt")


class Pair:
    """A tokenizer for a vocabulary, and what it must compute."""

    def __init__(self, table, spm):
        self.table = json.loads(table.read_text("utf-8"))
        model = spm.read_bytes()
        pad = self.table["<pad>"]
        self.vocabulary = Vocabulary.of(self.table, len(self.table), pad, pad, str(table))
        self.tokenizer = self.vocabulary.tokenizer(model, str(spm))
        self.model = model

    def ids(self, text):
        """Our ids as ids of the other program."""
        return self.vocabulary.order[self.tokenizer.encode(text)].tolist()

    def original(self):
        """The original SentencePiece model; new for each test, because seeds clear the op's."""
        return tf_text.SentencepieceTokenizer(model=self.model, out_type=tf.string)

    def expected(self, text, original):
        """The pieces of the original SentencePiece model, looked up in the table of ids."""
        tag = TAG.match(text)
        first = [self.table[tag[0]]] if tag and tag[0] in self.table else []
        pieces = original.tokenize(text[tag.end() :] if first else text).numpy()
        ids = [self.table.get(piece.decode(), self.table["<unk>"]) for piece in pieces]
        return [*first, *ids, self.table["</s>"]]


SMALL = [
    Pair(FIXTURES / "shared" / "vocab.json", FIXTURES / "source.spm"),
    Pair(FIXTURES / "shared" / "vocab.json", FIXTURES / "target.spm"),
    Pair(FIXTURES / "separate" / "target_vocab.json", FIXTURES / "target.spm"),
]
PIECES = st.sampled_from([*SMALL[0].table, ">>deu<< ", ">>", " ", "\u2581", "日", "½", "é", "k"])
TEXTS = st.lists(PIECES | st.characters(exclude_categories=["Cs"]), max_size=12).map("".join)


@pytest.mark.parametrize("pair", SMALL, ids=["source", "target", "separate"])
@given(text=TEXTS)
def test_a_text_has_the_pieces_of_the_original_model(pair, text):
    assume(not is_blank(text) and "\0" not in text)
    assert pair.ids(text) == pair.expected(text, pair.original())


@pytest.mark.parametrize("pair", SMALL, ids=["source", "target", "separate"])
@given(st.data())
def test_ids_are_decoded_as_the_original_decodes_their_pieces(pair, data):
    known = [piece for piece in pair.table if not piece.startswith(("<", ">>"))]
    pieces = data.draw(st.lists(st.sampled_from(known)))
    place = {theirs: ours for ours, theirs in enumerate(pair.vocabulary.order.tolist())}
    ids = [place[pair.table[piece]] for piece in pieces]
    text = (
        pair.original()
        .detokenize(tf.constant(pieces, tf.string))
        .numpy()
        .decode()
        .replace(BLANK, " ")
    )
    assert pair.tokenizer.decode(ids).strip(" ") == text.strip(" ")


def lines_of_several_scripts(data, count=2_000):
    """Lines of the corpora in a folder, some of them with a tag or odd characters."""
    draw = random.Random(1)
    files = sorted(data.glob("wmt_newstest/newstest20*.*"))
    files += [*data.glob("small_parallel_enja/test.ja"), *data.glob("iwslt15_en_vi/*.vi")]
    found = [line for path in files for line in path.read_text("utf-8").split("\n")[:400]]
    lines = draw.sample([line for line in found if not is_blank(line)], count)
    odd = [
        "½ ﬁ e\u0301",
        "a\u200bb\u00ad",
        "日本",
        "\u2581 x",
        "🙂 ok",
        "שלום",
        ">>por<<",
        "\t a  b ",
    ]
    return [
        line if i % 4 else f"{draw.choice(['>>por<< ', '>>xyz<< ', ''])}{draw.choice(odd)} {line}"
        for i, line in enumerate(lines)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", OPUS)
@pytest.mark.parametrize("side", ["source", "target"])
def test_ids_of_published_models_in_python_and_in_the_graph(name, side):
    data = pathlib.Path(os.environ.get("TF_TRANSFORMER_DATA") or "none")
    folder = data / "opus_mt" / name
    if not folder.is_dir():
        pytest.skip(f"TF_TRANSFORMER_DATA names no folder that holds opus_mt/{name}")
    pair = Pair(folder / "vocab.json", folder / f"{side}.spm")
    lines = lines_of_several_scripts(data)
    original = pair.original()
    assert [pair.ids(line) for line in lines] == [pair.expected(x, original) for x in lines]
    graph = Codec(pair.tokenizer).in_graph()[""]
    in_graph = graph.encode(clean(as_strings(lines))).to_list()
    assert [[*row, EOS_ID] for row in in_graph] == pair.tokenizer.encode_batch(lines)
