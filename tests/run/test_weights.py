"""Weights of a run: averages of checkpoints, the best ones, the moving average."""

import random
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import scored_config, small_config, stored_weights, weights_of

from tf_transformer.errors import InputError
from tf_transformer.models.names import by_name
from tf_transformer.models.transformer import Transformer
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.run.weights import load_weights, save_weights, updates_of
from tf_transformer.tasks import load_predictor
from tf_transformer.training import trainer
from tf_transformer.training.setup import initialize


@pytest.fixture(scope="module")
def averaging_run(tmp_path_factory):
    """A run that keeps a moving average of its weights, too."""
    folder = tmp_path_factory.mktemp("averaging") / "run"
    trainer.train(Run.at(folder, small_config(average_decay=0.9)))
    return folder


def test_average_is_the_mean_of_the_newest_checkpoints(run):
    """Oracle: NumPy's mean of every weight that TensorFlow reads from the checkpoint files."""
    paths = tf.train.get_checkpoint_state(str(run / "checkpoints")).all_model_checkpoint_paths
    first, newest = (stored_weights(path) for path in paths)
    assert len(first) == len(weights_of(run)) > 20
    for averaged, one, other in zip(weights_of(run, average=2), first, newest, strict=True):
        np.testing.assert_allclose(averaged, (one + other) / 2, atol=1e-7)
    for alone, expected in zip(weights_of(run, average=1), newest, strict=True):
        np.testing.assert_array_equal(alone, expected)
    assert any(np.abs(one - other).max() > 1e-6 for one, other in zip(first, newest, strict=True))


def test_fewer_checkpoints_than_asked_for_are_said(run, capsys):
    weights_of(run, average=2)
    assert "average" not in capsys.readouterr().err
    weights_of(run, average=100)
    expected = f"average 100: averages 2 checkpoint(s), because {run} has no more"
    assert expected in capsys.readouterr().err


def test_updates_of_the_newest_checkpoints(run):
    assert updates_of(RunFolder(run), 1) == [4]
    assert updates_of(RunFolder(run), 9) == [2, 4]


def test_a_folder_without_checkpoints_is_an_error(run, tmp_path):
    broken = tmp_path / "run"
    shutil.copytree(run, broken, ignore=shutil.ignore_patterns("checkpoints"))
    with pytest.raises(InputError, match=r"holds no checkpoint\. Train first"):
        weights_of(broken)


def test_the_moving_average_is_loaded_and_differs_from_the_weights(averaging_run):
    """Its values are checked in test_optimizer.py."""
    average = weights_of(averaging_run, average="ema")
    last = weights_of(averaging_run, average=1)
    assert all(1e-6 < np.abs(a - b).max() < 0.1 for a, b in zip(average, last, strict=True))


def test_a_moving_average_that_was_not_kept_is_an_error(run):
    with pytest.raises(InputError, match=r"holds no moving average.*--train.average_decay 0\.999"):
        weights_of(run, average="ema")


# --- weights that are not finite, broken files -----------------------------------------------


def write_with(path, name, number, rng):
    """Writes a checkpoint again, with one number of its list `name` replaced."""
    reader = tf.train.load_checkpoint(str(path))
    keys = sorted(reader.get_variable_to_shape_map())
    values = {key: np.array(reader.get_tensor(key)) for key in keys}
    chosen = rng.choice([key for key in keys if key.startswith(f"{name}/")])
    values[chosen].flat[rng.randrange(values[chosen].size)] = number
    tf.raw_ops.SaveV2(
        prefix=str(path),
        tensor_names=keys,
        shape_and_slices=[""] * len(keys),
        tensors=[values[key] for key in keys],
    )


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("checkpoint", "name", "average"),
    [
        ("checkpoints/step-2", "weights", 5),  # one of two that are averaged
        ("checkpoints/step-4", "weights", 1),
        ("checkpoints/best/step-4", "weights", "best"),
        ("checkpoints/resume/step-4", "averages", "ema"),
    ],
)
def test_a_weight_that_is_not_finite_names_its_checkpoint(
    number, checkpoint, name, average, averaging_run, tmp_path
):
    copy = shutil.copytree(averaging_run, tmp_path / "run")
    write_with(copy / checkpoint, name, number, random.Random(str((number, checkpoint))))
    with pytest.raises(InputError, match=rf"{copy / checkpoint} has weights that are not finite"):
        load_predictor(Run.load(copy, average=average))


