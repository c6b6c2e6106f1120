"""Scores a run on a test set: python evaluate.py --run_dir runs/x --source t.en --reference t.de.

With --hypotheses, it scores given outputs. The last line on stdout is one JSON object.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tf_transformer.commands.input_files import check_files
from tf_transformer.config import Corpus, DType
from tf_transformer.config.option import replaced
from tf_transformer.data.corpora import check_corpus
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.outputs import require_free, write_output
from tf_transformer.files.reading import read_texts, split_paths
from tf_transformer.files.writing import one_line
from tf_transformer.machine.imports import import_tensorflow
from tf_transformer.registry import options_of
from tf_transformer.run.run import Run

if TYPE_CHECKING:
    from tf_transformer.tasks import Evaluation, Task, TestSet

RESAMPLES = 1000  # samples for confidence intervals


def main(
    run_dir: LocalPath = "",
    source: LocalPath = "",
    reference: LocalPath = "",
    corpus: Corpus = Corpus(),
    hypotheses: LocalPath = "",
    baseline: LocalPath = "",
    metric: str = "",
    task: str = "",
    output: LocalPath = "",
    overwrite: bool = False,
    seen: bool = True,
    dtype: DType = "float32",
    **decode_options: Any,
) -> None:
    """Makes predictions for a test set and prints their scores, such as BLEU and chrF.

    Args:
        run_dir: folder of the run; a,b,c for an ensemble of three runs with one target vocabulary.
            Translations in --hypotheses need no run.
        source: file of inputs. Empty: a run on the generated corpus takes its test pairs. With
            --hypotheses, only metrics that read inputs need it.
        reference: file of references; line n belongs to line n of source. Translations may have
            several files, with commas between the paths; a blank line in one of them is a missing
            reference.
        corpus: test set in any format, like --corpus.path test.tsv; replaces source and reference.
        hypotheses: file of outputs to score; the command then predicts nothing.
        baseline: file with another system's outputs, for a comparison with --hypotheses.
        metric: additional metrics, with commas between them: ter (translations), comet, a
            registered metric, or module:attribute.
        task: task whose metrics are computed, like parsing. Empty: the task of the run, or
            translation.
        output: file for the predictions.
        overwrite: replace an existing file.
        seen: say how many sentences the training text of the run has, and score both parts. This
            reads the training text.
        dtype: dtype of weights and computation.
        **decode_options: fields of DecodeConfig, and `task_options`, options of the task; null:
            the value in the run's config.yaml.
    """
    if not (run_dir or hypotheses):
        raise InputError("give --run_dir, or --hypotheses and --reference.")
    # Options and files are checked before TensorFlow is imported.
    run = Run.load(run_dir, **decode_options) if run_dir else None
    if hypotheses and (output or corpus != Corpus() or not reference):
        raise InputError(
            "--hypotheses needs --reference. Nothing is predicted, so --corpus and --output have "
            "no meaning; leave them out."
        )
    if output and run:
        texts = filter(None, [source, reference, corpus.source, corpus.target, corpus.path])
        require_free([output], [*texts, *run.files()], overwrite)
    task = task or (run.config.task.name if run else "translation")
    if run and run.config.task.name == task:
        options = run.config.task
    else:
        given = decode_options.get("task_options") or {}
        options = replaced(options_of(task)(name=task), given, f"the task {task}")
    options = _with_interval(options, decode_options.get("task_options") or {})
    check_files(task, source, hypotheses, baseline, *split_paths(reference))
    if corpus != Corpus():
        if source or reference:
            raise InputError("give --source and --reference, or --corpus, not both.")
        check_corpus(corpus)
    if baseline and not hypotheses:
        raise InputError("--baseline needs --hypotheses, such as a file that --output has written.")

    import_tensorflow()
    from tf_transformer import tasks

    kind = tasks.get(task).with_options(options).with_metrics(*split_paths(metric))
    if hypotheses or run is None:
        scores = score_outputs(kind, source, reference, hypotheses, baseline)
    else:
        test = _test_set(kind, run, source, reference, corpus)
        predictions, scores = _evaluate(kind, run, test, dtype)
        if output:
            lines = "".join(one_line(text) + "\n" for text in predictions)
            write_output(output, lines, overwrite)
    requested = [f"{metric.name} {scores[metric.name]:.4g}" for metric in kind.requested]
    print(", ".join([kind.describe(scores), *requested]))
    if seen and run and not hypotheses:
        from tf_transformer.tasks.seen import compare_with_training, describe

        parts = compare_with_training(kind, run, test, predictions)
        scores |= parts
        print(describe(parts), end="\n" * bool(parts))
    finite = {  # JSON has neither NaN nor infinity
        name: None if isinstance(score, float) and not math.isfinite(score) else score
        for name, score in scores.items()
    }
    print(json.dumps(finite))


def score_outputs(
    task: "Task", source: str, reference: str, hypotheses: str, baseline: str
) -> dict[str, Any]:
    """The scores of given outputs; see `main` for the files."""
    outputs, references = task.read_outputs(hypotheses, reference)
    inputs = read_texts(source)[0] if source else []
    scores = task.score(inputs, outputs, references)
    if baseline:
        scores |= task.compare(outputs, references, *read_texts(baseline))
    return scores


def _with_interval(options: Any, given: Mapping[str, Any]) -> Any:
    """The options of a task with samples for confidence intervals, unless their number is given.

    A run stores 0, because training computes no intervals.
    """
    if getattr(options, "resamples", None) == 0 and given.get("resamples") is None:
        return replace(options, resamples=RESAMPLES)
    return options


def _test_set(task: "Task", run: Run, source: str, reference: str, corpus: Corpus) -> "TestSet":
    if corpus != Corpus():
        return task.load_corpus(run.config, corpus)
    return task.load_test(run.config, source, reference)


def _evaluate(task: "Task", run: Run, test: "TestSet", dtype: DType) -> "Evaluation":
    """The predictions of a run for a test set, and their scores."""
    from tf_transformer.files.streaming import SentenceProgress
    from tf_transformer.machine.threads import use_one_thread_per_batch
    from tf_transformer.tasks import load_predictor

    use_one_thread_per_batch(run.config.decode.parallel_batches)
    predictor = load_predictor(run, dtype)
    with SentenceProgress(len(test.inputs)) as bar:
        evaluation = task.evaluate(predictor, test, bar.add)
        bar.catch_up(len(test.inputs))
    return evaluation
