"""Punctuation of OPUS-MT's preprocessing, in Python and in the graph."""

import pytest
import tensorflow as tf

from tf_transformer.text.punctuation import RULES, opus_punctuation

# Expected: Moses' rules (sacremoses, English, without rules for commas after quotation marks).
CASES = {
    "„Ja“ – he said…": '"Ja" - he said...',
    "« oui » : non": '" oui ": non',
    "«\u00a0oui\u00a0» non": '"oui" non',
    "a  （b） ,c": "a (b),c",
    "１００ % at 5\u00a0cm": "100% at 5 cm",
    "it’s ‘so’ — yes": "it's 'so' - yes",
    "a\u200bb\x07c": "a b c",
    "好。好": "好. 好",
    ">>por<< “x”": '>>por<< "x"',
    "": "",
}


def in_graph(text: str) -> str:
    tensor = tf.constant([text])
    for pattern, replacement in RULES:
        tensor = tf.strings.regex_replace(tensor, pattern, replacement)
    return tensor.numpy()[0].decode()


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_python_and_graph_replace_punctuation(text, expected):
    assert opus_punctuation(text) == expected
    assert in_graph(text) == expected
