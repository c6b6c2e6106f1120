"""The options of the tasks: one dataclass per task.

This module lets a command read the options without an import of TensorFlow. A task outside this
package names its class of options as `Task.Options`.
"""

from dataclasses import dataclass
from typing import Literal

from tf_transformer.config import TaskOptions
from tf_transformer.errors import InputError
from tf_transformer.option import inherited, same

FEWEST_RESAMPLES = 40  # a 95% interval leaves out one of 40 samples at either end

# The tokenizers of sacreBLEU, for BLEU.
BleuTokenizer = Literal[
    "13a", "intl", "char", "none", "zh", "ja-mecab", "ko-mecab", "spm", "flores101", "flores200"
]


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
            approximate randomization for p_value, which evaluate.py gives with a baseline; 0:
            neither.
        copy_without_letters: copy a text without letters, such as 17 or ***, with score 0.
        lower_capitals: translate a text in capitals, or With A Capital In Each Of Four Words or
            more, as a usual sentence, and put its translation in the same case. Copy one word of
            two or three capitals, such as EU, with score 0.
    """

    name: str = inherited("translation")
    bleu_tokenize: BleuTokenizer = inherited("13a")
    lowercase: bool = inherited(False)
    normalize: bool = inherited(True)
    resamples: int = inherited(0)
    copy_without_letters: bool = inherited(False)
    lower_capitals: bool = inherited(False)

    of_search = frozenset({"copy_without_letters", "lower_capitals"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resamples and self.resamples < FEWEST_RESAMPLES:
            raise InputError(
                f"task.resamples must be 0 or at least {FEWEST_RESAMPLES}, got {self.resamples}: a "
                f"95% interval leaves out one of {FEWEST_RESAMPLES} samples at either end."
            )


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
    grammar: bool = inherited(True)

    of_search = frozenset({"grammar"})


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
    text_columns: tuple[str, ...] = inherited(("text",))
    label_column: str = inherited("label")
    label_separator: str = inherited("")
    labels: tuple[str, ...] = inherited(())

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.text_columns) not in (1, 2):
            raise InputError(
                f"task.text_columns must be one or two columns, got {len(self.text_columns)}."
            )


@dataclass(frozen=True)
class LanguageModelingOptions(TaskOptions):
    """Language modelling has no options of its own."""

    name: str = inherited("language_modeling")


@dataclass(frozen=True)
class MaskedLanguageModelingOptions(TaskOptions):
    """Masked language modelling has no options of its own."""

    name: str = inherited("masked_language_modeling")
