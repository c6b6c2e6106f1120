"""Translates lines: python translate.py --run_dir runs/x < in.txt > out.txt."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tf_transformer.config import DType
from tf_transformer.errors import InputError
from tf_transformer.files import one_line
from tf_transformer.streaming import WINDOW, Output, Progress, Step, Stream

if TYPE_CHECKING:
    from tf_transformer.translator import Translation, Translator


def main(
    run_dir: str,
    input: str = "",
    output: str = "",
    resume: bool = False,
    window: int = WINDOW,
    prefixes: str = "",
    score_target: str = "",
    n_best_output: str = "",
    scores_output: str = "",
    alignments_output: str = "",
    dtype: DType = "float32",
    **decode_options: Any,
) -> None:
    """Writes exactly one line for each line read; only newlines end lines.

    Args:
        run_dir: the run's folder.
        input: file to translate, plain or .gz; stdin when not given.
        output: file for the translations; stdout when not given. Files are written as
            <name>.partial and get their names when all is done.
        resume: go on with the partial files of an interrupted run that had the same options.
        window: lines read, sorted by length and translated together; memory grows with it.
        prefixes: file of what translations start with, line by line; an empty line gives nothing.
        score_target: file of translations; instead of translating, writes for each its score and
            its log-probability, with a tab between.
        n_best_output: file for all --num_hypotheses translations of each line, best first, as
            `line ||| translation ||| score`; lines are counted from 0.
        scores_output: file for the score of each translation.
        alignments_output: file for links `s-t`, where t looked at s most: positions in source
            and translation, counted from 0 in pieces of the tokenizer.
        dtype: of weights and computation.
        **decode_options: fields of DecodeConfig; the run's own where None.
    """
    if score_target and (prefixes or n_best_output or scores_output):
        raise InputError(
            "--score_target translates nothing: give it without --prefixes, --n_best_output and "
            "--scores_output."
        )
    wanted = [
        Output(n_best_output, _n_best, numbered=True),
        Output(scores_output, _score),
        Output(alignments_output, _links),
    ]
    outputs = [
        Output(output, _pair_score if score_target else _translation),
        *(extra for extra in wanted if extra.path),
    ]
    inputs = [input, *(path for path in (prefixes, score_target) if path)]
    stream = Stream(inputs, outputs, window, resume)  # its complaints come before a model loads

    from tf_transformer.translator import Translator

    translator = Translator.from_run(run_dir, dtype, **decode_options)
    step = scoring(translator) if score_target else translating(translator)
    stream.run(aligning(translator, step) if alignments_output else step)


class Found(NamedTuple):
    """What there is to write about one line."""

    hypotheses: "list[Translation]"
    log_probability: float = 0.0  # of a translation that was given
    links: Sequence[tuple[int, int]] = ()


def translating(translator: "Translator") -> Step:
    """A step from sources, and prefixes if there are any, to their translations."""

    def step(
        sources: Sequence[str], prefixes: Sequence[str] | None = None, *, progress: Progress
    ) -> list[Found]:
        return [Found(n_best) for n_best in translator.n_best(sources, prefixes, progress)]

    return step


def scoring(translator: "Translator") -> Step:
    """A step from sources and their translations to what the model gives these."""
    from tf_transformer.translator import Translation

    def step(sources: Sequence[str], targets: Sequence[str], *, progress: Progress) -> list[Found]:
        scores = translator.score(sources, targets, progress)
        return [
            Found([Translation(target, given.score)], given.log_probability)
            for target, given in zip(targets, scores, strict=True)
        ]

    return step


def aligning(translator: "Translator", step: Step) -> Step:
    """A step that aligns what another finds, too."""

    def with_links(
        sources: Sequence[str], *others: Sequence[str], progress: Progress
    ) -> list[Found]:
        found = step(sources, *others, progress=progress)
        alignments = translator.align(sources, [each.hypotheses[0].text for each in found])
        return [
            each._replace(links=alignment.links())
            for each, alignment in zip(found, alignments, strict=True)
        ]

    return with_links


def _translation(number: int, found: Found) -> list[str]:
    return [one_line(found.hypotheses[0].text)]


def _n_best(number: int, found: Found) -> list[str]:
    return [f"{number} ||| {one_line(text)} ||| {score:.6f}" for text, score in found.hypotheses]


def _score(number: int, found: Found) -> list[str]:
    return [f"{found.hypotheses[0].score:.6f}"]


def _pair_score(number: int, found: Found) -> list[str]:
    return [f"{found.hypotheses[0].score:.6f}\t{found.log_probability:.6f}"]


def _links(number: int, found: Found) -> list[str]:
    return [" ".join(f"{source}-{target}" for source, target in found.links)]
