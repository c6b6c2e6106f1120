"""Keeps confident translations, with an exported model as a layer of a Keras model on strings.

    python -m export --run_dir runs/x --to served/x/1
    python examples/keras_pipeline.py --saved_model served/x/1 --at_least 0.7 < in.txt

The program translates the lines of stdin. It prints text<TAB>translation for each line with a
confidence, exp(score), of at least --at_least. It needs the SavedModel, and text_lines.py, which
reads text and imports nothing.
"""

import argparse
import os
import pathlib
import runpy
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the SentencePiece ops of the SavedModel

TEXT_LINES = pathlib.Path(__file__).parents[1] / "tf_transformer" / "files" / "text_lines.py"


def pipeline(saved_model: str, at_least: float) -> keras.Model:
    """A model from strings to translations with their confidence.

    One layer maps strings to strings. Ordinary Keras operations follow it.

    Args:
        saved_model: folder of the exported model.
        at_least: smallest confidence of a kept translation, 0 to 1.

    Returns:
        a model from strings (B,) to `translation`, string (B,), `confidence`, float (B,), and
        `kept`, bool (B,).
    """
    text = keras.Input((), dtype="string", name="text")
    translate = keras.layers.TFSMLayer(saved_model, "serving_default", trainable=False)
    found = translate(text)
    confidence = keras.ops.exp(found["score"])
    kept = keras.ops.greater_equal(confidence, at_least)
    outputs = {"translation": found["translation"], "confidence": confidence, "kept": kept}
    return keras.Model(text, outputs)


def main() -> None:
    """Reads options and stdin, and prints the kept lines."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--saved_model", required=True, help="folder of the exported model")
    parser.add_argument("--at_least", type=float, default=0.5, help="smallest confidence, 0 to 1")
    parser.add_argument("--batch_size", type=int, default=32, help="lines in a batch")
    options = parser.parse_args()
    if not (pathlib.Path(options.saved_model) / "saved_model.pb").is_file():
        parser.error(f"{options.saved_model} is not a SavedModel. Make one: python -m export.")
    text = runpy.run_path(str(TEXT_LINES))
    try:
        lines = list(text["lines_of"](text["chunks_of"](sys.stdin.buffer), text["STDIN"]))
    except text["TextError"] as error:
        sys.exit(f"error: {error}")
    if not lines:
        return
    model = pipeline(options.saved_model, options.at_least)
    # A tensor, because NumPy strings have a fixed length, and lose NUL bytes at their end.
    found = model.predict(tf.constant(lines), batch_size=options.batch_size, verbose=0)
    for line, translation, kept in zip(lines, found["translation"], found["kept"], strict=True):
        if kept:
            sys.stdout.buffer.write(line + b"\t" + translation.replace(b"\n", b" ") + b"\n")


if __name__ == "__main__":
    main()
