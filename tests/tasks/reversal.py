"""A whole task in one file: reversing digits, scored by exact match.

python train.py --run_dir runs/reversal --task tasks.reversal:REVERSAL
"""

import numpy as np

from tf_transformer import tasks
from tf_transformer.data.examples import Examples
from tf_transformer.inference.translator import Translator, build_model
from tf_transformer.tasks import Splits, Task, TestSet
from tf_transformer.text.sequences import shift_right


class Reversal(Task):
    """3 1 4 → 4 1 3."""

    fields = ("digits", "reversed")
    labels = "reversed"
    metrics = ("exact_match",)

    def load_splits(self, config):
        train, valid, _ = self._splits()
        return Splits(train.stream(), valid)

    def load_test(self, config, source, reference):
        return self.test_set(self._splits()[2])

    def test_set(self, examples):
        return TestSet(examples["digits"], examples["reversed"])

    def encode(self, texts, codec):
        return {field: codec.encode_batch(field, texts[field]) for field in self.fields}

    def build_model(self, config, codec, dtype):
        return build_model(config, codec, dtype)

    def losses(self, model, batch, objective, training):
        digits, reversed_ = batch["digits"], batch["reversed"]
        return objective.losses(model, (digits, shift_right(reversed_)), reversed_, training)

    def predictor(self, model, codec, decode):
        return Translator(model, codec, decode)

    def score(self, predictions, references):
        matches = [p == r for p, r in zip(predictions, references, strict=True)]
        return {"exact_match": 100.0 * float(np.mean(matches)), "examples": len(matches)}

    def default_metric(self, references):
        return "exact_match"

    def describe(self, scores):
        return f"{scores['examples']} numbers, {scores['exact_match']:.1f}% right"

    def _splits(self):
        """All numbers of three digits, in a random order: 800 to train, 100, 100."""
        numbers = [" ".join(f"{n:03}") for n in np.random.default_rng(1).permutation(1000)]
        examples = Examples({"digits": numbers, "reversed": [n[::-1] for n in numbers]})
        return [examples.take(range(*each)) for each in ((200, 1000), (0, 100), (100, 200))]


REVERSAL = Reversal()
tasks.register("reversal", REVERSAL)
