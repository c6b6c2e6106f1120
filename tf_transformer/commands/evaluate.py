"""Scores a run on a test set: python evaluate.py --run_dir runs/x --source t.en --reference t.de.

With --hypotheses, it scores given outputs. The last line on stdout is one JSON object.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tf_transformer.commands.input_files import check_files
from tf_transformer.config import Corpus, DType
from tf_transformer.config.option import replaced
from tf_transformer.data.corpora import check_corpus, labels
from tf_transformer.errors import InputError
from tf_transformer.files.aligned import table
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
    corpora: tuple[Corpus, ...] = (),
    hypotheses: LocalPath = "",
    baseline: LocalPath = "",
    metric: str = "",
    task: str = "",
    output: LocalPath = "",
    scores_output: LocalPath = "",
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
        corpora: several such test sets, like those of the directions of a model. Their scores are a
            table; the last line has the means, and the scores of each.
        hypotheses: file of outputs to score; the command then predicts nothing.
        baseline: file with another system's outputs, for a comparison with --hypotheses.
        metric: additional metrics, with commas between them: ter (translations), comet, a
            registered metric, or module:attribute.
        task: task whose metrics are computed, like parsing. Empty: the task of the run, or
            translation.
        output: file for the predictions.
        scores_output: file for the scores: the JSON object of the last line.
        overwrite: replace an existing file.
        seen: say how many sentences the training text of the run has, and score both parts. For a
            run of an earlier version, this reads the training text.
        dtype: dtype of weights and computation.
        **decode_options: fields of DecodeConfig, and `task_options`, options of the task; null:
            the value in the run's config.yaml.
    """
    if not (run_dir or hypotheses):
        raise InputError("give --run_dir, or --hypotheses and --reference.")
    # Options and files are checked before TensorFlow is imported.
    run = Run.load(run_dir, **decode_options) if run_dir else None
    if corpus != Corpus():
        corpora = (corpus, *corpora)
    given = {"source": source, "reference": reference, "hypotheses": hypotheses}
    refuse_combinations(given | {"baseline": baseline, "output": output}, corpora)
    if outputs := list(filter(None, [output, scores_output])):
        texts = [source, reference, *(x for c in corpora for x in (c.source, c.target, c.path))]
        texts = list(filter(None, [*texts, hypotheses, baseline]))
        require_free(outputs, [*texts, *(run.files() if run else [])], overwrite)
    options = _task_options(task, run, decode_options.get("task_options") or {})
    check_files(options.name, source, hypotheses, baseline, *split_paths(reference))
    for test_set in corpora:
        check_corpus(test_set)

    import_tensorflow()
    from tf_transformer import tasks

    kind = tasks.get(options.name).with_options(options).with_metrics(*split_paths(metric))
    if hypotheses or run is None:
        scores = score_outputs(kind, source, reference, hypotheses, baseline)
        print(_line(kind, scores))
    else:
        tests = _test_sets(kind, run, source, reference, corpora)
        evaluations = _evaluate(kind, run, tests, dtype)
        if output:
            ((predictions, _),) = evaluations.values()
            lines = "".join(one_line(text) + "\n" for text in predictions)
            write_output(output, lines, overwrite)
        scores = _report(kind, run, tests, evaluations, seen)
    _print_json(scores, scores_output, overwrite)


def _print_json(scores: Mapping[str, Any], path: str, overwrite: bool) -> None:
    """Prints scores as one JSON object, and writes it to a file if `path` is not empty."""
    text = json.dumps(_finite(scores))
    print(text)
    if path:
        write_output(path, f"{text}\n", overwrite)


def refuse_combinations(given: Mapping[str, str], corpora: Sequence[Corpus]) -> None:
    """Raises an `InputError` for files that have no meaning for one another."""
    if given["hypotheses"] and (given["output"] or corpora or not given["reference"]):
        raise InputError(
            "--hypotheses needs --reference. Nothing is predicted, so --corpus and --output have "
            "no meaning; leave them out."
        )
    if given["output"] and len(corpora) > 1:
        raise InputError("--output is for the predictions of one test set. Give one --corpus.")
    if corpora and (given["source"] or given["reference"]):
        raise InputError("give --source and --reference, or --corpus, not both.")
    if given["baseline"] and not given["hypotheses"]:
        raise InputError("--baseline needs --hypotheses, such as a file that --output has written.")


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


