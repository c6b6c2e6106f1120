"""Translates lines: python translate.py --run_dir runs/x < in.txt > out.txt."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from tf_transformer.config import Config, DType
from tf_transformer.errors import InputError
from tf_transformer.files.outputs import require_free
from tf_transformer.files.writing import one_line
from tf_transformer.inference.streaming import WINDOW, Output, Progress, Step, Stream
from tf_transformer.run.run import Run
from tf_transformer.text.normalization import has_letters
from tf_transformer.text.sentences import has_several_sentences
from tf_transformer.text.word_alignment import Unit

if TYPE_CHECKING:
    from tf_transformer.inference.predictor import Prediction, Predictor
    from tf_transformer.visualization.attention_file import AttentionFile

LISTED = 10  # line numbers in a report
SPEED = ("batch_size", "batch_tokens", "parallel_batches")  # options that change no translation


def main(
    run_dir: str,
    input: str = "",
    output: str = "",
    resume: bool = False,
    overwrite: bool = False,
    window: int = WINDOW,
    prefixes: str = "",
    score_target: str = "",
    n_best_output: str = "",
    scores_output: str = "",
    alignments_output: str = "",
    alignment_unit: Unit = "words",
    attention_output: str = "",
    dtype: DType = "float32",
    **decode_options: Any,
) -> None:
    """Writes exactly one line for each line read; only newlines end lines.

    Lines of a terminal are translated one by one, those of a pipe at the latest when no line has
    arrived for 0.2 s. At the end, stderr has the numbers of lines that were cut because they are
    longer than --max_source_length, and of outputs that reached their length limit. For a
    translator it also has those of lines with several sentences, and of texts with an empty output.

    Args:
        run_dir: the run's folder.
        input: file to translate, plain or compressed; stdin when not given.
        output: file for the translations; stdout when not given. Files are written as
            <name>.partial and get their names when they are complete.
        resume: continue the partial files of an interrupted run. It must have had the same inputs,
            model and options.
        overwrite: whether outputs replace existing files, when they are complete.
        window: most lines read, sorted by length and translated together; memory grows with it.
        prefixes: file of the beginnings of the translations, line by line; lines may be empty.
        score_target: file of translations; instead of translating, writes the score and the
            log-probability of each, separated by a tab.
        n_best_output: file for the translations of each line, at most --num_hypotheses, best
            first, as `line ||| translation ||| score`; lines are counted from 0.
        scores_output: file for the score of each translation.
        alignments_output: file for links `s-t`: a piece of the target's word t attended most to a
            piece of the source's word s. Words are those of str.split(), counted from 0.
        alignment_unit: whether links are between words or between pieces of the tokenizer.
        attention_output: file for the attention weights of all layers and heads: a page (.html,
            of the first 100 lines), a picture (.png or .svg, of the first line) or numbers (.json,
            of the first 1,000 lines).
        dtype: of weights and computation.
        **decode_options: fields of DecodeConfig; null: as configured in the run.
    """
    if score_target and (prefixes or n_best_output or scores_output):
        raise InputError(
            "--score_target translates nothing: give it without --prefixes, --n_best_output and "
            "--scores_output."
        )
    if attention_output and resume:
        raise InputError("--attention_output shows the first lines: give it without --resume.")
    # These check files and options before TensorFlow is imported.
    attention = _attention_file(attention_output, overwrite) if attention_output else None
    run = Run.load(run_dir, **decode_options)
    inputs = [input, *(path for path in (prefixes, score_target) if path)]
    outputs = _outputs(
        Output(output, _pair_score if score_target else _text),
        Output(n_best_output, _n_best, numbered=True),
        Output(scores_output, _score),
        Output(alignments_output, _links),
    )
    names = filter(None, [*(file.path for file in outputs), attention_output])
    require_free(list(names), [*filter(None, inputs), *run.folder.files()], overwrite)
    stream = Stream(inputs, outputs, window, resume, overwrite)
    given = {"dtype": dtype, "score_target": bool(score_target), "prefixes": bool(prefixes)}
    stream.depends_on(
        _options(run.config, given | {"alignment_unit": alignment_unit}), run.identities()
    )

    predictor = _load(run, dtype)
    step = scoring(predictor) if score_target else predicting(predictor)
    if alignments_output:
        step = aligning(predictor, step, alignment_unit)
    if attention:
        step = recording(predictor, step, attention)
    translates = not score_target and getattr(predictor, "output", "") == "translation"
    report = LineReport(step, stream.done, predictor.max_source_length, translates)
    stream.run(report)
    sys.stderr.write(str(report) + (attention.write() if attention else ""))


def _outputs(first: Output, *optional: Output) -> list[Output]:
    """The outputs that are written: the first one, and optional ones that have a file."""
    return [first, *(output for output in optional if output.path)]


def _attention_file(path: str, overwrite: bool) -> "AttentionFile":
    """The file of attention; its module imports NumPy, which --help does without."""
    from tf_transformer.visualization.attention_file import AttentionFile

    return AttentionFile(path, overwrite)


def _options(config: Config, given: dict[str, Any]) -> dict[str, Any]:
    """The options that a translation depends on, as a user gives them."""
    options = asdict(config.decode) | given
    options |= {f"task.{name}": getattr(config.task, name) for name in config.task.of_search}
    return {f"--{name}": value for name, value in options.items() if name not in SPEED}


def _load(run: Run, dtype: DType) -> "Predictor":
    """The predictor of a run; threads are set before TensorFlow computes."""
    from tf_transformer.machine.threads import use_one_thread_per_batch
    from tf_transformer.tasks import load_predictor

    use_one_thread_per_batch(run.config.decode.parallel_batches)
    return load_predictor(run, dtype)


class Line(NamedTuple):
    """The results for one line."""

    n_best: "list[Prediction]"
    log_probability: float = 0.0  # of a given translation
    links: Sequence[tuple[int, int]] = ()


def predicting(predictor: "Predictor") -> Step:
    """A step from inputs, and prefixes if there are any, to their predictions."""

    def step(
        inputs: Sequence[str], prefixes: Sequence[str] | None = None, *, progress: Progress
    ) -> list[Line]:
        return list(map(Line, predictor.n_best(inputs, prefixes, progress)))

    return step


def scoring(predictor: "Predictor") -> Step:
    """A step from inputs and given predictions to the scores of these."""
    from tf_transformer.inference.predictor import Prediction

    def step(inputs: Sequence[str], targets: Sequence[str], *, progress: Progress) -> list[Line]:
        scores = predictor.score(inputs, targets, progress)
        return [
            Line([Prediction(target, pair.score, cut=pair.cut)], pair.log_probability)
            for target, pair in zip(targets, scores, strict=True)
        ]

    return step


def aligning(predictor: "Predictor", step: Step, unit: Unit) -> Step:
    """A step that adds alignments to the results of another.

    Raises:
        InputError: when the predictor has no method `align`.
    """
    align = getattr(predictor, "align", None)
    if align is None:
        raise InputError(
            "this run's predictions cannot be aligned with their inputs: leave out "
            "--alignments_output."
        )

    def with_links(inputs: Sequence[str], *others: Sequence[str], progress: Progress) -> list[Line]:
        lines = step(inputs, *others, progress=progress)
        alignments = align(inputs, [line.n_best[0].text for line in lines])
        return [
            line._replace(links=alignment.links(unit))
            for line, alignment in zip(lines, alignments, strict=True)
        ]

    return with_links


def recording(predictor: "Predictor", step: Step, file: "AttentionFile") -> Step:
    """A step that adds the attention of the first lines to a file.

    Raises:
        InputError: when the predictor has no method `attention`.
    """
    attention = getattr(predictor, "attention", None)
    if attention is None:
        raise InputError("this run has no attention to show: leave out --attention_output.")

    def with_attention(
        inputs: Sequence[str], *others: Sequence[str], progress: Progress
    ) -> list[Line]:
        lines = list(step(inputs, *others, progress=progress))
        room = file.room()
        best = [line.n_best[0].text for line in lines[:room]]
        file.add(attention(inputs[:room], best) if best else [], len(lines))
        return lines

    return with_attention


class LineNumbers:
    """Counts lines and keeps the numbers of the first ones."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[int] = []

    def add(self, number: int) -> None:
        """Adds a line."""
        self.count += 1
        if self.count <= LISTED:
            self._first.append(number)

    def __str__(self) -> str:
        """For example: 12 lines (3, 5, 17, ...)."""
        numbers = ", ".join(map(str, self._first)) + ", ..." * (self.count > LISTED)
        return f"{self.count:,} line{'s' * (self.count > 1)} ({numbers})"


