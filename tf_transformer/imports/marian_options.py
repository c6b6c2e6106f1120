"""The options of a model in Marian's own files, checked.

The tables also serve the export, which writes these options.
"""

import pathlib
import re
from typing import Any

from tf_transformer.errors import InputError
from tf_transformer.imports.layouts import Arrays
from tf_transformer.imports.options import Options, read_yaml

OPTIONS = "special:model.yml"  # the array of a file that holds the options: bytes of a text
# Options of special:model.yml with one value that is supported, and what another value means.
FIXED: dict[str, tuple[Any, str]] = {
    "type": ("transformer", "is another kind of model"),
    "transformer-postprocess-emb": ("d", "normalizes its embeddings"),
    "transformer-ffn-depth": (2, "has deeper feed-forward networks"),
    "transformer-decoder-ffn-depth": (0, "has another feed-forward network in the decoder"),
    "transformer-train-position-embeddings": (False, "has learned positions"),
    "transformer-train-positions": (False, "has learned positions"),
    "transformer-no-projection": (False, "has attention without an output projection"),
    "transformer-no-bias": (False, "has no biases"),
    "transformer-no-affine": (False, "has norms without weights"),
    "transformer-pool": (False, "has pooling in place of attention"),
    "transformer-rnn-projection": (False, "has an SSRU with an output projection"),
    "transformer-disable-position-embeddings": (False, "has no positions"),
    "transformer-attention-mask": ("default", "has ALiBi or another attention mask"),
    "transformer-alibi-shift": (False, "has ALiBi"),
    "transformer-alibi-trainable": (False, "has ALiBi"),
    "transformer-tied-layers": ([], "has layers that share weights"),
    "lemma-dim-emb": (0, "has factors"),
    "lemma-dependency": ("", "has factors"),
    "right-left": (False, "writes from right to left"),
    "ulr": (False, "has universal representations"),
    "output-omit-bias": (False, "has no bias of the logits"),
}
# Further values with the same effect. Dropout (d) acts in training only.
SAME: dict[str, tuple[Any, ...]] = {
    "transformer-postprocess-emb": ("",),
    "transformer-decoder-ffn-depth": (2,),
}
# The operations before and after each sub-layer, and after the last layer: a adds, n normalizes,
# and d is dropout, which acts in training only.
OPERATIONS = (
    *("transformer-preprocess", "transformer-postprocess"),
    "transformer-postprocess-top",
)
POST_NORM, PRE_NORM = ("", "dan", ""), ("n", "da", "n")
NORMALIZED_KEYS = (1, 11)  # the first version that normalizes keys and values of pre-norm models
# What stands in the place of self-attention in the decoder.
DECODER = ("transformer-decoder-autoreg", "dec-cell", "layer-normalization")
SELF_ATTENTION, SSRU = ("self-attention", "gru", False), ("rnn", "ssru", False)
# Options that the import reads.
READ = (
    *(*OPERATIONS, *DECODER),
    *("dim-vocabs", "dim-emb", "enc-depth", "dec-depth", "transformer-heads"),
    *("transformer-dim-ffn", "transformer-decoder-dim-ffn", "transformer-ffn-activation"),
    *("tied-embeddings", "tied-embeddings-src", "tied-embeddings-all"),
)
# Options that Marian wants in each model, without an effect on a Transformer.
UNUSED: dict[str, Any] = {
    **{"bert-train-type-embeddings": True, "bert-type-vocab-size": 2},
    **{"dec-cell-base-depth": 2, "dec-cell-high-depth": 1, "dim-rnn": 1024, "enc-cell": "gru"},
    **{"enc-cell-depth": 1, "enc-type": "bidirectional", "factors-combine": "sum"},
    **{"factors-dim-emb": 0, "input-types": [], "skip": False},
    **{"transformer-aan-activation": "swish", "transformer-aan-depth": 2},
    **{"transformer-aan-nogate": False, "transformer-dim-aan": 2048, "ulr-dim-emb": 0},
    **{"transformer-guided-alignment-layer": "last", "ulr-trainable-transformation": False},
    "separator-symbol": "[eos]",
}
IGNORED = (*UNUSED, "version", "special-vocab", "transformer-depth-scaling", "original-type")


def model_options(arrays: Arrays, path: pathlib.Path) -> tuple[Options, list[str]]:
    """The options in the weights, checked, and notes."""
    options = read_yaml(arrays[OPTIONS].tobytes().rstrip(b"\0"), path)
    for key, (expected, meaning) in FIXED.items():
        value = options.get(key, expected)
        if value not in (expected, *SAME.get(key, ())) and (value or expected):
            raise InputError(
                f"{path}: {key} must be {expected!r}, got {value!r}. This model {meaning}, which "
                "is not supported."
            )
    of_characters = (key for key in options if key.startswith("char-"))
    return options, options.without_effect((*FIXED, *READ, *IGNORED, *of_characters))


def normalizes_first(options: Options) -> bool:
    """Whether layers are pre-norm; an `InputError` if they are neither that nor post-norm."""
    given = tuple(options.get(*pair) for pair in zip(OPERATIONS, POST_NORM, strict=True))
    forms = {tuple(x.replace("d", "") for x in form): form for form in (POST_NORM, PRE_NORM)}
    form = forms.get(tuple(str(operations or "").replace("d", "") for operations in given))
    if form is None:
        raise InputError(
            f"{options.file}: {', '.join(OPERATIONS)} must be {POST_NORM} or {PRE_NORM}, got "
            f"{given}. This model joins its sub-layers in another way, which is not supported."
        )
    version = re.match(r"v(\d+)\.(\d+)", str(options.get("version")))
    if form is PRE_NORM and version and (int(version[1]), int(version[2])) < NORMALIZED_KEYS:
        raise InputError(
            f"{options.file}: a model with {OPERATIONS[0]} n must be of Marian 1.11 or later, got "
            f"{options['version']}. Earlier versions did not normalize keys and values of "
            "self-attention. Train the model again, or take one without this option."
        )
    return form is PRE_NORM


def decodes_with_ssru(options: Options) -> bool:
    """Whether the decoder has an SSRU; an `InputError` if it has neither that nor attention."""
    given = tuple(options.get(*pair) for pair in zip(DECODER, SELF_ATTENTION, strict=True))
    if given[0] != SELF_ATTENTION[0] and given != SSRU:
        raise InputError(
            f"{options.file}: {DECODER[0]} must be {SELF_ATTENTION[0]!r}, or {', '.join(DECODER)} "
            f"must be {SSRU}, got {given}. The decoder of this model is not supported."
        )
    return given == SSRU
