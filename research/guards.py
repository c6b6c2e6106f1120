"""How far a user can trust a translation: scores beside chrF, and faults that notices find.

    python -m research.guards --runs pretrained/a,pretrained/b --valid a.en:a.de,b.en:b.de \
        --test c.en:c.de,d.en:d.de --human e.en:e.de

The first table has correlations of scores with chrF of each sentence. The calibrated score is a
linear function of the others, fitted to chrF on the validation pairs. The second table has faults
that a program puts into the translations: how many the notices find, and how often a translation
as it is has the notice.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from tf_transformer.commands import command_line
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.notices_graph import OF_PAIRS, PairNotices
from tf_transformer.inference.predictor import Prediction
from tf_transformer.inference.text_graph import STRINGS, Traced
from tf_transformer.text.faults import numbers, scripts_of
from tf_transformer.text.graph_tokenizer import as_strings

CALIBRATED = "calibrated"


def main(runs: str, valid: str, test: str, human: str, output: str = "") -> None:
    """Prints both tables.

    Args:
        runs: folders of runs, with commas between them.
        valid: for each run, a file of sentences, a colon, and a file of their translations.
        test: the same for the tables.
        human: one such pair, whose human translations get faults, too.
        output: result file to write, like research/results/guards.json.
    """
    from tf_transformer.inference.translator import Translator

    correlations: list[dict[str, Any]] = []
    faults: list[dict[str, Any]] = []
    for run, *pairs in zip(runs.split(","), valid.split(","), test.split(","), strict=True):
        translator = Translator.from_run(run, word_probabilities=True)
        features, quality = [], []
        for paths in pairs:
            texts, references = (first_lines(path, 10**9) for path in paths.split(":"))
            best = translator(texts)
            tokens = [len(translator.codec.encode("target", x.text)) for x in best]
            features.append(scores(best, tokens))
            quality.append(chrf([x.text for x in best], references))
        correlations += correlation_rows(run, features, quality)
        scripts = scripts_of(translator.codec["target"].text_pieces)
        faults += fault_rows(run.rsplit("/", 1)[-1], texts, [x.text for x in best], scripts)
    of_human = (first_lines(path, 10**9) for path in human.split(":"))
    faults += fault_rows("human", *of_human, scripts)
    print(of_rows(correlations, left=2))
    print(of_rows(faults, left=2))
    packages = ("tensorflow", "keras", "sacrebleu")
    results.save(output, correlations, packages, summary={"faults": faults})


def scores(best: Sequence[Prediction], tokens: Sequence[int]) -> dict[str, np.ndarray]:
    """Scores of translations by name, (B,) each; higher is better."""
    p = [np.maximum(x.word_probabilities or [1.0], 1e-30) for x in best]
    total = np.array([np.log(of_words).sum() for of_words in p])
    return {
        "score of the search": np.array([x.score for x in best]),
        "log-probability": total,
        "log-probability per token": total / np.array(tokens),
        "log-probability per word": total / np.array([len(of_words) for of_words in p]),
        "mean word probability": np.array([of_words.mean() for of_words in p]),
        "smallest word probability": np.array([of_words.min() for of_words in p]),
    }


def chrf(translations: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """The chrF of each sentence, (B,)."""
    import sacrebleu

    pairs = zip(translations, references, strict=True)
    return np.array([sacrebleu.sentence_chrf(text, [reference]).score for text, reference in pairs])


def correlation_rows(
    run: str, features: Sequence[dict[str, np.ndarray]], quality: Sequence[np.ndarray]
) -> list[dict[str, Any]]:
    """Correlations with chrF on the second of two sets; the first one calibrates."""
    columns = [
        np.stack([*of_set.values(), np.ones(len(of_pairs))], axis=1)
        for of_set, of_pairs in zip(features, quality, strict=True)
    ]
    weights = np.linalg.lstsq(columns[0], quality[0], rcond=None)[0]
    test = {**features[1], CALIBRATED: columns[1] @ weights}
    return [
        {
            "run": run.rsplit("/", 1)[-1],
            "score": name,
            "pearson": round(float(np.corrcoef(values, quality[1])[0, 1]), 3),
            "spearman": round(float(np.corrcoef(ranks(values), ranks(quality[1]))[0, 1]), 3),
        }
        for name, values in test.items()
    ]


def ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value; equal values have their mean rank."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[group]


def words_with_numbers(text: str) -> list[str]:
    """The words of a text that have a number above 12."""
    words = text.split()
    counts = numbers(as_strings(words)).row_lengths().numpy() if re.search(r"\d", text) else ()
    return [word for word, count in zip(words, counts, strict=False) if count]


def drop_number(source: str, text: str, draw: random.Random) -> str:
    """Removes the last of the numbers that notices read."""
    found = words_with_numbers(text)
    return text.replace(found[-1], "", 1) if found else ""


def change_number(source: str, text: str, draw: random.Random) -> str:
    """Changes a digit of a number."""
    found = words_with_numbers(text)
    if not found:
        return ""
    digit = next(x for x in found[-1] if x.isdigit())
    return text.replace(found[-1], found[-1].replace(digit, str((int(digit) + 1) % 9 + 1), 1), 1)


def repeat_phrase(source: str, text: str, draw: random.Random) -> str:
    """Repeats one to six words two to five times more, somewhere in the translation."""
    words = text.split()
    start = draw.randrange(len(words))
    stop = min(len(words), start + draw.randint(1, 6))
    return " ".join(words[:stop] + words[start:stop] * draw.randint(2, 5) + words[stop:])


def copy_source(source: str, text: str, draw: random.Random) -> str:
    """The source in place of a translation."""
    return source


def other_script(source: str, text: str, draw: random.Random) -> str:
    """Writes a word in Greek letters."""
    words = [word for word in text.split() if len(word) > 3 and word.isalpha()]
    letters = str.maketrans("abcdefghiklmnoprstuvwz", "αβξδεφγηικλμνοπρστυβωζ")
    return (
        text.replace(word := draw.choice(words), word.lower().translate(letters), 1)
        if words
        else ""
    )


def all_in_other_script(source: str, text: str, draw: random.Random) -> str:
    """Writes the whole translation in Cyrillic letters."""
    return text.lower().translate(str.maketrans("abcdefghiklmnoprstuvwz", "абцдефгхиклмнопрстувжз"))


def cut_off(source: str, text: str, draw: random.Random) -> str:
    """Only the first fifth of the words."""
    words = text.split()
    return " ".join(words[: max(1, len(words) // 5)])


FAULTS: dict[str, tuple[Notice, Callable[[str, str, random.Random], str]]] = {
    "a number is lost": (Notice.NUMBERS, drop_number),
    "a number is changed": (Notice.NUMBERS, change_number),
    "a phrase is repeated": (Notice.LOOP, repeat_phrase),
    "the source is copied": (Notice.UNTRANSLATED, copy_source),
    "a word is in another script": (Notice.SCRIPT, other_script),
    "all words are in another script": (Notice.SCRIPT, all_in_other_script),
    "four fifths are lost": (Notice.LENGTH_RATIO, cut_off),
}


def fault_rows(
    name: str, texts: Sequence[str], translations: Sequence[str], scripts: Sequence[int]
) -> list[dict[str, Any]]:
    """For each fault: lines that can have it, recall, precision, and alarms without a fault.

    `scripts` are those of the target language; see `scripts_of`. Precision counts each line once
    with the fault and once without it.
    """
    draw, rows = random.Random(1), []
    pairs = [(x, y) for x, y in zip(texts, translations, strict=True) if x.split() and y.split()]
    shown = Traced(PairNotices(scripts), STRINGS, STRINGS)

    def named(sources: Sequence[str], targets: Sequence[str], notice: Notice) -> np.ndarray:
        """Whether each pair has the notice."""
        return shown(as_strings(sources), as_strings(targets))[:, OF_PAIRS.index(notice)].numpy()

    for fault, (notice, put_in) in FAULTS.items():
        changed = [(x, y, put_in(x, y, draw)) for x, y in pairs]
        with_fault = [(x, y, z) for x, y, z in changed if z and z != y]
        found = named([x for x, _, _ in with_fault], [z for *_, z in with_fault], notice).sum()
        alarms = named([x for x, _, _ in with_fault], [y for _, y, _ in with_fault], notice).sum()
        everywhere = named([x for x, _ in pairs], [y for _, y in pairs], notice).sum()
        rows.append(
            {
                "translations": name,
                "fault": fault,
                "lines": len(with_fault),
                "recall": round(float(found / max(1, len(with_fault))), 3),
                "precision": round(float(found / max(1, found + alarms)), 3),
                "alarms": round(float(everywhere / len(pairs)), 4),
            }
        )
    return rows


if __name__ == "__main__":
    command_line.run(main)
