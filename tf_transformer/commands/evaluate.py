"""Scores a run on a test set: python evaluate.py --run_dir runs/x --source t.en --reference t.de.

The last line on stdout is one JSON object.
"""

import dataclasses
import json
from typing import Any

from tf_transformer.config import DType


def main(
    run_dir: str,
    source: str = "",
    reference: str = "",
    output: str = "",
    dtype: DType = "float32",
    **decode_options: Any,
) -> None:
    """Translates a test set and prints BLEU with its signature, chrF and exact matches.

    Args:
        run_dir: the run's folder.
        source: file to translate; without it a run on the generated corpus takes its test pairs.
        reference: its translation, line by line.
        output: file for the translations.
        dtype: of weights and computation.
        **decode_options: fields of DecodeConfig; the run's own where None.
    """
    from tf_transformer.files import one_line, write_whole
    from tf_transformer.streaming import ProgressBar
    from tf_transformer.tasks import translation
    from tf_transformer.translator import Translator

    test = translation.load_test(run_dir, source, reference)
    translator = Translator.from_run(run_dir, dtype, **decode_options)
    with ProgressBar(len(test)) as bar:
        found = translator(test.sources, progress=bar.advance)
        bar.catch_up(len(test))
    hypotheses = [each.text for each in found]
    if output:
        write_whole(output, "".join(one_line(text) + "\n" for text in hypotheses))
    result = translation.score(hypotheses, test.targets)
    print(
        f"{result.sentences:,} sentences: exact match {result.exact_match:.1f}%, "
        f"chrF {result.chrf:.2f}, BLEU {result.bleu:.2f} ({result.signature})"
    )
    print(json.dumps(dataclasses.asdict(result)))
