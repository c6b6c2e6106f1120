"""Scores a run on a test set: python evaluate.py --run_dir runs/x --source t.en --reference t.de.

The last line on stdout is one JSON object. With --hypotheses it scores given outputs:

    python evaluate.py --hypotheses out.txt --reference ref.txt --baseline old.txt --resamples 1000
"""

import json
import math
from typing import TYPE_CHECKING, Any

from tf_transformer.commands.input_files import check_files
from tf_transformer.config import BleuTokenizer, Corpus, DType
from tf_transformer.data.corpora import check_corpus
from tf_transformer.errors import InputError
from tf_transformer.files.outputs import require_free, write_output
from tf_transformer.files.reading import one_line, split_paths
from tf_transformer.run.run import Run

if TYPE_CHECKING:
    from tf_transformer.tasks import Evaluation, Task, TestSet


def main(
    run_dir: str = "",
    source: str = "",
    reference: str = "",
    corpus: Corpus = Corpus(),
    hypotheses: str = "",
    baseline: str = "",
    tokenize: BleuTokenizer | None = None,
    lowercase: bool = False,
    ter: bool = False,
    resamples: int = 0,
    normalize: bool = True,
    label_separator: str = "",
    task: str = "",
    output: str = "",
    overwrite: bool = False,
    dtype: DType = "float32",
    **decode_options: Any,
) -> None:
    """Makes predictions for a test set and prints their scores: BLEU with its signature, chrF.

    Args:
        run_dir: the run's folder; not needed to score --hypotheses as translations.
        source: file of inputs; without it a run on the generated corpus takes its test pairs.
        reference: their references, line by line; for translations also several files, with commas
            between them. A blank line in one of several files is a missing reference.
        corpus: a test set in any format, in place of source and reference: such as
            --corpus.path test.tsv.
        hypotheses: file of outputs to score; nothing is predicted then.
        baseline: with --hypotheses, another system's outputs to compare with.
        tokenize: sacreBLEU's tokenizer for BLEU; none: the files are tokenised, with spaces between
            the tokens; null: the run's train.bleu_tokenize, or 13a.
        lowercase: of translations, whether upper and lower case are equal.
        ter: of translations, whether to compute the translation edit rate.
        resamples: of translations, samples of the bootstrap, for the confidence interval of BLEU
            and the test of the difference to --baseline; 0: neither.
        normalize: of translations, whether the Unicode form and the spaces of both sides are
            normalized before they are scored.
        label_separator: of given labels, what separates several of one text; by default the run's
            data.label_separator.
        task: whose scores these are, such as parsing; by default the run's, or translation.
        output: file for the predictions.
        overwrite: whether the predictions replace an existing file.
        dtype: of weights and computation.
        **decode_options: fields of DecodeConfig; null: as configured in the run.
    """
    if not (run_dir or hypotheses):
        raise InputError("give --run_dir, or --hypotheses and --reference.")
    # Checks the options before TensorFlow is imported.
    run = Run.load(run_dir, **decode_options) if run_dir else None
    config = run.config if run else None
    if output and run and not hypotheses:
        texts = filter(None, [source, reference, corpus.source, corpus.target, corpus.path])
        require_free([output], [*texts, *run.folder.files()], overwrite)
    if hypotheses:
        _check_given(source, reference, output, corpus)
    task = task or (config.task if config else "translation")
    check_files(task, source, hypotheses, baseline, *split_paths(reference))
    if corpus != Corpus():
        if source or reference:
            raise InputError("give --source and --reference, or --corpus, not both.")
        check_corpus(corpus)

    from tf_transformer import tasks
    from tf_transformer.machine.threads import use_one_thread_per_batch
    from tf_transformer.tasks.translation_scores import ScoreOptions

    if run:
        use_one_thread_per_batch(run.config.decode.parallel_batches)

    if baseline and not hypotheses:
        raise InputError("--baseline needs --hypotheses, such as a file that --output has written.")
    tokenize = tokenize or (config.train.bleu_tokenize if config else "13a")
    separator = label_separator or (config.data.label_separator if config else "")
    options = ScoreOptions(tokenize, lowercase, ter, resamples, normalize, separator)
    kind = tasks.get(task).with_options(options)
    if hypotheses or run is None:
        scores = kind.score_outputs(hypotheses, reference, baseline)
    else:
        if corpus != Corpus():
            test = kind.load_corpus(run.config, corpus)
        else:
            test = kind.load_test(run.config, source, reference)
        predictions, scores = _evaluate(kind, run, test, dtype)
        if output:
            lines = "".join(one_line(text) + "\n" for text in predictions)
            write_output(output, lines, overwrite)
    print(kind.describe(scores))
    print(json.dumps({name: _for_json(score) for name, score in scores.items()}))


def _for_json(score: Any) -> Any:
    """A score, or None for one that is not finite: JSON has no NaN and no infinity."""
    return None if isinstance(score, float) and not math.isfinite(score) else score


def _check_given(source: str, reference: str, output: str, corpus: Corpus) -> None:
    """Raises an `InputError` for options that do not belong to given outputs."""
    if source or output or corpus != Corpus() or not reference:
        raise InputError(
            "--hypotheses needs --reference; nothing is predicted, so --source, --corpus and "
            "--output have no meaning."
        )


def _evaluate(task: "Task", run: Run, test: "TestSet", dtype: DType) -> "Evaluation":
    from tf_transformer.inference.streaming import SentenceProgress
    from tf_transformer.tasks import load_predictor

    predictor = load_predictor(run, dtype)
    with SentenceProgress(len(test.inputs)) as bar:
        evaluation = task.evaluate(predictor, test, bar.advance)
        bar.catch_up(len(test.inputs))
    return evaluation
