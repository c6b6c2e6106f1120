"""Translates lines: python translate.py --run_dir runs/x < in.txt > out.txt; or a document."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tf_transformer.commands.notice_report import NoticeReport
from tf_transformer.commands.translate_document import refuse_options_of_lines, translate_document
from tf_transformer.config import DType
from tf_transformer.documents import is_document
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.outputs import require_free
from tf_transformer.files.streaming import WINDOW, Output, Progress, Stream
from tf_transformer.files.writing import one_line
from tf_transformer.machine.imports import import_tensorflow
from tf_transformer.run.run import Run
from tf_transformer.text.terms import read_terms
from tf_transformer.text.word_alignment import Unit, to_line

if TYPE_CHECKING:
    from tf_transformer.inference.predictor import Prediction
    from tf_transformer.visualization.attention_file import AttentionFile


def main(
    run_dir: LocalPath,
    input: LocalPath = "",
    output: LocalPath = "",
    resume: bool = False,
    overwrite: bool = False,
    window: int = WINDOW,
    prefixes: LocalPath = "",
    languages: LocalPath = "",
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
        languages: file with the language of each translation, such as por, or its tag >>por<<,
            one per line. An empty line, or a line whose text starts with a tag, has no effect.
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
    columns = {"prefixes": prefixes, "languages": languages, "score_target": score_target}
    further = {"n_best_output": n_best_output, "scores_output": scores_output}
    further |= {"alignments_output": alignments_output}
    of_lines = {"resume": resume, **columns, **further, "attention_output": attention_output}
    if is_document(input):
        refuse_options_of_lines(input, of_lines)
        files = (run_dir, input, output, overwrite)
        translate_document(*files, target_language, retranslate, terms, dtype, decode_options)
        return
    refuse_combinations(of_lines | {"terms": terms}, bool(target_language or retranslate))
    # Files and options are checked before TensorFlow is imported.
    attention = _attention_file(attention_output, overwrite)
    run = Run.load(run_dir, **decode_options)
    names = [name for name, path in columns.items() if path]
    inputs = [input, *(columns[name] for name in names)]
    outputs = [Output(output, _pair_score if score_target else _text), *_outputs(**further)]
    written = filter(None, [*(file.path for file in outputs), attention_output])
    require_free(list(written), [*filter(None, [*inputs, terms]), *run.files()], overwrite)
    stream = Stream(inputs, outputs, window, resume, overwrite)
    for_all = {"terms": read_terms(terms)} if terms else {}
    options: dict[str, Any] = {"dtype": dtype, "alignment_unit": alignment_unit, **for_all}
    options |= {name: bool(path) for name, path in columns.items()}
    named = {f"--{name}": value for name, value in options.items()}
    stream.depends_on(run.search_options() | named, run.identities())

    predictor = _predictor(run, dtype)
    unit = alignment_unit if alignments_output else ""
    step = LineStep(predictor, names, stream.done, unit, attention, for_all)
    stream.run(step)
    sys.stderr.write(step.report.text() + (attention.write() if attention else ""))


def _attention_file(path: str, overwrite: bool) -> "AttentionFile | None":
    if not path:
        return None
    from tf_transformer.visualization.attention_file import AttentionFile  # imports NumPy

    return AttentionFile(path, overwrite)


def _outputs(n_best_output: str, scores_output: str, alignments_output: str) -> list[Output]:
    """The outputs beside the translations that have a path."""
    outputs = (
        Output(n_best_output, _n_best, numbered=True),
        Output(scores_output, _score),
        Output(alignments_output, _links),
    )
    return [file for file in outputs if file.path]


def _predictor(run: Run, dtype: DType) -> Any:
    import_tensorflow()
    from tf_transformer.machine.threads import use_one_thread_per_batch
    from tf_transformer.tasks import load_predictor

    use_one_thread_per_batch(run.config.decode.parallel_batches)
    return load_predictor(run, dtype)


def refuse_combinations(given: Mapping[str, Any], of_documents: bool) -> None:
    """Raises an `InputError` for options that have no meaning for lines or for one another."""
    if of_documents:
        raise InputError(
            "--target_language and --retranslate are options of documents. Give a document as "
            "--input, or leave them out."
        )
    if given["score_target"] and any(
        given[x] for x in ("prefixes", "terms", "n_best_output", "scores_output")
    ):
        raise InputError(
            "--score_target translates nothing. Leave out --prefixes, --terms, --n_best_output and "
            "--scores_output."
        )
    if given["attention_output"] and given["resume"]:
        raise InputError("--attention_output shows the first lines. Leave out --resume.")


class Line(NamedTuple):
    """The results for one line."""

    n_best: "list[Prediction]"
    log_probability: float = 0.0  # of the line of --score_target
    links: Sequence[tuple[int, int]] = ()


@dataclass
class LineStep:
    """A step from lines to their results; counts the lines whose best prediction has notices."""

    predictor: Any
    names: Sequence[str]  # the inputs beside the texts, of prefixes, languages and score_target
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
        self.report = NoticeReport(self.predictor, self.done)

    def __call__(
        self, texts: Sequence[str], *columns: Sequence[str], progress: Progress
    ) -> list[Line]:
        predictor, given = self.predictor, dict(zip(self.names, columns, strict=True))
        given |= {name: [value] * len(texts) for name, value in self.for_all.items()}
        if "languages" in given:
            texts = predictor.joined(texts, languages=given.pop("languages"))
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
        self.report.add([line.n_best for line in lines])
        return lines


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
    return [to_line(line.links)]
