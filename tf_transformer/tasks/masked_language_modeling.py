"""Masked language modelling: restores masked words of plain text (Devlin et al. 2019)."""

from collections.abc import Sequence
from typing import Any, cast

import keras

from tf_transformer.config import Config, DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.inference.masked_predictor import MaskedPredictor, WordNumbers
from tf_transformer.inference.predictor import Predictor, Progress, no_progress
from tf_transformer.losses.choice import require_cross_entropy
from tf_transformer.losses.cross_entropy import CrossEntropy, TokenLosses, token_losses
from tf_transformer.models.encoder_only import MaskedLanguageModel
from tf_transformer.models.word_masking import at_masks
from tf_transformer.tasks.language_modeling import TextTask, perplexity
from tf_transformer.tasks.metrics import Metric, OfModel
from tf_transformer.tasks.task import Batch, Evaluation, FieldTexts, Rows, TestSet
from tf_transformer.text.codec import Codec


class MaskedLanguageModeling(TextTask):
    """Pre-trains an encoder on the lines of a file.

    Attributes:
        fields: a line of text.
        labels: the ids of the line. The loss sums over masked ids, but an update divides by the
            number of all ids, which is known before ids are masked. Gradients are therefore about
            0.15 of the gradients of the mean. Adam is independent of this scale;
            `train.clip_norm` depends on it.
        metrics: share of masked ids that are restored correctly, 0 to 1.
    """

    Model = MaskedLanguageModel
    metrics: tuple[Metric, ...] = (OfModel("masked_accuracy"),)
    summary = (
        "{sentences:,} sentences, {masked:,} masked ids: perplexity {masked_perplexity:.2f}, "
        "accuracy {masked_accuracy:.3f}"
    )

    def complete(self, config: Config) -> Config:
        require_cross_entropy(config.train)
        return config

    def encode(self, texts: FieldTexts, codec: Codec) -> Rows:
        """The ids of each text, and the word number of each id."""
        rows = codec.encode_batch("text", texts["text"])
        return {"words": list(map(WordNumbers(codec["text"]), rows)), "text": rows}

    def losses(
        self, model: keras.Model, batch: Batch, loss: CrossEntropy, training: bool
    ) -> TokenLosses:
        """Cross-entropy of the masked ids. In training, each call draws new masks."""
        inputs, labels = model.masking(batch["text"], batch["words"], training=training)
        states = model.states(inputs, training=training)
        if training:
            labels, states = at_masks(labels, states)
        rows, matrix = model.factors(states)
        return token_losses(labels, rows, matrix, loss.label_smoothing)

    def predictor(self, model: keras.Model, codec: Codec, decode: DecodeConfig) -> MaskedPredictor:
        return MaskedPredictor(model, codec, decode)

    def evaluate(
        self, predictor: Predictor, test: TestSet, progress: Progress = no_progress
    ) -> Evaluation:
        """Restores masked words: the texts, and scores of the masked ids.

        masked_perplexity is exp of the mean negative log-probability of masked ids.
        masked_accuracy is the share of them that are restored correctly, 0 to 1. It is an
        `InputError` if no word is masked.
        """
        predictor = cast(MaskedPredictor, predictor)
        restored = predictor.restore(test.inputs, progress)
        masked = sum(x.masked for x in restored)
        if not masked:
            raise InputError(f"no word of {len(restored)} lines is masked. Give more text.")
        scores: dict[str, Any] = {
            "masked_perplexity": perplexity(-sum(x.log_probability for x in restored) / masked),
            "masked_accuracy": sum(x.correct for x in restored) / masked,
            "masked": masked,
            "sentences": len(restored),
        }
        return Evaluation([x.text for x in restored], scores)

    def default_metric(self, references: Sequence[str]) -> str:
        """The validation loss, because it counts all validation texts."""
        return "loss"


MASKED_LANGUAGE_MODELING = MaskedLanguageModeling()
