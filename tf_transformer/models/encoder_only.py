"""Models with an encoder only: a masked language model and a classifier (Devlin et al. 2019).

Both have a `TextEncoder` with the name `encoder`. So a classifier can start with the weights of a
masked language model.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import keras
from keras import KerasTensor, ops

from tf_transformer.config import ModelConfig
from tf_transformer.layers.dense import Dense
from tf_transformer.layers.dropout import Dropout
from tf_transformer.layers.embedding import TokenEmbedding
from tf_transformer.layers.encodings import make_position
from tf_transformer.layers.masks import padding_mask
from tf_transformer.layers.normalization import LayerNorm
from tf_transformer.layers.shape import Shape
from tf_transformer.layers.stack import Encoder, StackOutput
from tf_transformer.models.padding import put_back, require_tokens_first, tokens_first
from tf_transformer.models.predicts_tokens import PredictsTokens
from tf_transformer.models.reads_ids import ReadsIds
from tf_transformer.models.word_masking import WordMasking
from tf_transformer.text.special_ids import PAD_ID


@keras.saving.register_keras_serializable(package="tf_transformer")
class TextEncoder(keras.layers.Layer):
    """Ids to states: embeddings, positions and the paper's encoder (sections 3.1 to 3.5).

    Args:
        vocabulary_size: number of token ids, V.
        config: sizes and variants; a `ModelConfig`, or its fields as a dict. The layer reads the
            sizes of the encoder.

    Call arguments:
        ids: int tensor (B, S); 0 is padding, at any place.
        training: whether dropout is on.

    Returns:
        states, float tensor (B, S, D). `run` returns `StackOutput` with the attention weights of
        all layers.

    Example:
        >>> TextEncoder(11, {"num_layers": 1, "d_model": 8})(np.array([[5, 6, 2]])).shape
        TensorShape([1, 3, 8])
    """

    def __init__(
        self, vocabulary_size: int, config: ModelConfig | dict | None = None, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.config = config = ModelConfig.of(config)
        self.vocabulary_size = vocabulary_size
        policy = self.dtype_policy
        self.embedding = TokenEmbedding(
            vocabulary_size, config.encoder.d_model, dtype=policy, name="embedding"
        )
        self.position = make_position(
            config.encoder, is_causal=False, dtype=policy, name="position"
        )
        self.dropout = Dropout(config.dropout_rate, dtype=policy)
        self.stack = Encoder(config.encoder, self.position.on_scores(), dtype=policy, name="stack")

    def build(self, ids_shape: Shape | None = None) -> None:
        states = (None, None, self.config.encoder.d_model)
        self.embedding.build(ids_shape)
        for part in (self.position, self.dropout, self.stack):
            part.build(states)

    def call(self, ids: KerasTensor, training: bool | None = None) -> KerasTensor:
        ids, places = tokens_first(ids, self.vocabulary_size)
        return put_back(self.run(ids, training).output, places)

    def run(self, ids: KerasTensor, training: bool | None = None) -> StackOutput:
        """Like a call with the attention weights, for rows with padding at the end only."""
        require_tokens_first(ids, self.vocabulary_size)
        x = self.dropout(self.position(self.embedding(ids)), training=training)
        return self.stack.call(x, padding_mask(ids), training=training)

    def mean(self, ids: KerasTensor, training: bool | None = None) -> KerasTensor:
        """The mean state of each row's tokens (B, D), for rows with padding at the end only."""
        states = ops.cast(self.run(ids, training).output, "float32")
        real = ops.cast(ops.not_equal(ids, PAD_ID), "float32")[:, :, None]  # (B, S, 1)
        count = ops.maximum(ops.sum(real, axis=1), 1.0)  # a row may have padding only
        return ops.sum(states * real, axis=1) / count

    def compute_output_shape(self, ids_shape: Shape) -> Shape:
        return (*ids_shape, self.config.encoder.d_model)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | _config_of(self)