class LineReport:
    """A step that calls another and counts the lines that lost text, or may have lost some.

    Args:
        step: the other step.
        done: number of lines before the first call.
        longest: `max_source_length` of the predictor.
        translates: whether to count inputs of several sentences, and empty outputs.
    """

    def __init__(self, step: Step, done: int, longest: int, translates: bool):
        self._step = step
        self._done = done
        self._translates = translates
        self._cut, self._at_limit = LineNumbers(), LineNumbers()
        self._several, self._empty = LineNumbers(), LineNumbers()
        self._kinds = {
            f"cut to {longest:,} tokens (--max_source_length)": self._cut,
            "output ends at its length limit": self._at_limit,
            "several sentences, some of which may be lost (give one per line)": self._several,
            "empty output (try --min_length 1)": self._empty,
        }

    def __call__(self, *columns: Sequence[str], progress: Progress) -> Sequence[Line]:
        lines = self._step(*columns, progress=progress)
        for text, line in zip(columns[0], lines, strict=True):
            self._done += 1
            best = line.n_best[0]
            if best.cut:
                self._cut.add(self._done)
            elif best.truncated:
                self._at_limit.add(self._done)
            if self._translates and has_several_sentences(text):
                self._several.add(self._done)
            if self._translates and not best.text and has_letters(text):
                self._empty.add(self._done)
        return lines

    def __str__(self) -> str:
        """A line for each kind that occurred."""
        return "".join(f"{kind}: {lines}\n" for kind, lines in self._kinds.items() if lines.count)


def _text(number: int, line: Line) -> list[str]:
    return [one_line(line.n_best[0].text)]


def _n_best(number: int, line: Line) -> list[str]:
    return [f"{number} ||| {one_line(p.text)} ||| {p.score:.6f}" for p in line.n_best]


def _score(number: int, line: Line) -> list[str]:
    return [f"{line.n_best[0].score:.6f}"]


def _pair_score(number: int, line: Line) -> list[str]:
    return [f"{line.n_best[0].score:.6f}\t{line.log_probability:.6f}"]


def _links(number: int, line: Line) -> list[str]:
    return [" ".join(f"{source}-{target}" for source, target in line.links)]
