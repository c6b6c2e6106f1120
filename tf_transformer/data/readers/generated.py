"""The generated corpus: numbers and dates in words, with exact answers.

It has compositional language (English *twenty-one thousand*, German *einundzwanzigtausend*) in any
two languages that `num2words` and `babel` support. It needs no download. The two packages are the
extra `generated`. Functions import them, so other corpora do not need them.
"""

import datetime
import functools
import re
from collections.abc import Iterator, Sequence

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.config.data import GENERATED_PAIRS
from tf_transformer.data.examples import Examples
from tf_transformer.data.readers.rows import Rows
from tf_transformer.errors import InputError

NUMBERS = 1_000_000  # 0 … 999,999
FIRST_DAY = datetime.date(1900, 1, 1)
DAYS = 73_049  # up to 2099-12-31
TEST_PAIRS = 1000  # size of the test set, which shares no pair with training and validation
SPLITS = ("train", "validation", "test")

# Languages that say first, second, … for the days of a month. Other languages say one, two, ….
_ORDINAL_DAYS = {"en", "de", "da", "fi", "is", "lt", "lv", "nb", "no", "sv"}
_ORDINAL_FIRST = {"fr", "it", "pt"}  # premier janvier, deux janvier


def require_packages() -> None:
    """Raises an `InputError` when a package of the extra `generated` is missing."""
    try:
        import babel  # noqa: F401
        import num2words  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"the generated corpus needs the package {error.name}: pip install "
            "'tf_transformer[generated]', or pip install '.[generated]' in the repository. Or "
            "give text of your own, for example --data.train_source and --data.train_target."
        ) from error


def read_generated(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens a split of the generated corpus: train (the default), validation or test."""
    split = corpus.split or "train"
    if split not in SPLITS:
        raise InputError(
            f"the generated corpus has no split {split!r}; expected one of {', '.join(SPLITS)}."
        )
    examples = generated_splits(data)[SPLITS.index(split)]
    texts = zip(examples["source"], examples["target"], strict=True)
    rows = [(n, (source.encode(), target.encode())) for n, (source, target) in enumerate(texts, 1)]
    name = f"the generated corpus ({split})"
    return Rows((name, name), lambda _: rows, examples.stream().identify)


def training_pairs(config: DataConfig) -> int:
    """The number of pairs of the generated training corpus."""
    return max((corpus.pairs for corpus in config.corpora), default=0) or GENERATED_PAIRS


@functools.lru_cache(maxsize=1)
def generated_splits(config: DataConfig) -> tuple[Examples, Examples, Examples]:
    """Makes the corpus as (train, valid, test). No two pairs have the same meaning."""
    held_out = min(config.held_out, TEST_PAIRS)
    total = training_pairs(config) + held_out + TEST_PAIRS
    # The seed is constant: evaluate.py makes the corpus again and needs the same test pairs.
    corpus = generate(total, config.source_language, config.target_language, seed=0)
    return (
        corpus.take(range(TEST_PAIRS + held_out, total)),
        corpus.take(range(TEST_PAIRS, TEST_PAIRS + held_out)),
        corpus.take(range(TEST_PAIRS)),
    )


def number_in_words(number: int, language: str) -> str:
    """Writes a number in words.

    Example:
        >>> number_in_words(321, "en")
        'three hundred and twenty-one'
    """
    require_packages()
    from num2words import num2words

    return num2words(number, lang=language)


def date_in_words(date: datetime.date, language: str) -> str:
    """Writes a date in words, in the order of the language.

    Example:
        >>> date_in_words(datetime.date(1984, 3, 21), "en")
        'March twenty-first, nineteen eighty-four'
    """
    return "".join(text for text, _ in date_parts(date, language))


def date_parts(date: datetime.date, language: str) -> list[tuple[str, str]]:
    """Divides the text of a date into parts with names: year, month, day, or "" for other text."""
    require_packages()
    from babel.dates import format_date, get_month_names
    from num2words import num2words

    month = get_month_names("wide", locale=language)[date.month]
    text = format_date(date, format="long", locale=language)

    def part(text: str) -> tuple[str, str]:
        if text == month:
            return text, "month"
        number = re.fullmatch(r"(\d+)\.?", text)
        if number is None:
            return text, ""
        if int(number[1]) == date.year:
            return num2words(date.year, lang=language, to="year"), "year"
        is_ordinal = language in _ORDINAL_DAYS or (date.day == 1 and language in _ORDINAL_FIRST)
        return num2words(date.day, lang=language, to="ordinal" if is_ordinal else "cardinal"), "day"

    return [part(text) for text in re.split(rf"(\d+\.?|{re.escape(month)})", text)]


def generate(count: int, source_language: str, target_language: str, seed: int) -> Examples:
    """Makes distinct random pairs: four numbers for each date.

    Small numbers are more frequent than large ones, as in speech. With a uniform distribution,
    99.9% would have four digits or more, and a model would not learn *twenty-one*.

    Args:
        count: number of pairs.
        source_language: a language code that num2words and babel support.
        target_language: likewise.
        seed: seed of the pairs and their order.

    Raises:
        InputError: if a language is unknown, or if the corpus has fewer pairs.

    Example:
        >>> generate(3, "en", "de", seed=1)["target"]  # three of a million
        [...]
    """
    require_packages()
    from babel import UnknownLocaleError

    for language in (source_language, target_language):
        try:
            date_in_words(FIRST_DAY, language)
        except (NotImplementedError, UnknownLocaleError, ValueError) as error:
            raise InputError(
                f"the generated corpus has no language {language!r}: {error}. Use a language code "
                "that num2words and babel both support, like en, de or fr."
            ) from error
    largest = min(NUMBERS * 5 // 4, DAYS * 5)
    if not 0 < count <= largest:
        raise InputError(
            f"the generated corpus has 1 to {largest} pairs, asked for {count}. Give another "
            "number as data.generated_pairs."
        )
    drawn = list(meanings(count, seed))
    sides = {"source": source_language, "target": target_language}
    return Examples(
        {side: [_in_words(x, language) for x in drawn] for side, language in sides.items()}
    )


def meanings(count: int, seed: int) -> Iterator[int | datetime.date]:
    """The numbers and dates of the pairs of `generate`, in their order."""
    import numpy as np  # --help does without

    rng = np.random.default_rng(seed)
    dates = count // 5
    likelihood = 1.0 / (1000.0 + np.arange(NUMBERS))
    likelihood /= likelihood.sum()
    numbers = rng.choice(NUMBERS, count - dates, replace=False, p=likelihood).tolist()
    days = map(datetime.timedelta, rng.choice(DAYS, dates, replace=False).tolist())
    drawn = [*numbers, *(FIRST_DAY + day for day in days)]
    return (drawn[i] for i in rng.permutation(count))


def _in_words(meaning: int | datetime.date, language: str) -> str:
    if isinstance(meaning, datetime.date):
        return date_in_words(meaning, language)
    return number_in_words(meaning, language)
