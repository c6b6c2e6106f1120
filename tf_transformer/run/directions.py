"""The directions of a translator: its languages, and the tag that chooses each target language."""

from typing import NamedTuple

from tf_transformer.config import Config
from tf_transformer.data import corpora
from tf_transformer.run.run import Run, direction_of
from tf_transformer.text.codec import Codec


class Direction(NamedTuple):
    """Codes of two languages, such as en and de.

    Example:
        >>> Direction("en", "de", ">>de<<").target
        'de'
    """

    source: str
    target: str
    tag: str = ""  # before a text that has no tag; "": none is needed


def needs_language(config: Config, codec: Codec) -> bool:
    """Whether a translator reads no text without a tag, because `decode.target_tag` names none."""
    return _has_learned_tags(config, codec) and not config.decode.default_tag


def _has_learned_tags(config: Config, codec: Codec) -> bool:
    """Whether a translator has several tags, and each text of its training had one of them."""
    if config.task.name != "translation" or len(codec["source"].tags) < 2:
        return False
    data = config.data
    return data.target_language == corpora.SEVERAL or all(corpus.tag for corpus in data.corpora)


def directions_of(run: Run) -> list[Direction]:
    """The directions of a translator, in the order of its corpora; [] if they are unknown.

    A direction of several corpora has the tag "" if one of them has none.
    """
    data, chosen = run.config.data, dict[tuple[str, str], str]()
    for corpus in sorted(data.corpora, key=lambda corpus: bool(corpus.tag)):
        source, target = corpora.languages_of(corpus, data)
        if source and target and source != target:
            chosen.setdefault((source, target), corpus.tag)
    if len(chosen) > 1 and run.config.task.name == "translation":
        return [Direction(*pair, tag) for pair, tag in chosen.items()]
    source, _ = corpora.run_languages(run.config)
    if source and _has_learned_tags(run.config, run.codec):
        tags = sorted(run.codec["source"].tags)
        return [Direction(source, tag.strip("<>"), tag) for tag in tags]
    one = direction_of(run.config)
    return [Direction(*one)] if one else []
