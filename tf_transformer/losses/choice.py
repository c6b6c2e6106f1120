"""The loss that the options of a training choose."""

from tf_transformer.config import DecodeConfig, TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.losses.consistency import CUT_RATE, R_DROP_WEIGHT, SIMCUT_WEIGHT, RDrop, SimCut
from tf_transformer.losses.cross_entropy import CrossEntropy, WordDropout
from tf_transformer.losses.guided_alignment import GuidedAlignment

OF_TOKENS = {"consistency": "none", "word_dropout": 0.0, "guided_alignment_weight": 0.0}


def make_loss(config: TrainConfig, decode: DecodeConfig | None = None) -> CrossEntropy:
    """Makes the loss that the options choose. Call it in the strategy's scope.

    `decode` names the head that learns to align words.
    """
    epsilon = config.label_smoothing
    word_dropout = WordDropout(config.word_dropout) if config.word_dropout else None
    if config.consistency == "r_drop":
        return RDrop(epsilon, R_DROP_WEIGHT, word_dropout)
    if config.consistency == "simcut":
        return SimCut(epsilon, SIMCUT_WEIGHT, WordDropout(CUT_RATE), word_dropout)
    if weight := config.guided_alignment_weight:
        decode = decode or DecodeConfig()
        head = decode.alignment_layer, decode.alignment_head
        return GuidedAlignment(epsilon, weight, *head, word_dropout)
    return CrossEntropy(epsilon, word_dropout)


def require_cross_entropy(config: TrainConfig) -> None:
    """Raises an `InputError` if options choose another loss, for tasks that support none."""
    for name, off in OF_TOKENS.items():
        if (value := getattr(config, name)) != off:
            raise InputError(
                f"train.{name} is for models that predict the next token: translation, parsing "
                f"and language_modeling. Expected {off} for this task, got {value}. Leave the "
                "option out."
            )
