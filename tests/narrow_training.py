"""Three updates of a narrow model with a configuration file, on a few examples."""

import pathlib

import pytest
import yaml

from tf_transformer.commands import command_line, train
from tf_transformer.data.readers.generated import generate
from tf_transformer.run.earlier import task_named
from tf_transformer.run.folder import RunFolder

NARROW = {
    **{"model.d_model": 16, "model.d_ff": 32, "model.num_layers": 1, "model.num_heads": 2},
    **{"data.vocabulary_size": 330, "data.max_length": 200, "data.batch_tokens": 600},
    **{"train.steps": 3, "train.validate_every": 3, "train.valid_score_examples": 0},
    **{"data.held_out": 4, "data.generated_pairs": 60, "decode.max_extra_length": 5},
}
PAIRS = generate(60, "en", "de", seed=1)
CONTENT = {  # of a file of examples, by task
    "classification": "text\tlabel\n" + "".join(f"the number {n}\t{n % 2}\n" for n in range(60)),
    "parsing": "".join(f"( (S (NP (NN cat) (NN {n})) (VP (VBD saw))) )\n" for n in range(60)),
}


def options_for(config, folder):
    """Options that give a configuration examples of its kind, in files where it names files."""
    task, data = task_named(config) or "translation", config["data"]
    texts = {name: "".join(f"{line}\n" for line in PAIRS[name]) for name in ("source", "target")}
    texts["file"] = CONTENT.get(task, texts["source"])
    if task == "translation":
        names = [name for name in data if name.split("_")[-1] in texts]
    else:
        names = ["train_file", "valid_file"]
    for name in names:
        ending = {"classification": "tsv", "parsing": "mrg"}.get(task, "txt")
        file = folder / f"{name}.{ending}"
        file.write_text(texts[name.split("_")[-1]])
        yield f"data.{name}", file


def train_narrow(path: pathlib.Path, folder: pathlib.Path, options: dict = NARROW) -> RunFolder:
    """Trains with a configuration, some of its options and all of its text replaced.

    Args:
        path: of the configuration.
        folder: for the text and the run.
        options: that replace those of the configuration.
    """
    tf = pytest.importorskip("tensorflow")
    tfds = pytest.importorskip("tensorflow_datasets")

    def pairs(builder, split, **kwargs):
        sides = dict(zip(builder.info.features, PAIRS.texts.values(), strict=True))
        return tf.data.Dataset.from_tensor_slices(sides)

    config = yaml.safe_load(path.read_text())
    options = options | dict(options_for(config, folder))
    if config["train"].get("metric"):  # it needs predictions
        options |= {"train.valid_score_examples": 2}
    words = ["--config", str(path), "--run_dir", str(folder / "run")]
    words += [f"--data.tfds_dir={folder}"]
    words += [f"--{name}={value}" for name, value in options.items()]
    with tfds.testing.mock_data(as_dataset_fn=pairs):
        command_line.run(train.main, words)
    return RunFolder(folder / "run")
