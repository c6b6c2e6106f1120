"""The model of tasks that predict a text from a text."""

from tf_transformer.config import Config
from tf_transformer.models.recurrent import RecurrentModel
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.codec import Codec


def build_model(config: Config, codec: Codec, dtype: str) -> Transformer | RecurrentModel:
    """Builds a new model of `config.model.architecture`, with all its weights.

    Args:
        config: the configuration of the run.
        codec: the codec of the run, which determines the sizes of the vocabularies.
        dtype: dtype policy of the model.
    """
    make = Transformer if config.model.architecture == "transformer" else RecurrentModel
    source, target = map(codec.size, ("source", "target"))
    model = make(target, config.model, source_vocabulary_size=source, dtype=dtype)
    model.build()
    return model