def _report(
    task: "Task",
    run: Run,
    tests: "Mapping[str, TestSet]",
    evaluations: "Mapping[str, Evaluation]",
    seen: bool,
) -> dict[str, Any]:
    """Prints the scores of test sets, and what the training has seen of them if `seen`.

    Returns the scores of one test set; of several, their means, and the scores of each.
    """
    scores = {name: own.scores for name, own in evaluations.items()}
    is_one = len(scores) == 1
    print(_line(task, *scores.values()) if is_one else _table(scores))
    means = {} if is_one else _means(scores)
    if seen:
        from tf_transformer.tasks.seen import compare_with_training, describe

        predictions = {name: own.predictions for name, own in evaluations.items()}
        for name, parts in compare_with_training(task, run, tests, predictions).items():
            print("" if is_one else f"{name}: ", describe(parts), sep="")
            scores[name] = scores[name] | parts
    return next(iter(scores.values())) if is_one else means | {"corpora": scores}


def _line(task: "Task", scores: Mapping[str, Any]) -> str:
    """The scores as one line, with those of requested metrics."""
    requested = [f"{metric.name} {scores[metric.name]:.4g}" for metric in task.requested]
    return ", ".join([task.describe(scores), *requested])


def _table(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """The scores of several corpora as a table."""
    rows = {
        name: {key: f"{x:.2f}" for key, x in own.items() if isinstance(x, float)}
        for name, own in scores.items()
    }
    return table(rows).removeprefix("\n")


def _means(scores: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The means of the scores of several corpora, and the facts that all of them share."""
    means: dict[str, Any] = {}
    for key, value in next(iter(scores.values())).items():
        column = [own[key] for own in scores.values() if key in own]
        if isinstance(value, float):
            means[key] = sum(column) / len(column)
        elif column.count(value) == len(column):  # such as a signature
            means[key] = value
    return means


def _finite(scores: Any) -> Any:
    """Scores, also in dicts, with None for NaN and infinity, which JSON does not have."""
    if isinstance(scores, Mapping):
        return {name: _finite(score) for name, score in scores.items()}
    return None if isinstance(scores, float) and not math.isfinite(scores) else scores


def _task_options(task: str, run: Run | None, given: Mapping[str, Any]) -> Any:
    """The options of the task whose metrics are computed, with samples for confidence intervals.

    A run stores 0 samples, because training computes no intervals; a given number counts.
    """
    task = task or (run.config.task.name if run else "translation")
    options: Any = run.config.task if run else None
    if not run or options.name != task:
        options = replaced(options_of(task)(name=task), given, f"the task {task}")
    if getattr(options, "resamples", None) == 0 and given.get("resamples") is None:
        return replace(options, resamples=RESAMPLES)
    return options


def _test_sets(
    task: "Task", run: Run, source: str, reference: str, corpora: Sequence[Corpus]
) -> "dict[str, TestSet]":
    """Test sets by short names of their corpora; files of texts have the name ""."""
    if not corpora:
        return {"": task.load_test(run.config, source, reference)}
    read = [task.load_corpus(run.config, corpus) for corpus in corpora]
    return dict(zip(labels(corpora), read, strict=True))


def _evaluate(
    task: "Task", run: Run, tests: "Mapping[str, TestSet]", dtype: DType
) -> "dict[str, Evaluation]":
    """The predictions of a run for test sets, and their scores, by the names of the sets."""
    from tf_transformer.files.streaming import SentenceProgress
    from tf_transformer.machine.threads import use_one_thread_per_batch
    from tf_transformer.tasks import load_predictor

    use_one_thread_per_batch(run.config.decode.parallel_batches)
    predictor = load_predictor(run, dtype)
    evaluations = {}
    for name, test in tests.items():
        with SentenceProgress(len(test.inputs)) as bar:
            evaluations[name] = task.evaluate(predictor, test, bar.add)
            bar.catch_up(len(test.inputs))
    return evaluations
