"""Every file of configs/ trains: three updates of a narrow model on a few examples."""

import pathlib

import pytest
import yaml

from tf_transformer.commands import command_line, train
from tf_transformer.data.generated import generate
from tf_transformer.run.earlier_options import task_named
from tf_transformer.run.folder import RunFolder

tf = pytest.importorskip("tensorflow")
tfds = pytest.importorskip("tensorflow_datasets")
CONFIGS = sorted(pathlib.Path(__file__).parents[1].glob("configs/*.yaml"))
NARROW = {
    **{"model.d_model": 16, "model.d_ff": 32, "model.num_layers": 1, "model.num_heads": 2},
    **{"data.vocabulary_size": 330, "data.max_length": 200, "data.batch_tokens": 600},
    **{"train.steps": 3, "train.validate_every": 3, "train.valid_score_examples": 2},
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


@pytest.fixture
def trained(tmp_path):
    """Trains with a configuration and some of its options replaced; gives the run."""

    def pairs(builder, split, **kwargs):
        sides = dict(zip(builder.info.features, PAIRS.texts.values(), strict=True))
        return tf.data.Dataset.from_tensor_slices(sides)

    def run(path, options):
        options = options | dict(options_for(yaml.safe_load(path.read_text()), tmp_path))
        words = ["--config", str(path), "--run_dir", str(tmp_path / "run")]
        words += [f"--data.tfds_dir={tmp_path}"]
        words += [f"--{name}={value}" for name, value in options.items()]
        with tfds.testing.mock_data(as_dataset_fn=pairs):
            command_line.run(train.main, words)
        return RunFolder(tmp_path / "run")

    return run


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_three_updates(path, trained):
    run = trained(path, NARROW)
    assert run.has_checkpoint
    assert run.metrics.read_text().count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wmt14_en_de_base", "wmt14_en_de_big", "wmt14_en_fr_big"])
def test_three_updates_at_full_size(name, trained):
    """All sizes but the vocabulary, which the text limits."""
    (path,) = (each for each in CONFIGS if each.stem == name)
    options = {key: value for key, value in NARROW.items() if not key.startswith("model.")}
    assert trained(path, options).has_checkpoint
