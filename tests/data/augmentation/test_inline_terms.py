"""Terms of a glossary in the source: which are learned, where they stand, what a training keeps."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.config import AugmentConfig, DataConfig
from tf_transformer.data.augmentation.glossary import learned_glossary
from tf_transformer.data.augmentation.inline_terms import of_glossary, same_stem
from tf_transformer.errors import InputError
from tf_transformer.text.inline_terms import MARKED
from tf_transformer.text.kept_spans import spans
from tf_transformer.text.terms import Term, units

GLOSSARY = {"house": "Haus", "tree": "Baum", "trees": "Bäume", "old": "alt", "sees": "sieht"}
FORMS = [*GLOSSARY.values(), "Hause", "Baums", "alte", "alten", "Bau", "ein", "der", "."]
SOURCES = st.lists(
    st.sampled_from([*GLOSSARY, "a", "the", ".", "<b>", "tree.org", "{house}", "https://old.org/a"])
).map(" ".join)
TARGETS = st.lists(st.sampled_from(FORMS)).map(" ".join)


def changed(source, target, seed):
    terms = [Term(*pair) for pair in GLOSSARY.items()]
    return of_glossary(terms)((source, target), np.random.default_rng(seed))


@given(SOURCES, TARGETS, st.integers(0, 99))
def test_translations_stand_behind_words_whose_form_the_target_has(source, target, seed):
    new, same = changed(source, target, seed)
    assert same == target
    assert (new, same) == changed(source, target, seed)
    found = list(re.finditer(r"\[ (?P<phrase>[^\[|\]]*) \| (?P<words>[^\[|\]]*) \]", new))
    assert len(found) <= 3
    free = units(target)
    for match in found:
        for word in match["words"].split():
            form = next(unit for unit in free if same_stem(unit, word))
            free.remove(form)
    outside = re.escape("\0".join(re.split(MARKED, new)[::2])).replace("\0", r"[\w ]+")
    assert re.fullmatch(outside, source)
    assert spans(re.sub(MARKED, r"\1", new)) == spans(source)


def test_words_of_a_term_may_be_joined_and_its_phrase_may_be_of_another():
    made = {changed("the old house", "das alte Haus", seed)[0] for seed in range(200)}
    assert "the [ old house | alt Haus ]" in made
    assert "the [ old | alt ] [ house | Haus ]" in made
    assert "the old [ tree | Haus ]" in made
    assert {changed("the house", "das Gebäude", seed)[0] for seed in range(9)} == {"the house"}


def test_no_words_of_function_and_no_rare_words_are_learned():
    pairs = [("I see the big house", "ich sehe das große Haus")] * 4
    pairs += [("I see the tree", "ich sehe den Baum")] * 5
    pairs += [("I see the sea", "ich sehe das Meer")] * 300
    assert learned_glossary(pairs) == [Term("tree", "Baum")]
    assert learned_glossary(pairs[::-1]) == [Term("tree", "Baum")]


def test_a_prepared_text_has_no_terms():
    with pytest.raises(InputError, match=r"data\.augment\.terms learns terms from the text, which"):
        DataConfig(prepared="shards", augment=AugmentConfig(terms=0.1))
