"""Whether translations depend on the batch: python benchmarks/invariance.py --run_dir R --source F.

Translates the same lines alone, in file order, sorted, shuffled, in small and in large batches,
and prints for each how many translations differ from the first way's and by how much scores do.
The second table compares forms of the same model: bfloat16, and an exported search under XLA.
"""

import itertools
import pathlib
import tempfile
from collections.abc import Callable, Sequence

import numpy as np

from tf_transformer.commands import command_line
from tf_transformer.translator import Translation, Translator

SHUFFLED = np.random.default_rng(1)


def main(run_dir: str, source: str, beam_sizes: list[int] | None = None, lines: int = 1000) -> None:
    """Prints the two tables.

    Args:
        run_dir: a trained run's folder.
        source: file of sentences.
        beam_sizes: beams to try; 1 (greedy) and 4 when not given.
        lines: how many of the file's lines.
    """
    with pathlib.Path(source).open(encoding="utf-8", newline="\n") as file:
        texts = [line.removesuffix("\n") for line in itertools.islice(file, lines)]
    for beam_size in beam_sizes or [1, 4]:
        translator = Translator.from_run(run_dir, beam_size=beam_size)
        expected = translator(texts)
        size = translator.config.batch_size
        print(f"beam {beam_size}, {len(texts):,} sentences, batches of {size}")
        for name, translate in ways(run_dir, beam_size).items():
            report(name, expected, translate(texts))
        report("bfloat16", expected, translator.with_dtype("bfloat16")(texts))
        report("exported, XLA", expected, exported(translator, texts))


def ways(run_dir: str, beam_size: int) -> dict[str, Callable[[list[str]], list[Translation]]]:
    """Ways to divide the same sentences into batches."""

    def with_batches_of(size: int) -> Translator:
        return Translator.from_run(run_dir, beam_size=beam_size, batch_size=size)

    some, small = with_batches_of(64), with_batches_of(7)

    def one_by_one(texts: list[str]) -> list[Translation]:
        return [some([text])[0] for text in texts]

    def shuffled(texts: list[str]) -> list[Translation]:
        order = SHUFFLED.permutation(len(texts))
        # Hundreds at a time, so that neighbours differ, not only the order of all.
        found = []
        for part in np.array_split(order, 10):
            found += some([texts[i] for i in part])
        return [found[place] for place in np.argsort(order)]

    def beside_a_long_one(texts: list[str]) -> list[Translation]:
        # Longer than half the long one, so that they share its batch, padded to its length.
        found = []
        for text in texts:
            found.append(small([text, f"{text} {text.rstrip('.')}"])[0])
        return found

    return {
        "one by one": one_by_one,
        "batches of 7": small,
        "batches of 1,000": with_batches_of(1000),
        "shuffled": shuffled,
        "beside one twice as long": beside_a_long_one,
    }


def exported(translator: Translator, texts: Sequence[str]) -> list[Translation]:
    """What the compiled SavedModel gives, 50 sentences at a time."""
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


def report(name: str, expected: list[Translation], found: list[Translation]) -> None:
    """Prints a row: different strings, and the largest difference of scores of equal strings."""
    pairs = list(zip(expected, found, strict=True))
    same = [abs(a.score - b.score) for a, b in pairs if a.text == b.text]
    print(f"  {name:26} different: {len(pairs) - len(same):4}   scores within {max(same):.1e}")


if __name__ == "__main__":
    command_line.run(main)