@keras.saving.register_keras_serializable(package="tf_transformer")
class MaskedLanguageModel(PredictsTokens):
    """p(id | the ids around it), as logits for each position (Devlin et al. 2019, section 3.1).

    logits = LayerNorm(GELU(x W + b)) Eᵀ, where x are the encoder's states and E is its embedding
    matrix. `TextEncoder` describes arguments and calls; `MASK_ID` marks a masked id.

    Returns:
        logits, float tensor (B, S, V). `states` returns the factor of Eᵀ, (B, S, D).

    Example:
        >>> MaskedLanguageModel(11, {"num_layers": 1, "d_model": 8})(np.array([[5, 3, 2]])).shape
        TensorShape([1, 3, 11])
    """

    def __init__(
        self, vocabulary_size: int, config: ModelConfig | dict | None = None, **kwargs: Any
    ):
        super().__init__(vocabulary_size, config, **kwargs)
        policy = self.dtype_policy
        self.encoder = TextEncoder(vocabulary_size, config, dtype=policy, name="encoder")
        self.masking = WordMasking(vocabulary_size, name="masking")
        d_model = self.config.encoder.d_model
        self.hidden = Dense(d_model, "gelu", dtype=policy, name="hidden")
        self.norm = LayerNorm(dtype=policy, name="norm")

    def build(self, ids_shape: Shape | None = None) -> None:
        states = (None, None, self.config.encoder.d_model)
        self.encoder.build((None, None))
        self.hidden.build(states)
        self.norm.build(states)

    def states(self, ids: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Like a call, but without the product with Eᵀ: (B, S, D). Padding must be at the end."""
        return self.norm(self.hidden(self.encoder.run(ids, training).output))

    def call(self, ids: KerasTensor, training: bool | None = None) -> KerasTensor:
        ids, places = tokens_first(ids, self.vocabulary_size)
        return self.logits(put_back(self.states(ids, training), places))

    @property
    def output_embedding(self) -> TokenEmbedding:  # type: ignore[override]
        """The embedding of the encoder; its matrix also makes the logits."""
        return self.encoder.embedding


@keras.saving.register_keras_serializable(package="tf_transformer")
class Classifier(ReadsIds):
    """p(label | text), as a logit for each label: mean(x) W + b, with the encoder's states x.

    The mean is over the tokens, because masked language modelling trains the states of all
    positions. Devlin et al. 2019 use the state of a special first token, which they pre-train on
    sentence pairs. This project has no such pre-training.

    Args:
        vocabulary_size: number of token ids, V.
        labels: names of the labels, in the order of the logits.
        config: see `TextEncoder`. `dropout_rate` also applies to the mean.
        separator: the text between the labels of an example that may have several. The sigmoid of
            a logit is then the probability of its label. Empty: each example has exactly one label,
            and the softmax of the logits gives the probabilities.
        texts: number of texts that are classified together, 1 or 2. Each ends with the
            end-of-sentence id.

    Returns:
        logits, float32 tensor (B, C) for C labels. `TextEncoder` describes the call.

    Example:
        >>> Classifier(11, ["no", "yes"], {"num_layers": 1, "d_model": 8})(np.array([[5, 2]])).shape
        TensorShape([1, 2])
    """

    def __init__(
        self,
        vocabulary_size: int,
        labels: Sequence[str],
        config: ModelConfig | dict | None = None,
        separator: str = "",
        texts: int = 1,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.encoder = TextEncoder(vocabulary_size, config, dtype=policy, name="encoder")
        self.config, self.vocabulary_size = self.encoder.config, vocabulary_size
        self.labels = tuple(labels)
        self.separator = separator
        self.has_one_label = not separator
        self.texts = texts
        self.dropout = Dropout(self.config.dropout_rate, dtype="float32")
        self.head = Dense(len(self.labels), dtype="float32", name="head")

    def build(self, ids_shape: Shape | None = None) -> None:
        mean = (None, self.config.encoder.d_model)
        self.encoder.build((None, None))
        self.dropout.build(mean)
        self.head.build(mean)

    def call(self, ids: KerasTensor, training: bool | None = None) -> KerasTensor:
        ids, _ = tokens_first(ids, self.vocabulary_size)
        return self.logits(ids, training)

    def logits(self, ids: KerasTensor, training: bool | None = None) -> KerasTensor:
        """Like a call, for rows with padding at the end only."""
        mean = self.encoder.mean(ids, training)
        return self.head(self.dropout(mean, training=training))

    def get_config(self) -> dict[str, Any]:
        more = {"labels": self.labels, "separator": self.separator, "texts": self.texts}
        return super().get_config() | _config_of(self) | more


def _config_of(part: TextEncoder | Classifier) -> dict:
    """The constructor's arguments that both classes share."""
    return {"vocabulary_size": part.vocabulary_size, "config": asdict(part.config)}
