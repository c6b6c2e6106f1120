"""English constituency parsing, with labelled bracket F1 (paper section 6.3)."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import keras

from tf_transformer.config import Config, DecodeConfig
from tf_transformer.config.task import ParsingOptions
from tf_transformer.data.corpora import in_folder, own_file
from tf_transformer.data.examples import ExampleStream, Texts
from tf_transformer.data.readers.rows import content
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts
from tf_transformer.inference.parser import Parser, encode_tree
from tf_transformer.parsing.bracket_scores import score_trees
from tf_transformer.parsing.linearization import Actions, symbols
from tf_transformer.parsing.trees import one_line, parse, read_trees, split_trees, tree_files
from tf_transformer.tasks.encoder_decoder import EncoderDecoderTask
from tf_transformer.tasks.metrics import Metric, References, Scores, Strings
from tf_transformer.tasks.task import FieldTexts, Rows, Splits, TestSet
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import Tokenizer

_LABEL = re.compile(r"\((\S+) (?=\()")  # finds labels in a tree as one line


@dataclass(frozen=True)
class BracketScore:
    """A score of labelled brackets. `score` computes all of them at once; see `score_trees`."""

    name: str  # f1, precision, recall or complete_match
    lower_is_better = False

    def score(self, inputs: Strings, predictions: Strings, references: References) -> Scores:
        return dict(score_trees(predictions, references[0]))


class Parsing(EncoderDecoderTask):
    """Parses sentences.

    Attributes:
        fields: the words of a sentence, and its cleaned tree as one line.
        labels: the tree, whose actions the model predicts.
        metrics: scores of labelled brackets, 0 to 100.
    """

    Options = ParsingOptions
    fields: tuple[str, ...] = ("sentence", "tree")
    labels: str = "tree"
    metrics: tuple[Metric, ...] = tuple(
        map(BracketScore, ("f1", "precision", "recall", "complete_match"))
    )
    summary = (
        "{sentences:,} sentences: F1 {f1:.2f}, precision {precision:.2f}, recall {recall:.2f}, "
        "complete match {complete_match:.1f}%; {errors} with other words, {skipped} without "
        "a tree"
    )

    def load_splits(self, config: Config) -> Splits:
        """The trees of bracket files; see `tree_files` for the files of an option."""
        data = in_folder(config.data)
        if not (train_file := own_file(data.corpora)):
            raise InputError(
                "parsing learns from trees. Give data.train_file: bracket files, or folders of "
                "bracket files."
            )
        train = stream_trees(train_file)
        if valid_file := own_file(data.valid_corpora):
            return Splits(train, stream_trees(valid_file).read())
        return Splits(*train.hold_out(data.held_out, config.train.seed))

    def load_test(self, config: Config, source: str, reference: str) -> TestSet:
        """The trees of `reference`, and their sentences."""
        if source or not reference:
            raise InputError(
                "give --reference, bracket files, and no --source: the trees contain the sentences."
            )
        return self.test_set(stream_trees(reference).read())

    def read_outputs(self, hypotheses: str, reference: str) -> tuple[list[str], list[list[str]]]:
        """The trees of two bracket files. With one line per reference, a line may be empty."""
        references = stream_trees(reference).read()["tree"]
        (lines,) = read_texts(hypotheses)
        if len(lines) != len(references):
            lines = [text for text, _ in split_trees(lines, hypotheses)]
        for number, line in enumerate(lines, 1):
            if line.strip():
                parse(line, f"{hypotheses}, tree {number:,}")
        return lines, [references]

    def train_codec(self, stream: ExampleStream, config: Config) -> Codec:
        """A codec with pieces of words, and a piece for each action of trees."""
        tokenizer = Tokenizer.train(
            (sentence for sentence, _ in stream),
            symbols=symbols(_labels(stream), cast(ParsingOptions, config.task).linearization),
            **config.data.tokenizer_options,
        )
        return Codec(tokenizer)

    def reuse_codec(self, codec: Codec, stream: ExampleStream, config: Config) -> Codec:
        tokenizer = super().reuse_codec(codec, stream, config)["tree"]
        labels = sorted(_labels(stream) - set(Actions.of(tokenizer).labels))
        if labels:
            raise InputError(
                "the run of train.init_from does not know these labels of the training trees: "
                f"{' '.join(labels)}. Remove the trees, or train without train.init_from."
            )
        return codec

    def encode(self, texts: FieldTexts, codec: Codec) -> Rows:
        """The pieces of sentences and the actions of trees, with the end-of-sentence id."""
        actions = Actions.of(codec["tree"])
        return {
            "sentence": codec.encode_batch("sentence", texts["sentence"]),
            "tree": [encode_tree(tree, codec["tree"], actions) for tree in texts["tree"]],
        }

    def predictor(self, model: keras.Model, codec: Codec, decode: DecodeConfig) -> Parser:
        return Parser(model, codec, decode, self.options.grammar)

    def metadata(self, config: Config) -> dict[str, dict[str, Any]]:
        return {"parsing": {"linearization": cast(ParsingOptions, config.task).linearization}}


PARSING = Parsing()


def _labels(stream: ExampleStream) -> set[str]:
    """The labels of all brackets in the trees."""
    return {label for _, tree in stream for label in _LABEL.findall(tree)}


def stream_trees(paths: str) -> ExampleStream:
    """The sentences and trees of the bracket files of an option; see `tree_files`."""

    def start(skipped: Counter[str]) -> Iterator[Texts]:
        for tree, _ in read_trees(paths):
            yield " ".join(tree.leaves()), one_line(tree)

    return ExampleStream(PARSING.fields, start, lambda: f"trees {content(*tree_files(paths))}")
