"""Metadata of exports; tests/commands/test_commands.py reads the metadata of an export."""

import pytest

from tf_transformer.config import DataConfig
from tf_transformer.tasks.translation import languages


@pytest.mark.parametrize(
    ("options", "source", "target"),
    [
        ({"train_source": "x/a.en", "train_target": "b.de.gz"}, "en", "de"),
        ({"train_source": "a.txt", "train_target": "corpus"}, None, None),
        ({"train_source": "a.fr", "train_target": "a.tgt"}, "fr", None),
        ({"tfds": "wmt14_translate/de-en:1.0.0"}, "de", "en"),
        ({"tfds": "wmt14_translate/de-en", "tfds_reverse": True}, "en", "de"),
        ({"tfds": "my_corpus"}, None, None),
        ({"source_language": "fr", "target_language": "it"}, "fr", "it"),
    ],
)
def test_languages_are_those_in_the_names_of_the_data(options, source, target):
    assert languages(DataConfig(**options)) == {"source": source, "target": target}
