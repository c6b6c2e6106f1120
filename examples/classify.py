"""Fine-tunes a text classifier: a trained run's encoder with a new head, in plain Keras.

    python examples/classify.py --run_dir runs/x --data labelled.tsv --save classifier.keras
    python examples/classify.py --run_dir runs/demo                 # or --from_scratch

Each line of the file is label<TAB>text. Without --data, the texts are numbers in words, and the
labels are their last digits: this needs the extra `generated`. About a fifth of the texts is held
out for the test. The last line printed is one JSON object.
"""

import argparse
import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from tf_transformer import Transformer
from tf_transformer.data.readers.generated import NUMBERS, number_in_words
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_lines
from tf_transformer.inference.translator import Translator
from tf_transformer.text.special_ids import PAD_ID


def read_examples(path: str) -> list[list[str]]:
    """The (label, text) of each line."""
    rows = [line.decode("utf-8", "replace").split("\t", 1) for line in read_lines(path)]
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise InputError(f"line {number} of {path} has no tab. Expected label<TAB>text.")
    if len({label for label, _ in rows}) < 2:
        raise InputError(f"{path} has only one label. Give examples of at least two labels.")
    return rows


def last_digits(count: int) -> list[list[str]]:
    """Distinct random numbers in English words, each labelled with its last digit."""
    numbers = np.random.default_rng(1).choice(NUMBERS, count, replace=False)
    return [[str(number % 10), number_in_words(int(number), "en")] for number in numbers]


def classifier(transformer: Transformer, classes: int) -> keras.Model:
    """A model from ids (B, S) to logits (B, classes): encoder, mean over tokens, dense layer."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    memory = transformer.encode(ids)  # (B, S, D), as part of the functional model
    mean = keras.layers.GlobalAveragePooling1D()(memory, mask=keras.ops.not_equal(ids, PAD_ID))
    return keras.Model(ids, keras.layers.Dense(classes, name="head")(mean), name="classifier")


def fine_tune(options: argparse.Namespace) -> dict[str, object]:
    """Trains and saves a classifier; returns its accuracy on held-out texts, and the labels."""
    rows = read_examples(options.data) if options.data else last_digits(options.examples)
    translator = Translator.from_run(options.run_dir)
    keras.utils.set_random_seed(options.seed)
    transformer = translator.model
    if options.from_scratch:
        transformer = Transformer.from_config(transformer.get_config())
        transformer.build()
    labels = sorted({label for label, _ in rows})
    y = np.array([labels.index(label) for label, _ in rows])
    tokens = translator.codec.encode_batch("source", [text for _, text in rows])
    longest = min(translator.max_source_length, max(map(len, tokens)))
    x = keras.utils.pad_sequences(tokens, longest, padding="post", truncating="post", value=PAD_ID)
    held_out, rest = np.split(np.random.default_rng(1).permutation(len(rows)), [len(rows) // 5 + 1])
    model = classifier(transformer, len(labels))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(options.learning_rate), loss, metrics=["accuracy"])
    model.fit(x[rest], y[rest], batch_size=32, epochs=options.epochs, verbose=2)
    accuracy = model.evaluate(x[held_out], y[held_out], verbose=0, return_dict=True)["accuracy"]
    if options.save:
        partial = pathlib.Path(options.save).with_suffix(".partial.keras")
        model.save(partial)
        partial.replace(options.save)
    return {"accuracy": round(accuracy, 4), "held_out": len(held_out), "labels": labels}


def main() -> None:
    """Reads options, fine-tunes and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--run_dir", required=True, help="folder of a trained run")
    parser.add_argument("--data", help="file of lines label<TAB>text, plain or compressed")
    parser.add_argument("--examples", type=int, default=500, help="number of texts without --data")
    parser.add_argument("--from_scratch", action="store_true", help="start with random weights")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the texts")
    parser.add_argument("--learning_rate", type=float, default=1e-3, help="learning rate of Adam")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of new weights, order and dropout"
    )
    parser.add_argument("--save", help=".keras file for the classifier")
    options = parser.parse_args()
    if options.save and not options.save.endswith(".keras"):
        parser.error(f"--save must end in .keras, got {options.save}.")
    if options.save and pathlib.Path(options.save).exists():
        parser.error(f"{options.save} exists already. Move it away, or give another name.")
    try:
        print(json.dumps(fine_tune(options)))
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
