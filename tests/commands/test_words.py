"""tf-transformer words: the words of parallel text with their translations."""

import itertools

import pytest

from tf_transformer.commands import words
from tf_transformer.errors import InputError

DICTIONARY = {"dog": "Hund", "house": "Haus", "big": "groß", "old": "alt", "runs": "rennt"}


@pytest.fixture
def text(tmp_path):
    """All sentences of three words of the dictionary, with the words in another order."""
    files = [tmp_path / "text.en", tmp_path / "text.de"]
    sentences = list(itertools.permutations(DICTIONARY, 3))
    sides = [
        [f"{words[0].capitalize()} {words[1]} {words[2]}." for words in sentences],
        [f"So {' '.join(DICTIONARY[word] for word in words[::-1])}!" for words in sentences],
    ]
    for file, lines in zip(files, sides, strict=True):
        file.write_text("".join(f"{line}\n" for line in lines))
    return [*map(str, files), str(tmp_path / "words.tsv")]


def test_each_word_has_its_translation_in_its_usual_case(text):
    words.main(*text)
    with open(text[-1]) as file:
        lines = file.read().split("\n")[:-1]
    usual = [f"{one}\t{other}" for one, other in DICTIONARY.items()]
    capitals = [f"{one.capitalize()}\t{other.capitalize()}" for one, other in DICTIONARY.items()]
    assert sorted(lines) == sorted(usual + capitals)


@pytest.mark.parametrize(
    ("lines", "rare"),
    [(("Rex dog", "Hund"), "Rex"), (("hound", "Hund"), "ound"), (("dog", "Köter"), "Köter")],
)
def test_a_rare_word_does_not_displace_a_frequent_one(text, lines, rare):
    """The pair of "dog" and "Hund" stays, though all lines of the rare word have one of them."""
    for path, line in zip(text, lines, strict=False):
        with open(path, "a") as file:
            file.write(f"{line}\n" * 8)
    words.main(*text)
    with open(text[-1]) as file:
        written = file.read()
    assert "dog\tHund\n" in written
    assert rare not in written


def test_the_first_word_is_in_the_case_that_it_has_elsewhere():
    texts = ["My house!", "Is Tom in my house?", "Tom is here.", "HOUSE", "...", "Not"]
    expected = [["my", "house"], ["is", "Tom", "in", "my", "house"], ["Tom", "is", "here"]]
    assert words.in_usual_case(texts) == [*expected, ["house"], [], ["Not"]]


@pytest.mark.parametrize("limits", [{"occurrences": 37}, {"probability": 1.01}])
def test_rare_and_unlikely_pairs_are_left_out(limits, text, capsys):
    """Each word is in 36 of the 60 sentences."""
    words.main(*text, **limits)
    assert capsys.readouterr().out == "0 pairs of words\n"


def test_a_text_without_pairs_of_words_gives_an_empty_file(tmp_path, capsys):
    files = [tmp_path / "a.en", tmp_path / "a.de", tmp_path / "words.tsv"]
    files[0].write_text("17\nHello\n")
    files[1].write_text("17\n...\n")
    words.main(*map(str, files))
    assert (files[2].read_text(), capsys.readouterr().out) == ("", "0 pairs of words\n")


def test_files_of_different_lengths_are_an_error(text):
    with open(text[0], "a") as file:
        file.write("One more.\n")
    with pytest.raises(InputError, match="ends after line 60"):
        words.main(*text)
