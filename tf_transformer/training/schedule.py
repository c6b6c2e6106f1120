"""The paper's learning rate schedule (section 5.3)."""

from typing import Any

import keras
from keras import KerasTensor, ops


@keras.saving.register_keras_serializable(package="tf_transformer")
class TransformerSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """factor · d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5) (paper equation 3).

    The rate rises linearly for `warmup_steps` updates, then falls as 1/√step. Keras counts
    updates from 0 and the paper from 1, so update n of Keras is step n + 1 of the paper.

    Args:
        d_model: model size, D.
        warmup_steps: number of updates until the peak.
        factor: factor on the whole schedule; 1 in the paper.

    Call arguments:
        step: int scalar, the number of updates made so far.

    Returns:
        float32 scalar, the learning rate.

    Raises:
        ValueError: when `d_model`, `warmup_steps` or `factor` is not positive.

    Example:
        >>> float(TransformerSchedule(d_model=512, warmup_steps=4000)(3999))
        0.0006987712...
    """

    def __init__(self, d_model: int, warmup_steps: int = 4000, factor: float = 1.0):
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.factor = factor
        for name, value in self.get_config().items():
            if value <= 0:
                raise ValueError(f"{name} must be positive, got {value}.")

    def __call__(self, step: KerasTensor | int) -> KerasTensor:
        step = ops.cast(step, "float32") + 1.0
        rate = ops.minimum(ops.rsqrt(step), step * self.warmup_steps**-1.5)
        return self.factor * self.d_model**-0.5 * rate

    def get_config(self) -> dict[str, Any]:
        names = ("d_model", "warmup_steps", "factor")
        return {name: getattr(self, name) for name in names}
