"""A codec that reads sources as a search does: with rules for punctuation and a target tag."""

from collections.abc import Sequence

from tf_transformer.errors import InputError
from tf_transformer.text.codec import Codec
from tf_transformer.text.normalization import clean, is_blank
from tf_transformer.text.punctuation import opus_punctuation
from tf_transformer.text.target_tag import split_tag


class SourceCodec(Codec):
    """A `Codec` for training. `SearchGraph.encode` gives the same ids on tensors.

    The texts of the field `source` are read with `punctuation`, kept or opus, and get `target_tag`
    if they have no tag and the option is not empty. The vocabulary must have the tag.

    Example:
        >>> from tf_transformer.text.tokenizer import Tokenizer
        >>> codec = Codec(Tokenizer.train(["a house"], vocabulary_size=300))
        >>> reading = SourceCodec(codec, "source", punctuation="opus")
        >>> codec.decode("source", reading.encode("source", "“a house”"))
        '"a house"'
    """

    def __init__(self, codec: Codec, source: str, punctuation: str = "kept", target_tag: str = ""):
        super().__init__(codec.tokenizers)
        self._source = source
        self._is_opus = punctuation == "opus"
        self._rules = f"{punctuation} {target_tag}"
        self._tag = [self[source].tags[target_tag]] if target_tag in self[source].tags else []
        if target_tag and not self._tag:
            tags = ", ".join(sorted(self[source].tags)) or "none"
            raise InputError(
                f"decode.target_tag {target_tag!r} is not in the vocabulary, whose target tags "
                f"are {tags}. Give one of them, or leave it out."
            )

    @property
    def identity(self) -> str:
        """A hash of the vocabularies, and the rules for sources."""
        return f"{super().identity} {self._rules}"

    def encode(self, field: str, text: str) -> list[int]:
        return self.encode_batch(field, [text])[0]

    def encode_batch(self, field: str, texts: Sequence[str]) -> list[list[int]]:
        if field != self._source:
            return super().encode_batch(field, texts)
        texts = ["" if is_blank(text) else clean(text) for text in texts]
        if self._is_opus:
            texts = list(map(opus_punctuation, texts))
        parts = [split_tag(text, self[field].tags) for text in texts]
        texts = [text if rest else "" for text, (_, rest) in zip(texts, parts, strict=True)]
        return [
            [*self._tag, *row] if rest and not tag else row
            for (tag, rest), row in zip(parts, super().encode_batch(field, texts), strict=True)
        ]
