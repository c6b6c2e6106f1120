"""Checks that translations do not depend on the batch.

    python -m research.invariance --run_dir runs/mine --source test.en

Translates the same lines alone, shuffled, in small and in large batches, and beside longer ones,
and counts the translations that differ from those in file order. The last two rows compare other
forms of the same model: an export that XLA compiled, and bfloat16.
"""

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import results
from benchmarks.harness.tables import of_rows
from benchmarks.translations.compare import compare, first_lines
from tf_transformer.commands import command_line
from tf_transformer.inference.translator import Translation, Translator

SHUFFLED = np.random.default_rng(1)
BFLOAT16 = "bfloat16"

Translate = Callable[[list[str]], list[Translation]]


def main(
    run_dir: str,
    source: str,
    beam_sizes: list[int] | None = None,
    lines: int = 1000,
    output: str = "",
) -> None:
    """Prints for each way of batching how many translations differ.

    Args:
        run_dir: a trained run's folder.
        source: file of sentences.
        beam_sizes: beams to try; 1 (greedy) and 4 when not given.
        lines: how many of the file's lines.
        output: result file to write, for example research/results/invariance.json.
    """
    texts = first_lines(source, lines)
    rows: list[dict[str, Any]] = []
    for beam in beam_sizes or [1, 4]:
        translator = Translator.from_run(run_dir, beam_size=beam)
        expected = translator(texts)
        for name, translate in ways(run_dir, translator).items():
            comparison = compare(expected, translate(texts))
            rows.append({"beam": beam, "batches": name} | comparison._asdict())
    print(of_rows(rows, left=2))
    exact = [row for row in rows if row["batches"] != BFLOAT16]
    summary = {
        "sentences": len(texts),
        "different": sum(row["different"] for row in exact),
        "scores_within": max(row["scores_within"] for row in exact),
    }
    results.save(output, rows, ("tensorflow", "keras"), summary=summary)


def ways(run_dir: str, translator: Translator) -> dict[str, Translate]:
    """Ways to translate the same sentences."""

    def with_batches_of(size: int) -> Translator:
        beam = translator.config.beam_size
        return Translator.from_run(run_dir, beam_size=beam, batch_size=size)

    some, small = with_batches_of(64), with_batches_of(7)

    def one_by_one(texts: list[str]) -> list[Translation]:
        return [some([text])[0] for text in texts]

    def shuffled(texts: list[str]) -> list[Translation]:
        order = SHUFFLED.permutation(len(texts))
        # Ten parts, because the translator sorts what it gets: each has other neighbours then.
        found = []
        for part in np.array_split(order, 10):
            found += some([texts[i] for i in part])
        return [found[place] for place in np.argsort(order)]

    def beside_a_long_one(texts: list[str]) -> list[Translation]:
        # Both share a batch, so the text is padded to the length of the long one.
        return [small([text, f"{text} {text.rstrip('.')}"])[0] for text in texts]

    return {
        "one by one": one_by_one,
        "batches of 7": small,
        "batches of 1,000": with_batches_of(1000),
        "shuffled": shuffled,
        "beside one twice as long": beside_a_long_one,
        "exported, XLA": lambda texts: exported(translator, texts),
        BFLOAT16: translator.with_dtype("bfloat16"),
    }


def exported(translator: Translator, texts: Sequence[str]) -> list[Translation]:
    """The translations of the compiled SavedModel, 50 sentences at a time."""
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        translator.save(folder, jit_compile=True)
        serve = tf.saved_model.load(folder).signatures["serving_default"]
        found = []
        for start in range(0, len(texts), 50):
            outputs = serve(text=tf.constant(texts[start : start + 50]))
            columns = (outputs["translation"].numpy(), outputs["score"].numpy())
            found += [Translation(t.decode(), float(s)) for t, s in zip(*columns, strict=True)]
    return found


if __name__ == "__main__":
    command_line.run(main)
