"""The learning rate schedule at steps worked by hand from the paper's equation 3."""

import keras
import numpy as np
import pytest

from tf_transformer.training.schedule import TransformerSchedule


@pytest.mark.parametrize(
    ("paper_step", "expected"),
    [
        (1, 512**-0.5 * 4000**-1.5),  # 1.746928e-7
        (2, 2 * 512**-0.5 * 4000**-1.5),  # linear
        (4000, 6.98771e-4),  # the peak, 512^-0.5 · 4000^-0.5
        (16000, 6.98771e-4 / 2),  # four times as late, half as high
        (400_000, 6.98771e-4 / 10),
    ],
)
def test_rate_by_hand(paper_step, expected):
    schedule = TransformerSchedule(d_model=512, warmup_steps=4000)
    made = paper_step - 1  # Keras counts updates made so far, from 0
    np.testing.assert_allclose(float(schedule(made)), expected, rtol=1e-5)


def test_rate_rises_to_the_peak_and_falls_after():
    schedule = TransformerSchedule(d_model=64, warmup_steps=10)
    rates = [float(schedule(n)) for n in range(30)]
    assert np.argmax(rates) == 9
    assert (np.diff(rates[:10]) > 0).all()
    assert (np.diff(rates[9:]) < 0).all()


def test_factor_multiplies_every_rate():
    one, three = (TransformerSchedule(64, 10, factor) for factor in (1.0, 3.0))
    for step in (0, 9, 50):
        np.testing.assert_allclose(three(step), 3 * float(one(step)), rtol=1e-6)


@pytest.mark.parametrize("name", ["d_model", "warmup_steps", "factor"])
@pytest.mark.parametrize("value", [0, -1])
def test_what_is_not_positive_is_named(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be positive, got {value}\.$"):
        TransformerSchedule(**({"d_model": 512} | {name: value}))


def test_schedule_survives_serialization():
    schedule = TransformerSchedule(d_model=128, warmup_steps=77, factor=0.5)
    saved = keras.saving.serialize_keras_object(schedule)
    restored = keras.saving.deserialize_keras_object(saved)
    assert restored.get_config() == {"d_model": 128, "warmup_steps": 77, "factor": 0.5}
    assert float(restored(100)) == float(schedule(100))


def test_optimizer_asks_for_its_first_update_at_step_one():
    """A first update by plain SGD on a gradient of 1 moves a weight by the paper's step 1."""
    schedule = TransformerSchedule(d_model=512, warmup_steps=4000)
    weight = keras.Variable([0.0])
    optimizer = keras.optimizers.SGD(schedule)
    optimizer.apply([keras.ops.ones((1,))], [weight])
    moved = -float(keras.ops.convert_to_numpy(weight)[0])
    np.testing.assert_allclose(moved, 512**-0.5 * 4000**-1.5, rtol=1e-5)
