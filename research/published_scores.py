"""BLEU of outputs whose scores are published, beside these.

    python -m research.published_scores --folder $TF_TRANSFORMER_DATA/bleu_check

The folder has three sets of outputs, each with a table `scores.tsv`: the systems of WMT'17 En-De,
the test data of TensorFlow's NMT tutorial, and the example of MultEval. A score is reproduced when
it differs from the published one by at most one in the last digit, which some round and some cut.
"""

import csv
import pathlib
import re
import statistics
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from tf_transformer.commands import command_line
from tf_transformer.config.task import TranslationOptions
from tf_transformer.files.reading import read_texts
from tf_transformer.tasks.translation_scores import Bleu

_EMPTY = "<empty>"
TOKENISED = Bleu(TranslationOptions(bleu_tokenize="none"))


def main(folder: str, output: str = "") -> None:
    """Prints each score beside the published one.

    Args:
        folder: the outputs.
        output: result file to write, for example research/results/published_scores.json.
    """
    path = pathlib.Path(folder)
    scores = [*_wmt17(path / "wmt17_en_de")]
    scores += [*_nmt(path / "tf_nmt_newstest2013_de_en"), *_multeval(path / "multeval_test2010_en")]
    rows = [_row(*entry) for entry in scores]
    print(of_rows(rows, left=2))
    reproduced = sum(row["reproduced"] for row in rows)
    print(f"{reproduced} of {len(rows)} published scores are reproduced.")
    summary = {"scores": len(rows), "reproduced": reproduced}
    results.save(output, rows, ("sacrebleu",), summary=summary)


def _row(outputs: str, score: str, published: str, ours: float) -> dict[str, Any]:
    digits = -int(Decimal(published).as_tuple().exponent)
    return {
        "outputs": outputs,
        "score": score,
        "published": published,
        "ours": f"{ours:.{digits}f}",
        "reproduced": abs(ours - float(published)) < 1.01 * 10**-digits,
    }


def _table(folder: pathlib.Path) -> list[dict[str, str]]:
    (lines,) = read_texts(folder / "scores.tsv")
    return list(csv.DictReader(lines, delimiter="\t"))


def _wmt17(folder: pathlib.Path) -> Iterator[tuple[str, str, str, float]]:
    """Detokenised and cased."""
    for row in _table(folder):
        texts = read_texts(folder / row["file"], folder / "ref.de")
        scores = Bleu(TranslationOptions(normalize=False)).score([], texts[0], texts[1:])
        yield row["file"], "BLEU 13a", row["mteval_v13a_bleu"], scores["bleu"]
        if row["mteval_v14_intl_bleu"]:
            options = TranslationOptions(bleu_tokenize="intl", normalize=False)
            intl = Bleu(options).score([], texts[0], texts[1:])
            yield row["file"], "BLEU intl", row["mteval_v14_intl_bleu"], intl["bleu"]


def _nmt(folder: pathlib.Path) -> Iterator[tuple[str, str, str, float]]:
    """Tokenised; subwords are joined first. The tutorial counts an empty text as one token."""
    for row in _table(folder):
        texts = read_texts(folder / row["hypothesis"], folder / row["reference"])
        join = _joined_bpe if row["subword"] == "bpe" else _joined_pieces
        texts = [[line or _EMPTY for line in texts[0]], [join(line) for line in texts[1]]]
        scores = TOKENISED.score([], texts[0], texts[1:])
        yield row["reference"], "BLEU", row["expected_bleu"], scores["bleu"]


def _multeval(folder: pathlib.Path) -> Iterator[tuple[str, str, str, float]]:
    """Lower-cased and tokenised; the mean over three runs of a system."""
    for row in _table(folder):
        scores = []
        for run in row["runs"].split():
            file = folder / f"hyps.lc.tok.en.{row['system']}.{run}"
            texts = read_texts(file, folder / "refs.test2010.lc.tok.en.0")
            scores.append(TOKENISED.score([], texts[0], texts[1:])["bleu"])
        yield row["system"], "BLEU, mean", row["BLEU_mean"], statistics.mean(scores)


def _joined_bpe(line: str) -> str:
    return line.replace("@@ ", "")


def _joined_pieces(line: str) -> str:
    return re.sub(r"\s+", "", line, flags=re.ASCII).replace("\u2581", " ").strip()


if __name__ == "__main__":
    command_line.run(main)
