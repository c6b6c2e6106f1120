"""The phrases that the models of everyday text learn more often."""

import pathlib

from benchmarks import translations
from benchmarks.translations.split_text import essence

FOLDER = pathlib.Path(translations.__path__[0])


def pairs_of(name):
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines]


def test_each_line_is_a_phrase_and_its_translation_with_the_same_end_mark():
    pairs = pairs_of("phrases_en_de.tsv")
    assert len({*pairs}) == len(pairs) > 100
    for pair in pairs:
        assert all(phrase == " ".join(phrase.split()) for phrase in pair)
        english, german = (phrase[-1] if phrase[-1] in ".!?," else "" for phrase in pair)
        assert english == german, pair


def test_the_set_of_unusual_input_has_none_of_the_phrases():
    words = [
        {essence(text) for text in side} for side in zip(*pairs_of("words_en_de.tsv"), strict=True)
    ]
    for pair in pairs_of("phrases_en_de.tsv"):
        assert not any(essence(text) in known for text, known in zip(pair, words, strict=True))
