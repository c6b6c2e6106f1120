"""The model and the loss of tasks that predict a text from a text."""

import keras

from tf_transformer.config import Config
from tf_transformer.losses.cross_entropy import CrossEntropy, TokenLosses
from tf_transformer.models.recurrent import RecurrentModel
from tf_transformer.models.transformer import Transformer
from tf_transformer.tasks.task import Batch, Task
from tf_transformer.text.codec import Codec
from tf_transformer.text.sequences import shift_right
from tf_transformer.text.word_alignment import LINKS


class EncoderDecoderTask(Task):
    """A task with two fields: the source, and the target that the model predicts from it."""

    def build_model(self, config: Config, codec: Codec, dtype: str) -> keras.Model:
        return build_model(config, codec, dtype)

    def losses(
        self, model: keras.Model, batch: Batch, loss: CrossEntropy, training: bool
    ) -> TokenLosses:
        """Label-smoothed cross-entropy of the target tokens (paper section 5.4)."""
        source, target = (batch[field] for field in self.fields)
        inputs = source, shift_right(target)
        return loss.losses(model, inputs, target, training, batch.get(LINKS))


def build_model(config: Config, codec: Codec, dtype: str) -> Transformer | RecurrentModel:
    """Builds a new model of `config.model.architecture`, with all its weights."""
    make = Transformer if config.model.architecture == "transformer" else RecurrentModel
    source, target = map(codec.size, ("source", "target"))
    model = make(target, config.model, source_vocabulary_size=source, dtype=dtype)
    model.build()
    return model
