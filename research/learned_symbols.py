"""Compares three ways of spans: text, emoji, and symbols that a model learns from masked pairs.

    python -m research.learned_symbols --text runs/text --symbols runs/symbols \
        --source test_2016_flickr.en --reference test_2016_flickr.de

`masked_pairs` writes the pairs and first weights of both runs; they have the same updates. The
model of `text` also reads emoji. Counts the lines of which a model alone keeps all spans, and
scores the text around them.
"""

import time
from typing import Any

import sacrebleu

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import first_lines
from research.kept_spans import KINDS, WARM_UP, count_right, through_symbols, translation_of
from research.masked_pairs import PATTERN, SYMBOLS
from tf_transformer.commands import command_line
from tf_transformer.inference.translator import Translator
from tf_transformer.text.kept_spans import divide, without_spans


def main(
    text: str, symbols: str, source: str, reference: str, lines: int = 1000, output: str = ""
) -> None:
    """Prints for each kind of span and each way how many lines a model alone keeps.

    Args:
        text: the run that was trained on spans.
        symbols: the run that was trained on symbols.
        source: file of sentences.
        reference: file of their translations.
        lines: how many of the file's lines.
        output: result file to write, for example research/results/learned_symbols.json.
    """
    of_text, of_symbols = (Translator.from_run(run, keep=[]) for run in (text, symbols))
    ways = {
        "text": translation_of(of_text),
        "emoji": lambda texts: through_symbols(of_text, texts),
        "symbols": lambda texts: through_learned(of_symbols, texts),
    }
    sentences, references = first_lines(source, lines), first_lines(reference, lines)
    rows: list[dict[str, Any]] = []
    for kind, change in KINDS.items():
        texts = [change(line) for line in sentences]
        row: dict[str, Any] = {"kind": kind, "lines": len(texts)}
        for way, translate in ways.items():
            translate(texts[:WARM_UP])
            start = time.perf_counter()
            translations = translate(texts)
            row[f"seconds_{way}"] = round(time.perf_counter() - start, 2)
            row[f"right_{way}"] = count_right(texts, translations)
            around = [" ".join(without_spans(x).split()) for x in translations]
            row[f"chrf_{way}"] = round(sacrebleu.corpus_chrf(around, [references]).score, 2)
            row[f"bleu_{way}"] = round(sacrebleu.corpus_bleu(around, [references]).score, 2)
        rows.append(row)
        print(of_rows([row], left=1), flush=True)
    results.save(output, rows, ("tensorflow", "keras", "sacrebleu"))


def through_learned(translator: Translator, texts: list[str]) -> list[str]:
    """The translations of lines by a model that learned symbols, with their spans."""
    divided = [divide(text, PATTERN) for text in texts]
    spans_of = [[span for span in parts[1::2] if span][: len(SYMBOLS)] for parts in divided]
    for parts in divided:
        symbols = iter(SYMBOLS)
        parts[1::2] = [next(symbols, span) if span else "" for span in parts[1::2]]
    outputs = translator(["".join(parts) for parts in divided])
    tables = [dict(zip(map(ord, SYMBOLS), known, strict=False)) for known in spans_of]
    return [x.text.translate(table) for x, table in zip(outputs, tables, strict=True)]


if __name__ == "__main__":
    command_line.run(main)
