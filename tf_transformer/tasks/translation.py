"""Translation as a task: where its pairs come from, and how its output is scored."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import sacrebleu

from tf_transformer.config import Config, DataConfig
from tf_transformer.data.corpus import Corpus, PairStream, read_files, stream_files, stream_tfds
from tf_transformer.data.generated import generate
from tf_transformer.errors import InputError
from tf_transformer.files import read_lines

TEST_PAIRS = 1000  # of the generated corpus, which no training and no validation sees


@dataclass(frozen=True)
class Score:
    """Corpus scores of a translation.

    Attributes:
        bleu: sacreBLEU's BLEU, 0 to 100.
        signature: its recipe.
        chrf: sacreBLEU's chrF, 0 to 100.
        exact_match: share of lines equal to their reference, 0 to 100.
        sentences: number of lines.
    """

    bleu: float
    signature: str
    chrf: float
    exact_match: float
    sentences: int


def load_pairs(config: DataConfig, seed: int) -> tuple[PairStream, Corpus]:
    """The training and validation pairs that a configuration names.

    Args:
        config: where the pairs come from.
        seed: of the choice of validation pairs, when none are given.

    Returns:
        (train, valid).

    Raises:
        InputError: for files or corpora that cannot be read.
    """
    if config.train_source:
        train = stream_files(config.train_source, config.train_target)
    elif config.tfds:
        train = _tfds_split(config, "train")
    else:
        generated, valid, _ = generated_splits(config)
        return generated.stream(), valid
    if config.valid_source:
        return train, read_files(config.valid_source, config.valid_target)
    if config.tfds_valid_split:
        return train, _tfds_split(config, config.tfds_valid_split).read()
    return train.hold_out(config.held_out, seed)


def _tfds_split(config: DataConfig, split: str) -> PairStream:
    return stream_tfds(config.tfds, split, config.tfds_reverse, config.tfds_dir)


def generated_splits(config: DataConfig) -> tuple[Corpus, Corpus, Corpus]:
    """The generated corpus as (train, valid, test), disjoint in meaning."""
    held_out = min(config.held_out, TEST_PAIRS)
    total = config.generated_pairs + held_out + TEST_PAIRS
    # A seed of its own: evaluate.py makes the corpus again and must find the same test pairs.
    corpus = generate(total, config.source_language, config.target_language, seed=0)
    return (
        corpus.take(range(TEST_PAIRS + held_out, total)),
        corpus.take(range(TEST_PAIRS, TEST_PAIRS + held_out)),
        corpus.take(range(TEST_PAIRS)),
    )


def load_test(run_dir: str | os.PathLike, source: str, reference: str) -> Corpus:
    """The sentences to score a run on: two files, line by line, empty lines and all.

    Args:
        run_dir: the run's folder.
        source: file of sentences; without it a run on the generated corpus has its test pairs.
        reference: file of their translations.

    Raises:
        InputError: when the files have different numbers of lines, or none are given and the
            run has no test pairs of its own.
    """
    if source and reference:
        sides = [
            [line.decode("utf-8", "replace") for line in read_lines(f)] for f in (source, reference)
        ]
        if len(sides[0]) != len(sides[1]):
            raise InputError(
                f"{source} has {len(sides[0])} lines and {reference} {len(sides[1])}; line n of "
                "one must be the translation of line n of the other."
            )
        return Corpus(sources=sides[0], targets=sides[1])
    data = Config.load(run_dir).data
    if source or reference or data.train_source or data.tfds:
        raise InputError("give --source and --reference, the test set and its translation.")
    return generated_splits(data)[2]


def score(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Scores detokenised translations against one reference each.

    BLEU is cased, with sacreBLEU's own 13a tokenisation; its signature says so.

    Raises:
        InputError: when there is nothing to score or the numbers of lines differ.

    Example:
        >>> score(["Ein Haus ."], ["Ein Haus ."]).exact_match
        100.0
    """
    if len(hypotheses) != len(references) or not references:
        raise InputError(
            f"expected a reference for each of {len(hypotheses)} translations, "
            f"got {len(references)}."
        )
    bleu = sacrebleu.BLEU()
    result = bleu.corpus_score(hypotheses, [references])
    matches = sum(h == r for h, r in zip(hypotheses, references, strict=True))
    return Score(
        bleu=result.score,
        signature=str(bleu.get_signature()),
        chrf=sacrebleu.CHRF().corpus_score(hypotheses, [references]).score,
        exact_match=100.0 * matches / len(references),
        sentences=len(references),
    )
