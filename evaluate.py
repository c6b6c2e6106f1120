"""Scores a run on a test set: python evaluate.py --run_dir runs/x --source t.en --reference t.de.

The last line on stdout is one JSON object.
"""

import dataclasses
import json
import sys

from tf_transformer import command_line


def main(
    run_dir: str,
    source: str = "",
    reference: str = "",
    beam_size: int | None = None,
    length_penalty: float | None = None,
    batch_size: int | None = None,
    average: int | None = None,
    output: str = "",
) -> None:
    """Translates a test set and prints BLEU with its signature, chrF and exact matches.

    Args:
        run_dir: the run's folder.
        source: file to translate; without it a run on the generated corpus takes its test pairs.
        reference: its translation, line by line.
        beam_size: hypotheses kept a sentence; the run's own when not given.
        length_penalty: exponent of the length penalty; the run's own when not given.
        batch_size: sentences translated at once; the run's own when not given.
        average: how many of the newest checkpoints to average; the run's own when not given.
        output: file for the translations.
    """
    from tqdm import tqdm

    from tf_transformer.files import one_line, write_whole
    from tf_transformer.tasks import translation
    from tf_transformer.translator import Translator

    test = translation.load_test(run_dir, source, reference)
    translator = Translator.from_run(
        run_dir,
        beam_size=beam_size,
        length_penalty=length_penalty,
        batch_size=batch_size,
        average=average,
    )
    with tqdm(total=len(test), unit="sentence", file=sys.stderr) as bar:
        hypotheses = [found.text for found in translator(test.sources, progress=bar.update)]
    if output:
        write_whole(output, "".join(one_line(text) + "\n" for text in hypotheses))
    result = translation.score(hypotheses, test.targets)
    print(
        f"{result.sentences:,} sentences: exact match {result.exact_match:.1f}%, "
        f"chrF {result.chrf:.2f}, BLEU {result.bleu:.2f} ({result.signature})"
    )
    print(json.dumps(dataclasses.asdict(result)))


if __name__ == "__main__":
    command_line.run(main)
