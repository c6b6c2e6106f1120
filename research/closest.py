"""Of the hypotheses for each line, the one that is closest to the reference.

    python translate.py --run_dir runs/teacher --beam_size 10 --num_hypotheses 10 \
        --n_best_output build/n_best.txt < train.en > build/best.de
    python -m research.closest --n_best build/n_best.txt --reference train.de \
        --to build/closest.de

A model that learns these translations beside the references learns a target that a model can
predict, and that says what the reference says: sequence-level interpolation (Kim & Rush 2016,
section 3.3). As there, closeness is the BLEU of the sentence: sacreBLEU's, with 1 added to the
counts of n-grams longer than one token.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from sacrebleu.metrics import BLEU

from tf_transformer.commands import command_line
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.reading import decode, read_lines, read_texts
from tf_transformer.files.writing import write_whole


def main(n_best: LocalPath, reference: LocalPath, to: LocalPath, tokenize: str = "13a") -> None:
    """Writes a hypothesis for each line; prints the BLEU of the best and of the closest ones.

    Args:
        n_best: file that `translate.py --n_best_output` has written.
        reference: file of the references.
        to: file for the chosen hypotheses.
        tokenize: tokenisation of sacreBLEU; none for text that is tokenised.

    Raises:
        InputError: when the numbers of lines differ, or a line has another format.
    """
    (references,) = read_texts(reference)
    hypotheses = list(read_n_best(n_best))
    if len(hypotheses) != len(references):
        raise InputError(
            f"{reference} has {len(references):,} lines, but {n_best} has hypotheses for "
            f"{len(hypotheses):,}: translate the source of these references."
        )
    similarity = BLEU(
        tokenize=tokenize, smooth_method="add-k", smooth_value=1, effective_order=True
    )
    chosen = [
        max(texts, key=lambda text: similarity.sentence_score(text, [wanted]).score)
        for texts, wanted in zip(hypotheses, references, strict=True)
    ]
    write_whole(to, "".join(f"{text}\n" for text in chosen))
    corpus = BLEU(tokenize=tokenize, force=True)
    for name, texts in {"best": [row[0] for row in hypotheses], "closest": chosen}.items():
        print(f"{name}: BLEU {corpus.corpus_score(texts, [references]).score:.2f}")


def read_n_best(path: str) -> Iterator[Sequence[str]]:
    """The hypotheses of each line, best first.

    Raises:
        InputError: when a line is not `line ||| translation ||| score`.
    """

    def parse(line: str) -> tuple[str, str]:
        number, _, rest = line.partition(" ||| ")
        text, found, _ = rest.rpartition(" ||| ")
        if not found:
            raise InputError(f"expected `line ||| translation ||| score` in {path}, got: {line}")
        return number, text

    for _, rows in groupby(map(parse, decode(read_lines(path), path)), key=lambda row: row[0]):
        yield [text for _, text in rows]


if __name__ == "__main__":
    command_line.run(main)
