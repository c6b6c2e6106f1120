"""A whole task in one file: reversing digits, scored by exact match.

python train.py --run_dir runs/reversal --task tasks.reversal:REVERSAL --task.rotate 1
"""

from dataclasses import dataclass

import numpy as np

from tf_transformer import tasks
from tf_transformer.config import TaskOptions
from tf_transformer.data.examples import Examples
from tf_transformer.inference.translator import Translator
from tf_transformer.tasks import Splits, Task, TestSet
from tf_transformer.tasks.encoder_decoder import build_model
from tf_transformer.text.sequences import shift_right


@dataclass(frozen=True)
class ReversalOptions(TaskOptions):
    """What is reversed.

    Attributes:
        rotate: digits that move from the start to the end before the reversal.
    """

    rotate: int = 0


class ExactMatch:
    """The percentage of right predictions."""

    name = "exact_match"
    lower_is_better = False

    def score(self, inputs, predictions, references):
        matches = [p == r for p, r in zip(predictions, references[0], strict=True)]
        return {"exact_match": 100.0 * float(np.mean(matches)), "examples": len(matches)}


class Reversal(Task):
    """3 1 4 → 4 1 3."""

    Options = ReversalOptions
    fields = ("digits", "reversed")
    labels = "reversed"
    metrics = (ExactMatch(),)

    def load_splits(self, config):
        train, valid, _ = self._splits(config.task.rotate)
        return Splits(train.stream(), valid)

    def load_test(self, config, source, reference):
        return self.test_set(self._splits(config.task.rotate)[2])

    def test_set(self, examples):
        return TestSet(examples["digits"], examples["reversed"])

    def encode(self, texts, codec):
        return {field: codec.encode_batch(field, texts[field]) for field in self.fields}

    def build_model(self, config, codec, dtype):
        return build_model(config, codec, dtype)

    def losses(self, model, batch, loss, training):
        digits, reversed_ = batch["digits"], batch["reversed"]
        return loss.losses(model, (digits, shift_right(reversed_)), reversed_, training)

    def predictor(self, model, codec, decode):
        return Translator(model, codec, decode)

    def describe(self, scores):
        return f"{scores['examples']} numbers, {scores['exact_match']:.1f}% right"

    def _splits(self, rotate):
        """All numbers of three digits, in a random order: 800 to train, 100, 100."""
        numbers = [f"{n:03}" for n in np.random.default_rng(1).permutation(1000)]
        right = [" ".join((n[rotate:] + n[:rotate])[::-1]) for n in numbers]
        examples = Examples({"digits": list(map(" ".join, numbers)), "reversed": right})
        return [examples.take(range(*each)) for each in ((200, 1000), (0, 100), (100, 200))]


REVERSAL = Reversal()
tasks.register("reversal", REVERSAL)
