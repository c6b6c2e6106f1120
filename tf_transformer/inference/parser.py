"""Constituency parsing: from sentences to trees."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import Hypotheses
from tf_transformer.inference.attention_record import SPECIAL_IDS
from tf_transformer.inference.predictor import Call, SignatureCase
from tf_transformer.inference.search import Search
from tf_transformer.inference.search_graph import SearchGraph
from tf_transformer.inference.text_graph import Endpoints
from tf_transformer.inference.text_predictor import TextPredictor
from tf_transformer.parsing.grammar import TreeGrammar
from tf_transformer.parsing.linearization import WORD_PIECE, Actions, linearize
from tf_transformer.parsing.restore import restore
from tf_transformer.parsing.trees import clean, parse
from tf_transformer.parsing.words import normalize
from tf_transformer.text.codec import Codec
from tf_transformer.text.special_ids import EOS_ID, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer


class ParserGraph(SearchGraph):
    """A parser on string tensors, from sentences to trees. Only Python code scores given trees."""

    optional_inputs = ()  # a part of a tree is no tree

    def __init__(self, search: Search, codec: Codec, *options: Any):
        super().__init__(search, codec, *options)
        self._actions = Actions.of(codec["target"])

    def encode(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        return super().encode(normalize(text))

    def decode(self, hypotheses: Hypotheses, text: tf.Tensor) -> tf.Tensor:
        """The trees (B, N) of hypotheses, in one line each, over the words of `text` (B,)."""
        rows, count = tf.unstack(tf.shape(hypotheses.lengths))
        words = tf.strings.split(normalize(text), " ").to_tensor("")
        trees = restore(
            tf.reshape(hypotheses.ids, (rows * count, -1)),
            tf.repeat(words, count, axis=0),
            self._actions,
        )
        exists = (hypotheses.lengths > 0) | (tf.range(count) == 0)
        return tf.where(exists, tf.reshape(trees, (rows, count)), "")

    def endpoints(self) -> Endpoints:
        """The signatures `serving_default` and `n_best`."""
        endpoints = super().endpoints()
        del endpoints["score"]
        return endpoints


class Parser(TextPredictor):
    """Parses sentences in Penn style, with spaces between words and punctuation.

    A prediction is a tree over the words of its sentence, in one line. Brackets in words become
    -LRB- and so on. All words except punctuation have the tag XX. The first arguments are those of
    `Predictor`.

    Args:
        grammar: search only among valid trees. If false, outputs that are not trees are repaired.

    Example:
        parser = Parser.from_run("runs/parsing")
        parser(["The dog barks ."])[0].text
    """

    graph_type = ParserGraph
    output = "tree"

    def __init__(
        self, model: keras.Model, codec: Codec, config: DecodeConfig, grammar: bool = True
    ):
        self.own_options = {"grammar": grammar}
        self.actions = Actions.of(codec["target"])
        self.symbols = {*SPECIAL_IDS, *self.actions.symbols}
        super().__init__(model, codec, config)

    def search(self, config: DecodeConfig, static_shapes: bool = False) -> Search:
        """The search for a configuration, among valid trees if `grammar` is set."""
        grammar = TreeGrammar(self.actions) if self.own_options["grammar"] else None
        return Search(
            self.model, config, self.excluded_ids, static_shapes=static_shapes, grammar=grammar
        )

    def _pairs(self, call: Call) -> tuple[list[np.ndarray], list[np.ndarray], list[bool]]:
        """Ids of sentences, and ids of the actions of trees; Python code reads the trees."""
        sources, _, cut = super()._pairs(call._replace(predictions=[""] * len(call.texts)))
        trees = [encode_tree(text, self.codec["target"], self.actions) for text in call.predictions]
        longest = self.max_source_length
        targets = [np.array([*ids[:-1][: longest - 1], EOS_ID], np.int32) for ids in trees]
        return sources, targets, [a or len(b) > longest for a, b in zip(cut, trees, strict=True)]

    def signatures(self, texts: Sequence[str]) -> dict[str, SignatureCase]:
        """The signatures `serving_default` and `n_best`; see `TextPredictor.signatures`."""
        cases = super().signatures(texts)
        return {name: case for name, case in cases.items() if name != "score"}


def encode_tree(text: str, tokenizer: Tokenizer, actions: Actions) -> list[int]:
    """The ids of a tree's actions, with the end-of-sentence id. "" gives this id alone.

    An action with a label outside the vocabulary becomes the unknown id. So does a word that
    normalization deletes. A text that is not a tree is an `InputError`.
    """
    if not text.strip():
        return [EOS_ID]
    tree = clean(parse(text, "a given tree"), "a given tree")
    word_ids = actions.word_actions[tokenizer.encode(" ".join(tree.leaves()))]
    words = iter(word_ids[word_ids > 0].tolist())
    return [
        *(
            next(words, UNK_ID) if name == WORD_PIECE else tokenizer.piece_to_id_or_unknown(name)
            for name in linearize(tree, actions.in_order)
        ),
        EOS_ID,
    ]
