"""Perplexity of language models on a text, beside the compression of xz.

    python -m research.perplexity --run_dirs '["runs/english"]' --train_file english.txt \
        --reference test.txt --output research/results/language_models.json

xz compresses the training text with the test text after it: the bits beyond those of the training
text alone are its bits for the test text.
"""

import lzma
from collections.abc import Sequence
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from tf_transformer.commands import command_line
from tf_transformer.files.reading import read_texts
from tf_transformer.run.run import Run


def main(run_dirs: list[str], train_file: str, reference: str, output: str = "") -> None:
    """Prints a row for each run, then one for xz.

    Args:
        run_dirs: trained runs of the task language_modeling.
        train_file: their training text.
        reference: the text to test on, one line after the other without context.
        output: result file to write, for example research/results/language_models.json.
    """
    train, test = (read_texts(path)[0] for path in (train_file, reference))
    rows = [scores(run_dir, reference) for run_dir in run_dirs]
    rows.append({"system": "xz", "bits_per_byte": round(compressed_bits_per_byte(train, test), 3)})
    print(of_rows(rows, left=1))
    results.save(output, rows, ("tensorflow", "keras"), summary={"lines": len(test)})


def scores(run_dir: str, reference: str) -> dict[str, Any]:
    """The perplexities of a run."""
    from tf_transformer import tasks
    from tf_transformer.config import Config

    task = tasks.get("language_modeling")
    predictor = tasks.load_predictor(Run.load(run_dir))
    found = task.evaluate(predictor, task.load_test(Config(), "", reference)).scores
    names = ("perplexity", "word_perplexity", "bits_per_byte")
    return (
        {"system": run_dir}
        | {name: round(float(found[name]), 3) for name in names}
        | {"parameters": predictor.model.count_params()}
    )


def compressed_bits_per_byte(train: Sequence[str], test: Sequence[str]) -> float:
    """The bits of xz for each byte of the test text, after the training text."""
    before, after = ("".join(f"{line}\n" for line in lines).encode() for lines in (train, test))
    first, both = (len(lzma.compress(text, preset=9)) for text in (before, before + after))
    return 8 * (both - first) / len(after)


if __name__ == "__main__":
    command_line.run(main)
