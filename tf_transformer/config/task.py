"""The options of the tasks: one dataclass per task.

This module lets a command read the options without an import of TensorFlow. A task outside this
package names its subclass of `TaskOptions`, with the options as fields, as `Task.Options`.
"""

from dataclasses import dataclass
from typing import Literal

from tf_transformer.config.option import Check, Effect, check, inherited, same, search

FEWEST_RESAMPLES = 40  # a 95% interval leaves out one of 40 samples at either end
enough = Check(
    lambda count: count == 0 or count >= FEWEST_RESAMPLES,
    f"be 0 or at least {FEWEST_RESAMPLES}",
    f": a 95% interval leaves out one of {FEWEST_RESAMPLES} samples at either end",
)
one_or_two = Check(lambda columns: len(columns) in (1, 2), "be one or two columns")

# The tokenizers of sacreBLEU, for BLEU.
BleuTokenizer = Literal[
    "13a", "intl", "char", "none", "zh", "ja-mecab", "ko-mecab", "spm", "flores101", "flores200"
]


@dataclass(frozen=True)
class TaskOptions:
    """A task without options of its own.

    Attributes:
        name: a registered task, or module:attribute.
    """

    name: str = inherited("")

    def __post_init__(self) -> None:
        check(self, "task")


@dataclass(frozen=True)
class TranslationOptions(TaskOptions):
    """Scores of translations, in validation and by evaluate.py, and texts of a special form.

    Attributes:
        bleu_tokenize: sacreBLEU's tokenizer for BLEU. zh: Chinese. ja-mecab: Japanese. ko-mecab:
            Korean. char or flores200: other languages without spaces. none: text that is tokenised
            already, with spaces between the tokens.
        lowercase: ignore case in all scores.
        normalize: normalize the Unicode form and the spaces of all texts before they are scored.
            With bleu_tokenize none, spaces stay as they are.
        resamples: samples of the bootstrap for the 95% confidence interval of BLEU, and trials of
            approximate randomization for p_value, which evaluate.py gives with a baseline. 0:
            neither. evaluate.py has 1,000 unless a number is given.
        copy_without_letters: copy a text without letters, such as 17 or ***, with score 0.
        lower_capitals: translate a text in capitals, or With A Capital In Each Of Four Words or
            more, as a usual sentence, and put its translation in the same case. Copy one word of
            two or three capitals, such as EU, with score 0.
    """

    name: str = inherited("translation")
    bleu_tokenize: BleuTokenizer = inherited("13a")
    lowercase: bool = inherited(False)
    normalize: bool = inherited(True)
    resamples: int = inherited(0, enough)
    copy_without_letters: bool = search(False, off=False, formats=("ctranslate2",))
    lower_capitals: bool = search(False, off=False, formats=("ctranslate2",))


@dataclass(frozen=True)
class ParsingOptions(TaskOptions):
    """The form of trees as sequences, and the search for them.

    Attributes:
        linearization: form in which the model writes trees. brackets: as in the paper. in_order:
            in-order shift-reduce actions. lexical_brackets and lexical_in_order: the same, where
            the first piece of each word stands for the word.
        grammar: search only among valid trees. If false, an output that is not a tree is repaired.
    """

    name: str = inherited("parsing")
    linearization: Literal["brackets", "in_order", "lexical_brackets", "lexical_in_order"] = same(
        "lexical_in_order"
    )
    grammar: bool = search(True, off=Effect.TEXTS)


@dataclass(frozen=True)
class ClassificationOptions(TaskOptions):
    """The columns of texts and labels in data.train_file, and the labels.

    Attributes:
        text_columns: one or two columns with texts: names from the first line of the file, or
            numbers from 1. With numbers, label_column is a number, too, and the first line is an
            example.
        label_column: column with the label.
        label_separator: text between the labels of an example with several labels. Empty: each
            example has exactly one label.
        labels: names of the labels in the order of the model's outputs. Empty: the labels of the
            file in alphabetical order.
    """

    name: str = inherited("classification")
    text_columns: tuple[str, ...] = inherited(("text",), one_or_two)
    label_column: str = inherited("label")
    label_separator: str = inherited("")
    labels: tuple[str, ...] = inherited(())
