"""The vocabulary of a training text: learned from it, or from files."""

import itertools
import operator
from collections.abc import Sequence

from tf_transformer.config import DataConfig
from tf_transformer.data.corpora import in_folder
from tf_transformer.data.examples import ExampleStream
from tf_transformer.errors import InputError
from tf_transformer.files.reading import split_paths
from tf_transformer.text.codec import Codec
from tf_transformer.text.own_tokenizer import load_own
from tf_transformer.text.tokenizer import Tokenizer


def learned_codec(stream: ExampleStream, data: DataConfig, source: str) -> Codec:
    """A new codec: one tokenizer for all fields, or one for each with `data.vocabularies` separate.

    The vocabulary of the field `source` has the tags of the corpora.
    """
    if data.vocabularies == "joint":
        raise InputError(
            "data.vocabularies joint is for imported models, which --train.init_from names. "
            "Use shared or separate."
        )
    if data.vocabularies == "shared":
        texts = itertools.chain.from_iterable(stream)
        return Codec(Tokenizer.train(texts, symbols=stream.tags, **data.tokenizer_options))
    tokenizers = {}
    for place, field in enumerate(stream.fields):
        lines = map(operator.itemgetter(place), stream)
        tags = stream.tags if field == source else []
        tokenizers[field] = Tokenizer.train(lines, symbols=tags, **data.tokenizer_options)
    return Codec(tokenizers)


def own_codec(data: DataConfig, fields: Sequence[str]) -> Codec | None:
    """The codec of `data.prepared`, or of the files in `data.tokenizer`; None without both."""
    if data.prepared:
        return Codec.load(data.prepared)
    if not data.tokenizer:
        return None
    paths = split_paths(in_folder(data).tokenizer)
    if data.vocabularies == "shared":
        return Codec(load_own(paths[0]))
    if len(paths) != len(fields):
        raise InputError(
            f"data.tokenizer needs a file for each of {', '.join(fields)}, got "
            f"{len(paths)}: {', '.join(paths)}."
        )
    return Codec(dict(zip(fields, map(load_own, paths), strict=True)))
