"""The directions of a translator, by its corpora or by the tags of its vocabulary."""

from types import SimpleNamespace

import pytest

from tf_transformer.config import Config, Corpus, DataConfig, DecodeConfig
from tf_transformer.run.directions import Direction, directions_of, needs_language

TAGS = (">>bt<<", ">>de<<", ">>fr<<")


def run_of(*corpora, tags=TAGS, target_tag="", **data):
    """A run with such corpora; a corpus is the ending of its target file, and its tag."""
    listed = tuple(Corpus("a.en", f"a.{ending}", tag=tag) for ending, tag in corpora)
    config = Config(
        data=DataConfig(corpora=listed, **data), decode=DecodeConfig(target_tag=target_tag)
    )
    return SimpleNamespace(config=config, codec={"source": SimpleNamespace(tags=tags)})


SEVERAL = (("de", ">>de<<"), ("fr", ">>fr<<"))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (run_of(("de", "")), [Direction("en", "de")]),
        (run_of(("de", ""), ("de", ">>bt<<")), [Direction("en", "de")]),
        (run_of(*SEVERAL), [Direction("en", "de", ">>de<<"), Direction("en", "fr", ">>fr<<")]),
        (
            run_of(("de", ">>bt<<"), ("fr", ">>fr<<"), ("de", "")),
            [Direction("en", "de"), Direction("en", "fr", ">>fr<<")],
        ),
        (
            run_of(source_language="en", target_language="mul", tags=(">>por<<", ">>deu<<")),
            [Direction("en", "deu", ">>deu<<"), Direction("en", "por", ">>por<<")],
        ),
    ],
)
def test_directions_are_those_of_the_corpora_or_of_the_tags(run, expected):
    assert directions_of(run) == expected


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (run_of(*SEVERAL), True),
        (run_of(*SEVERAL, target_tag="required"), True),
        (run_of(*SEVERAL, target_tag="fr"), False),
        (run_of(*SEVERAL, ("de", "")), False),
        (run_of(("de", ""), ("de", ">>bt<<")), False),
        (run_of(("de", ""), target_language="mul"), True),
        (run_of(*SEVERAL, tags=(">>de<<",)), False),
    ],
)
def test_each_text_needs_a_language_if_all_training_text_had_one(run, expected):
    assert needs_language(run.config, run.codec) == expected
