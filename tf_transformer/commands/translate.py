"""Translates lines: python translate.py --run_dir runs/x < in.txt > out.txt; or a document."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tf_transformer.config import DType
from tf_transformer.documents import (
    Options,
    is_document,
    read_document,
    same_format,
    translated,
)
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.outputs import is_stream, require_free, write_output
from tf_transformer.files.reading import read_texts
from tf_transformer.files.streaming import WINDOW, Output, Progress, SentenceProgress, Stream
from tf_transformer.files.writing import one_line
from tf_transformer.inference.notices import Notice
from tf_transformer.machine.imports import import_tensorflow
from tf_transformer.run.run import Run, direction_of
from tf_transformer.text.kept_spans import COMMON
from tf_transformer.text.terms import parse_terms
from tf_transformer.text.word_alignment import Unit

if TYPE_CHECKING:
    from tf_transformer.inference.predictor import Prediction
    from tf_transformer.visualization.attention_file import AttentionFile

LISTED = 10  # line numbers in a report
REPORTED = {
    Notice.CUT: "cut to {longest:,} tokens (--max_source_length)",
    Notice.LENGTH_LIMIT: "output ends at its length limit",
    Notice.LONG_INPUT: "longer than the lines of training, at most {trained:,} tokens (divide it)",
    Notice.SEVERAL_LINES: "several lines, read as one (try --split sentences)",
    Notice.SEVERAL_SENTENCES: "several sentences; some may be lost (try --split sentences)",
    Notice.PLACEHOLDERS: "placeholders differ between input and output",
    Notice.EMPTY: "empty output (try --min_length 1)",
    Notice.LOOP: "output repeats a phrase (try --no_repeat_ngram_size 4)",
    Notice.UNTRANSLATED: "output has the words of the input",
    Notice.SCRIPT: "output has a word in another script",
    Notice.NUMBERS: "numbers differ between input and output",
    Notice.LENGTH_RATIO: "output much longer or shorter than the input",
}


def main(
    run_dir: LocalPath,
    input: LocalPath = "",
    output: LocalPath = "",
    resume: bool = False,
    overwrite: bool = False,
    window: int = WINDOW,
    prefixes: LocalPath = "",
    target_tags: LocalPath = "",
    terms: LocalPath = "",
    score_target: LocalPath = "",
    n_best_output: LocalPath = "",
    scores_output: LocalPath = "",
    alignments_output: LocalPath = "",
    alignment_unit: Unit = "words",
    attention_output: LocalPath = "",
    target_language: str = "",
    retranslate: bool = False,
    dtype: DType = "float32",
    **decode_options: Any,
) -> None:
    """Translates lines of text, or a document.

    Writes exactly one line for each line read, or a document in the format of the input. The first
    word may be the input, without --input.

    Only newlines end lines. Each line from a terminal is translated at once. Lines from a pipe are
    translated together, at the latest when no line has arrived for 0.2 s. At the end, stderr lists
    inputs that were cut to --max_source_length or are longer than the training text, and outputs
    that reached their length limit. A translator also lists inputs with several sentences, outputs
    with other placeholders or numbers than the input, such as %s or {name}, and outputs that are
    empty, repeat a phrase, copy the input, mix scripts, or are much longer or shorter.

    Args:
        run_dir: folder of the run; a,b,c for an ensemble of three runs with one target vocabulary.
        input: file to translate, plain or compressed; empty: stdin. The endings .docx, .html, .md,
            .srt, .po, .xliff, .tmx and .json mean a document.
        output: file for the translations; empty: stdout. A file has the ending .partial until it
            is complete.
        resume: continue the partial files of an interrupted translation with the same inputs,
            model and options.
        overwrite: replace existing files when the outputs are complete.
        window: most lines that are read, sorted by length and translated together. More lines
            need more memory.
        prefixes: file with the beginning of each translation, one per line; a line may be empty.
        target_tags: file with the tag of each translation's language, such as >>por<<, one per
            line. An empty line, or a line whose text starts with a tag, has no effect.
        terms: file of terms for all lines or the whole document. Each line has a phrase of the
            text, a tab, and the translation that the phrase must get.
        score_target: file of translations to score; nothing is translated. Writes the score and
            the log-probability of each translation, with a tab between them.
        n_best_output: file for up to --num_hypotheses translations of each line, best first, as
            `line ||| translation ||| score`. Line numbers start at 0. With --word_probabilities
            true, `||| probabilities of its words` follows.
        scores_output: file for the score of each translation.
        alignments_output: file for links `s-t` between source word s and target word t. A link
            says that a piece of t attends most to a piece of s. Words are split at white space
            (str.split) and counted from 0.
        alignment_unit: links between words, or between pieces of the tokenizer.
        attention_output: file for the attention weights of all layers and heads. .html: a page
            with the first 100 lines. .png or .svg: a picture of the first line. .json: the numbers
            for the first 1,000 lines.
        target_language: of documents: language of the translations, like pt-BR, which documents
            name; empty: the target language of the run.
        retranslate: of documents: translate again what has a translation, in PO, XLIFF and TMX.
        dtype: dtype of weights and computation.
        **decode_options: fields of DecodeConfig; null: the value in the run's config.yaml.
    """
    if is_document(input):
        of_lines = {
            **{"resume": resume, "prefixes": prefixes, "target_tags": target_tags},
            **{"score_target": score_target, "n_best_output": n_best_output},
            **{"scores_output": scores_output, "alignments_output": alignments_output},
            **{"attention_output": attention_output},
        }
        refuse_options_of_lines(input, of_lines)
        run = load_for_documents(run_dir, decode_options)
        source, target = direction_of(run.config) or ("", "")
        languages = Options(source, target_language or target, retranslate)
        translate_document(run, input, output, languages, overwrite, dtype, read_terms(terms))
        return
    if target_language or retranslate:
        raise InputError(
            "--target_language and --retranslate are options of documents. Give a document as "
            "--input, or leave them out."
        )
    if score_target and (prefixes or terms or n_best_output or scores_output):
        raise InputError(
            "--score_target translates nothing. Leave out --prefixes, --terms, --n_best_output and "
            "--scores_output."
        )
    if attention_output and resume:
        raise InputError("--attention_output shows the first lines. Leave out --resume.")
    # Files and options are checked before TensorFlow is imported.
    attention = None
    if attention_output:
        from tf_transformer.visualization.attention_file import AttentionFile  # imports NumPy

        attention = AttentionFile(attention_output, overwrite)
    run = Run.load(run_dir, **decode_options)
    if run.config.decode.split != "none" and (alignments_output or attention_output):
        raise InputError(
            "--alignments_output and --attention_output are for whole lines. Leave them out, or "
            "give --split none."
        )
    given = {"prefixes": prefixes, "target_tags": target_tags, "score_target": score_target}
    names = [name for name, path in given.items() if path]
    inputs = [input, *(given[name] for name in names)]
    optional = (
        Output(n_best_output, _n_best, numbered=True),
        Output(scores_output, _score),
        Output(alignments_output, _links),
    )
    first = Output(output, _pair_score if score_target else _text)
    outputs = [first, *(file for file in optional if file.path)]
    written = filter(None, [*(file.path for file in outputs), attention_output])
    require_free(list(written), [*filter(None, [*inputs, terms]), *run.files()], overwrite)
    stream = Stream(inputs, outputs, window, resume, overwrite)
    for_all = read_terms(terms)
    options: dict[str, Any] = {"dtype": dtype, "alignment_unit": alignment_unit, **for_all}
    options |= {name: bool(path) for name, path in given.items()}
    named = {f"--{name}": value for name, value in options.items()}
    stream.depends_on(run.search_options() | named, run.identities())

    import_tensorflow()
    from tf_transformer.machine.threads import use_one_thread_per_batch
    from tf_transformer.tasks import load_predictor

    use_one_thread_per_batch(run.config.decode.parallel_batches)
    unit = alignment_unit if alignments_output else ""
    step = LineStep(load_predictor(run, dtype), names, stream.done, unit, attention, for_all)
    stream.run(step)
    sys.stderr.write(step.report() + (attention.write() if attention else ""))


def read_terms(path: str) -> dict[str, str]:
    """The terms of a file as an input for all texts; {} without a file."""
    if not path:
        return {}
    terms = "\n".join(read_texts(path)[0])
    parse_terms(terms)
    return {"terms": terms}


def refuse_options_of_lines(path: str, options: Mapping[str, Any]) -> None:
    """Raises an `InputError` if options are given that need lines, and not a document."""
    if wrong := [f"--{name}" for name, value in options.items() if value]:
        raise InputError(f"{path} is a document, and {', '.join(wrong)} needs lines.")


def load_for_documents(run_dir: str, options: Mapping[str, Any]) -> Run:
    """Loads a run whose translator divides texts and keeps tags, unless options say otherwise."""
    run = Run.load(run_dir, **options)
    if run.config.task.name != "translation":
        return run
    defaults: dict[str, Any] = {"split": "sentences"}
    if not run.others:
        defaults["keep"] = run.config.decode.keep or (COMMON,)
    given = {name: value for name, value in options.items() if value is not None}
    return Run.load(run_dir, **defaults | given)


def translate_document(
    run: Run,
    path: str,
    output: str,
    options: Options,
    overwrite: bool,
    dtype: DType,
    for_all: Mapping[str, str],
) -> None:
    """Translates a document into a new file of its format, and reports on stderr."""
    if not output or not (is_stream(output) or same_format(path, output)):
        ending = os.path.splitext(path)[1]
        raise InputError(
            f"expected --output with the ending {ending}, because a translated document has the "
            f"format of its input; got {output or 'none'}."
        )
    require_free([output], [path, *run.files()], overwrite)
    document = read_document(path, options)

    import_tensorflow()
    from tf_transformer.machine.threads import use_one_thread_per_batch
    from tf_transformer.tasks import load_predictor

    use_one_thread_per_batch(run.config.decode.parallel_batches)
    step = LineStep(load_predictor(run, dtype), (), 0, "", None, for_all)
    texts: list[str] = []

    def translate(new: list[str]) -> list[str]:
        texts.extend(new)
        with SentenceProgress(len(new)) as bar:
            lines = step(new, progress=bar.add)
            bar.catch_up(len(new))
        return [one_line(line.n_best[0].text) for line in lines]

    content, count = translated(document, translate)
    write_output(output, content, overwrite)
    at_end = f"; {count:,} lost tags, which stand at their ends" * bool(count)
    sys.stderr.write(step.report(texts) + f"{output}: {len(texts):,} texts translated{at_end}\n")


class Line(NamedTuple):
    """The results for one line."""

    n_best: "list[Prediction]"
    log_probability: float = 0.0  # of the line of --score_target
    links: Sequence[tuple[int, int]] = ()


@dataclass
class LineStep:
    """A step from lines to their results; counts the lines whose best prediction has notices."""

    predictor: Any
    names: Sequence[str]  # the inputs beside the texts, of prefixes, target_tags and score_target
    done: int  # number of lines before the first call
    unit: str  # of the alignments; "" without them
    attention: "AttentionFile | None"  # gets the attention of the first lines
    # Inputs that are the same for all texts, such as terms.
    for_all: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.unit and not hasattr(self.predictor, "align"):
            raise InputError(
                "this run's predictions cannot be aligned with their inputs. Leave out "
                "--alignments_output."
            )
        if self.attention and not hasattr(self.predictor, "attention"):
            raise InputError("this run has no attention to show. Leave out --attention_output.")
        self._counts = dict.fromkeys(REPORTED, 0)
        self._first: dict[Notice, list[int]] = {notice: [] for notice in REPORTED}

    def __call__(
        self, texts: Sequence[str], *columns: Sequence[str], progress: Progress
    ) -> list[Line]:
        predictor, given = self.predictor, dict(zip(self.names, columns, strict=True))
        given |= {name: [value] * len(texts) for name, value in self.for_all.items()}
        if "target_tags" in given:
            texts = predictor.joined(texts, target_tags=given.pop("target_tags"))
        if targets := given.pop("score_target", None):
            from tf_transformer.inference.predictor import predictions_of

            pairs = zip(targets, predictor.score(texts, targets, progress), strict=True)
            lines = [
                Line(predictions_of([target], [score.score], score.cut), score.log_probability)
                for target, score in pairs
            ]
        else:
            lines = list(map(Line, predictor.n_best(texts, progress=progress, **given)))
        best = [line.n_best[0].text for line in lines]
        if self.unit:
            aligned = zip(lines, predictor.align(texts, best), strict=True)
            lines = [line._replace(links=alignment.links(self.unit)) for line, alignment in aligned]
        if self.attention:
            room = self.attention.room()
            records = predictor.attention(texts[:room], best[:room]) if room else []
            self.attention.add(records, len(lines))
        for number, line in enumerate(lines, self.done + 1):
            for notice in line.n_best[0].notices:
                self._counts[notice] += 1
                if self._counts[notice] <= LISTED:
                    self._first[notice].append(number)
        self.done += len(lines)
        return lines

    def report(self, texts: Sequence[str] = ()) -> str:
        """A line of text for each notice that occurred, like "empty output: 2 lines (3, 5)".

        With the texts of a document, it shows their starts in place of the numbers of lines.
        """
        limits = {
            "longest": self.predictor.max_source_length,
            "trained": self.predictor.config.trained_source_length,
        }
        lines = []
        for notice, text in REPORTED.items():
            if count := self._counts[notice]:
                numbers = self._first[notice]
                shown = [f"{texts[n - 1]!r:.40}" if texts else str(n) for n in numbers]
                listed = ", ".join(shown) + ", ..." * (count > LISTED)
                where = f"{count:,} {'text' if texts else 'line'}{'s' * (count > 1)} ({listed})"
                lines.append(f"{text.format(**limits)}: {where}\n")
        return "".join(lines)


def _text(number: int, line: Line) -> list[str]:
    return [one_line(line.n_best[0].text)]


def _n_best(number: int, line: Line) -> list[str]:
    rows = []
    for prediction in line.n_best:
        fields = [str(number), one_line(prediction.text), f"{prediction.score:.6f}"]
        if prediction.word_probabilities:
            fields.append(" ".join(f"{p:.6g}" for p in prediction.word_probabilities))
        rows.append(" ||| ".join(fields))
    return rows


def _score(number: int, line: Line) -> list[str]:
    return [f"{line.n_best[0].score:.6f}"]


def _pair_score(number: int, line: Line) -> list[str]:
    return [f"{line.n_best[0].score:.6f}\t{line.log_probability:.6f}"]


def _links(number: int, line: Line) -> list[str]:
    return [" ".join(f"{source}-{target}" for source, target in line.links)]