def test_training_goes_on_neither_with_nan_nor_with_a_broken_checkpoint(run, tmp_path):
    config = scored_config(steps=6)
    for broken, reason in (
        ("resume/step-4", "has weights that are not finite"),
        ("resume/step-4.data-00000-of-00001", "is broken or of another model"),
        ("resume/step-4.index", "is broken or of another model"),
        ("resume/checkpoint", "is broken or of another model"),
        ("checkpoint", "is broken or of another model"),
    ):
        copy = shutil.copytree(run, tmp_path / broken.replace("/", "_"))
        path = copy / "checkpoints" / broken
        if broken == "resume/step-4":
            write_with(path, "weights", np.nan, random.Random(1))
        else:
            path.write_bytes(path.read_bytes()[:40])
        files = {p: p.read_bytes() for p in copy.rglob("step-*") if p.is_file()}
        with pytest.raises(InputError, match=reason) as error:
            trainer.train(Run.at(copy, config))
        assert str(copy / "checkpoints") in str(error.value)
        assert files == {p: p.read_bytes() for p in copy.rglob("step-*") if p.is_file()}


def test_a_run_does_not_start_with_nan(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    write_with(copy / "checkpoints" / "step-4", "weights", np.nan, random.Random(1))
    model = load_predictor(Run.load(run)).model
    with pytest.raises(InputError, match="step-4 has weights that are not finite"):
        initialize(model, small_config(), Run.load(copy))


def test_the_checkpoint_of_another_model_is_an_error(run, tmp_path):
    """Of another depth, with weights of other shapes; NumPy would broadcast some of them."""
    copy = shutil.copytree(run, tmp_path / "run")
    weights = by_name(load_predictor(Run.load(run)).model)
    *names, last = weights
    fewer = {name: weights[name] for name in names}
    for others, reason in (
        (fewer, f"it has {len(names)} weights, but the model.* has {len(weights)}"),
        (fewer | {"decoder/other": weights[last]}, f"it has no weight {last}, which the model"),
        (fewer | {last: weights[names[0]]}, f"its weight {last} has the shape"),
    ):
        save_weights(RunFolder(copy), others, "float32", 9)
        with pytest.raises(InputError, match=f"ckpt-9 is broken or of another model: {reason}"):
            load_predictor(Run.load(copy, average=1))


def test_any_broken_file_of_a_run_is_read_or_is_an_input_error(run, tmp_path):
    """Files cut short, and files with another byte: seeded places in each file of a run."""
    copy, rng = RunFolder(shutil.copytree(run, tmp_path / "run")), random.Random(40)
    messages, read = [], 0
    for path in (
        *(copy.config, copy.tokenizer, copy.samples, copy.metrics, copy.execution),
        *sorted(p for p in copy.checkpoints.iterdir() if p.is_file()),
    ):
        content = path.read_bytes()
        places = [0, *(rng.randrange(len(content)) for _ in range(2))]
        changed = [content[:place] for place in places]
        changed += [
            content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :] for place in places
        ]
        for broken in [None, *changed]:
            path.unlink() if broken is None else path.write_bytes(broken)
            try:
                load_predictor(Run.load(copy.path))
                (copy.load_samples(), copy.load_metrics(), copy.load_execution())
            except InputError as error:
                messages.append(str(error))
            else:
                read += 1
            path.write_bytes(content)
    assert all(str(copy.path) in message for message in messages)
    assert len(messages) > 20
    assert read > 5


# --- names of weights ------------------------------------------------------------------------


class Reordered(Transformer):
    """A Transformer whose attributes are set in the reverse order."""

    def __init__(self, *args, **kwargs):
        object.__setattr__(self, "kept", {})
        super().__init__(*args, **kwargs)
        kept = self.__dict__.pop("kept")
        for name in reversed(kept):
            setattr(self, name, kept[name])

    def __setattr__(self, name, value):
        if "kept" in self.__dict__ and isinstance(value, keras.layers.Layer):
            self.kept[name] = value
        else:
            super().__setattr__(name, value)


def test_attributes_may_be_set_in_another_order(run):
    expected = load_predictor(Run.load(run, average=1)).model
    sizes = {"source_vocabulary_size": expected.source_vocabulary_size}
    model = Reordered(expected.vocabulary_size, expected.config, **sizes)
    model.build()
    assert list(by_name(model)) != list(by_name(expected))
    load_weights(RunFolder(run), model, 1)
    ids = np.array([[5, 6, 7, 2]]), np.array([[1, 8, 9]])
    np.testing.assert_allclose(model(ids), expected(ids), atol=1e-6)
