"""A model of an ensemble whose source vocabulary is another one than the search's."""

import base64
from typing import Any, Self

import keras
import tensorflow as tf

from tf_transformer.decoding import StepOptions
from tf_transformer.models.reads_ids import ReadsIds
from tf_transformer.text.graph_tokenizer import GraphTokenizer, clean
from tf_transformer.text.sequences import token_counts
from tf_transformer.text.special_ids import EOS_ID, PAD_ID
from tf_transformer.text.tokenizer import Tokenizer


@keras.saving.register_keras_serializable(package="tf_transformer")
class Retokenized(ReadsIds):
    """Decodes source ids to text, and encodes the text again for a model with other pieces.

    A character that the given tokenizer cannot represent is lost. With byte fallback, there is no
    such character.

    Args:
        member: the built model, such as `Transformer`.
        given: the tokenizer of the source ids that the search has.
        own: the tokenizer of the source ids that the model reads.

    Call arguments:
        inputs: the ids of the given tokenizer (B, S), and the target (B, T).
        training: whether dropout is on.

    Returns:
        the logits of the model (B, T, V).
    """

    has_two_inputs = True

    def __init__(self, member: keras.Model, given: Tokenizer, own: Tokenizer, **kwargs: Any):
        super().__init__(**kwargs)
        self.member = member
        self.config = member.config
        self.vocabulary_size = member.vocabulary_size
        self._files = {"given": given.model, "own": own.model}
        self._given, self._own = GraphTokenizer(given), GraphTokenizer(own)

    def build(self, input_shape: Any = None) -> None:
        if not self.member.built:
            self.member.build()

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        source, target = inputs
        return self.member((self.own_source(source), target), training=training)

    def max_target_length(self, source_length: int | tf.Tensor) -> int | tf.Tensor | None:
        """The limit of the model, in target tokens; None: no limit."""
        return self.member.max_target_length(source_length)

    def step_function(self, source: tf.Tensor, options: StepOptions) -> Any:
        """Makes the step function of the model for the texts of source ids (B, S)."""
        return self.member.step_function(self.own_source(source), options)

    def own_source(self, source: tf.Tensor) -> tf.Tensor:
        """The ids that the model reads (B, R): rows with the end id, then padding."""
        ids = self._given.text_ids(source, token_counts(source))
        rows = self._own.encode(clean(self._given.decode(ids)))
        if self.config.position == "learned":
            rows = rows[:, : self.config.max_length - 1]
        ends = tf.fill([tf.shape(source)[0], 1], EOS_ID)
        return tf.concat([rows, ends], axis=1).to_tensor(PAD_ID)

    def get_config(self) -> dict[str, Any]:
        files = {name: base64.b64encode(model).decode() for name, model in self._files.items()}
        member = keras.saving.serialize_keras_object(self.member)
        return super().get_config() | {"member": member} | files

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes a model from the result of `get_config`; a new dtype is the model's, too."""
        member = dict(config.pop("member"))
        member["config"] = member["config"] | {"dtype": config["dtype"]}
        files = (Tokenizer(base64.b64decode(config.pop(name))) for name in ("given", "own"))
        return cls(keras.saving.deserialize_keras_object(member), *files, **config)
