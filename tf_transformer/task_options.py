"""The options of the tasks of this package: each task has a dataclass of its own.

They stand apart from the tasks, so that a command reads its options without importing TensorFlow.
A task of a user names its class itself, as `Task.Options`.
"""

from dataclasses import dataclass
from typing import Literal

from tf_transformer.config import TaskOptions
from tf_transformer.errors import InputError

FEWEST_RESAMPLES = 40  # a limit of 95 percent leaves out one sample of 40 on either side

# The tokenizers of sacreBLEU, for BLEU.
BleuTokenizer = Literal[
    "13a", "intl", "char", "none", "zh", "ja-mecab", "ko-mecab", "spm", "flores101", "flores200"
]


@dataclass(frozen=True)
class TranslationOptions(TaskOptions):
    """How translations are scored, in validation and by evaluate.py, and which texts are copied.

    Attributes:
        bleu_tokenize: sacreBLEU's tokenizer for BLEU: zh for Chinese, ja-mecab for Japanese,
            ko-mecab for Korean, char or flores200 for other languages without spaces. With none,
            the text is tokenised, with spaces between the tokens.
        lowercase: whether upper and lower case are equal, in all scores.
        normalize: whether the Unicode form and the spaces of all texts are normalized before they
            are scored. With the tokenizer none, spaces stay as they are.
        resamples: samples of the bootstrap, for the 95% confidence interval of BLEU and the test
            of the difference to the baseline of evaluate.py; 0: neither.
        copy_without_letters: copy a text without letters, such as 17 or ***, with the score 0.
    """

    name: str = "translation"
    bleu_tokenize: BleuTokenizer = "13a"
    lowercase: bool = False
    normalize: bool = True
    resamples: int = 0
    copy_without_letters: bool = False

    of_search = frozenset({"copy_without_letters"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resamples and self.resamples < FEWEST_RESAMPLES:
            raise InputError(
                f"task.resamples must be 0 or at least {FEWEST_RESAMPLES}, because an interval of "
                f"95% leaves out one sample of {FEWEST_RESAMPLES} on either side; got "
                f"{self.resamples}."
            )


@dataclass(frozen=True)
class ParsingOptions(TaskOptions):
    """How trees are written as sequences, and searched for.

    Attributes:
        linearization: the form of trees in which the model writes them: brackets as in the paper,
            or in_order shift-reduce actions; both also with the first pieces of words.
        grammar: search among valid trees only; without it, output that is not a tree is repaired.
    """

    name: str = "parsing"
    linearization: Literal["brackets", "in_order", "lexical_brackets", "lexical_in_order"] = (
        "lexical_in_order"
    )
    grammar: bool = True

    of_search = frozenset({"grammar"})


@dataclass(frozen=True)
class ClassificationOptions(TaskOptions):
    """The columns of texts and labels in data.train_file, and the labels.

    Attributes:
        text_columns: the one or two columns that hold texts: names in the first line of the file;
            or numbers from 1 on, if label_column is one, too. Then the first line is an example.
        label_column: the column that holds the label.
        label_separator: separates the labels of a text that may have several; empty: each text has
            exactly one.
        labels: names of the labels in the order of the model's outputs; when empty, the labels of
            the file in alphabetical order.
    """

    name: str = "classification"
    text_columns: tuple[str, ...] = ("text",)
    label_column: str = "label"
    label_separator: str = ""
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.text_columns) not in (1, 2):
            raise InputError(
                f"task.text_columns must be one or two columns, got {len(self.text_columns)}."
            )


@dataclass(frozen=True)
class LanguageModelingOptions(TaskOptions):
    """Language modelling has no options of its own."""

    name: str = "language_modeling"


@dataclass(frozen=True)
class MaskedLanguageModelingOptions(TaskOptions):
    """Masked language modelling has no options of its own."""

    name: str = "masked_language_modeling"
