"""Constituency parsing: sentences in, trees out."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.decoding import Hypotheses
from tf_transformer.errors import InputError
from tf_transformer.inference.attention_record import SPECIAL_IDS
from tf_transformer.inference.predictor import Prediction, Progress, SignatureCase, no_progress
from tf_transformer.inference.search import Search
from tf_transformer.inference.text_graph import ServingGraph
from tf_transformer.inference.text_predictor import TextPredictor
from tf_transformer.inference.translator import build_model
from tf_transformer.parsing.grammar import TreeGrammar
from tf_transformer.parsing.linearization import WORD_PIECE, Actions, linearize
from tf_transformer.parsing.restore import restore, restore_in_graph
from tf_transformer.parsing.trees import clean, parse
from tf_transformer.parsing.words import normalize, normalize_in_graph
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.weights import load_model
from tf_transformer.text.special_ids import EOS_ID, UNK_ID
from tf_transformer.text.tokenizer import Tokenizer


class Parser(TextPredictor):
    """Parses sentences in Penn style: blanks between words and punctuation.

    Each tree is one line, over the words of its sentence. Brackets in words become -LRB- and so on;
    words other than punctuation have the tag XX.

    Args:
        model: the built model.
        tokenizer: its tokenizer, with the actions of trees.
        config: how to search.
        grammar: whether the search finds valid trees only; without it, output is repaired.

    Raises:
        InputError: when the configuration names a piece that the vocabulary does not have.

    Example:
        parser = Parser.from_run("runs/parsing")
        parser(["The dog barks ."])[0].text
    """

    output = "tree"

    def __init__(
        self, model: keras.Model, tokenizer: Tokenizer, config: DecodeConfig, grammar: bool = True
    ):
        self.own_options = {"grammar": grammar}
        self.actions = Actions.of(tokenizer)
        self.symbols = {*SPECIAL_IDS, *self.actions.symbols}
        super().__init__(model, tokenizer, config)

    @classmethod
    def from_run(
        cls,
        run_dir: str | os.PathLike,
        dtype: str = "float32",
        task_options: Mapping[str, Any] | None = None,
        **decode_options: Any,
    ) -> "Parser":
        """Loads a run; see `Translator.from_run`."""
        task: Any = RunFolder(run_dir).load_config(task_options).task
        loaded = load_model(run_dir, build_model, **decode_options)
        return cls(*loaded, task.grammar).with_dtype(dtype)

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(normalize(text))

    def encode_target(self, text: str) -> list[int]:
        return encode_tree(text, self.tokenizer, self.actions)

    def decode(self, ids: Sequence[int], text: str) -> str:
        return restore(ids, normalize(text).split(), self.actions)

    def search(self, config: DecodeConfig, static_shapes: bool = False) -> Search:
        grammar = TreeGrammar(self.actions) if self.own_options["grammar"] else None
        return Search(self.model, config, self.excluded_ids, static_shapes, grammar)

    def graph(self, jit_compile: bool) -> ServingGraph:
        search = self.search(self.config, static_shapes=jit_compile)
        length = self.max_source_length
        return _ParserGraph(search, self.tokenizer, length, jit_compile, self.output)

    def n_best(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        progress: Progress = no_progress,
    ) -> list[list[Prediction]]:
        """As that of `TextPredictor`, without prefixes: half a tree is none.

        Raises:
            InputError: for prefixes.
        """
        if prefixes is not None:
            raise InputError("trees have no prefixes: leave out --prefixes.")
        return super().n_best(texts, progress=progress)

    def signatures(self, texts: Sequence[str]) -> dict[str, SignatureCase]:
        cases = super().signatures(texts)
        return {name: case for name, case in cases.items() if name != "score"}


class _ParserGraph(ServingGraph):
    """A parser as one graph: sentences to trees. Given trees are scored in Python only."""

    def __init__(self, search: Search, tokenizer: Tokenizer, *options: Any):
        super().__init__(search, tokenizer, *options)
        self._actions = Actions.of(tokenizer)

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        return super().encode(normalize_in_graph(text))

    def decode(self, found: Hypotheses, text: tf.Tensor) -> tf.Tensor:
        rows, hypotheses = tf.unstack(tf.shape(found.lengths))
        words = tf.strings.split(normalize_in_graph(text), " ").to_tensor("")
        trees = restore_in_graph(
            tf.reshape(found.ids, (rows * hypotheses, -1)),
            tf.repeat(words, hypotheses, axis=0),
            self._actions,
        )
        exists = (found.lengths > 0) | (tf.range(hypotheses) == 0)
        return tf.where(exists, tf.reshape(trees, (rows, hypotheses)), "")

    def endpoints(self):
        endpoints = super().endpoints()
        del endpoints["score"]
        return endpoints


def encode_tree(text: str, tokenizer: Tokenizer, actions: Actions) -> list[int]:
    """The ids of a tree's actions with the end-of-sentence id; that of "" alone.

    Actions of labels that the vocabulary does not have become the unknown id, as do words of which
    normalization leaves nothing.
    """
    if not text.strip():
        return [EOS_ID]
    tree = clean(parse(text, "a given tree"), "a given tree")
    found = actions.word_actions[tokenizer.encode(" ".join(tree.leaves()))]
    words = iter(found[found > 0].tolist())
    return [
        *(
            next(words, UNK_ID) if name == WORD_PIECE else tokenizer.piece_to_id_or_unknown(name)
            for name in linearize(tree, actions.in_order)
        ),
        EOS_ID,
    ]
