"""Scores a run on a test set: python evaluate.py --run_dir runs/x --source t.en --reference t.de.

The last line on stdout is one JSON object. With --hypotheses it scores given outputs.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tf_transformer.config import DType
from tf_transformer.errors import InputError
from tf_transformer.run_folder import RunFolder

if TYPE_CHECKING:
    from tf_transformer.tasks import Evaluation, Task, TestSet


def main(
    run_dir: str = "",
    source: str = "",
    reference: str = "",
    hypotheses: str = "",
    task: str = "",
    output: str = "",
    dtype: DType = "float32",
    **decode_options: Any,
) -> None:
    """Makes predictions for a test set and prints their scores: BLEU with its signature, chrF.

    Args:
        run_dir: the run's folder; not needed to score --hypotheses as translations.
        source: file of inputs; without it a run on the generated corpus takes its test pairs.
        reference: their references, line by line.
        hypotheses: file of outputs to score; nothing is predicted then.
        task: whose scores these are, such as parsing; by default the run's, or translation.
        output: file for the predictions.
        dtype: of weights and computation.
        **decode_options: fields of DecodeConfig; null: as configured in the run.
    """
    if not (run_dir or hypotheses):
        raise InputError("give --run_dir, or --hypotheses and --reference.")
    config = RunFolder(run_dir).load_config() if run_dir else None
    if run_dir:  # checks the options before TensorFlow is imported
        decode = RunFolder(run_dir).load_decode_config(**decode_options)

    from tf_transformer import tasks
    from tf_transformer.threads import use_one_thread_per_batch

    if run_dir:
        use_one_thread_per_batch(decode.parallel_batches)

    kind = tasks.get(task or (config.task if config else "translation"))
    if hypotheses or config is None:
        _check_given(source, reference, output)
        scores = kind.score(*kind.read_outputs(hypotheses, reference))
    else:
        test = kind.load_test(config, source, reference)
        predictions, scores = _evaluate(kind, run_dir, test, dtype, decode_options)
        _write(output, predictions)
    print(kind.describe(scores))
    print(json.dumps(scores))


def _check_given(source: str, reference: str, output: str) -> None:
    """Raises an `InputError` for options that do not belong to given outputs."""
    if source or output or not reference:
        raise InputError(
            "--hypotheses needs --reference; nothing is predicted, so --source and --output have "
            "no meaning."
        )


def _evaluate(
    task: "Task", run_dir: str, test: "TestSet", dtype: DType, decode_options: dict[str, Any]
) -> "Evaluation":
    from tf_transformer.streaming import ProgressBar
    from tf_transformer.tasks import load_predictor

    predictor = load_predictor(run_dir, dtype, **decode_options)
    with ProgressBar(len(test.inputs)) as bar:
        evaluation = task.evaluate(predictor, test, bar.advance)
        bar.catch_up(len(test.inputs))
    return evaluation


def _write(output: str, predictions: Sequence[str]) -> None:
    from tf_transformer.files import one_line, write_whole

    if output:
        write_whole(output, "".join(one_line(text) + "\n" for text in predictions))
