"""Translates lines: python translate.py --run_dir runs/x < in.txt > out.txt."""

import itertools
import sys

from tf_transformer import command_line

WINDOW = 10_000  # lines read, sorted by length and translated together


def main(
    run_dir: str,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    batch_size: int | None = None,
    average: int | None = None,
) -> None:
    """Writes exactly one line for each line read; only newlines end lines.

    Args:
        run_dir: the run's folder.
        beam_size: hypotheses kept a sentence; the run's own when not given.
        length_penalty: exponent of the length penalty; the run's own when not given.
        batch_size: sentences translated at once; the run's own when not given.
        average: how many of the newest checkpoints to average; the run's own when not given.
    """
    from tqdm import tqdm

    from tf_transformer.files import one_line
    from tf_transformer.translator import Translator

    translator = Translator.from_run(
        run_dir,
        beam_size=beam_size,
        length_penalty=length_penalty,
        batch_size=batch_size,
        average=average,
    )
    lines = (line.removesuffix(b"\n").decode("utf-8", "replace") for line in sys.stdin.buffer)
    with tqdm(unit="sentence", file=sys.stderr) as bar:
        while window := list(itertools.islice(lines, WINDOW)):
            for found in translator(window, progress=bar.update):
                sys.stdout.buffer.write(one_line(found.text).encode("utf-8") + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    command_line.run(main)
