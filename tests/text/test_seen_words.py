"""Words that a training text does not have: in Python and in the graph."""

import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.text import seen_words
from tf_transformer.text.seen_words import UnseenWords


def unseen(words, *texts):
    return [row.decode().split() for row in UnseenWords(words)(tf.constant(texts)).numpy()]


@given(st.lists(st.text(max_size=20) | st.text("abßÄéİΣ कि的猫ไทย'-_1 ", max_size=20), max_size=4))
def test_no_word_of_a_text_is_new_after_a_training_with_it(texts):
    texts = ["a house", *(text.replace("\0", "") for text in texts)]
    words = seen_words.seen_words(texts)
    assert unseen(words, *texts) == [[] for _ in texts]


def test_words_are_letters_alone():
    words = seen_words.seen_words(["Don't (ever) go_there, A40!", "Ein grünes HAUS: 家。"])
    assert words == ["don", "ein", "ever", "grünes", "haus", "家"]
    assert unseen(words, "1\u0301 \u0301 1\u302e xa\u0301") == [["xa\u0301"]]
    texts = "", "EVER: a new-house", "go_there A41 77th x", "猫の家", "e\u0301cole"
    assert unseen(words, *texts) == [[], ["new", "house"], [], ["猫", "の"], ["e\u0301cole"]]


def test_earlier_words_stay_and_a_list_has_a_largest_size(monkeypatch):
    assert seen_words.seen_words(["two"], ["one"]) == ["one", "two"]
    monkeypatch.setattr(seen_words, "MOST", 2)
    assert seen_words.seen_words(["one two three"]) == []
