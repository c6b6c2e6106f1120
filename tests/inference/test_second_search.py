"""The second search: it replaces translations with a fault, and no others."""

from dataclasses import replace

import pytest

from tf_transformer.errors import InputError
from tf_transformer.inference.second_search import FAULTS
from tf_transformer.inference.text_predictor import TextPredictor
from tf_transformer.inference.translator import Translator

TEXTS = [
    *("twenty-one", "", "17", "in 1998, two", "March 2024 and 1998.", "seven " * 9),
    *("one two six one two", "nine hundred and ninety-nine thousand"),
]
SEARCHES = {
    "greedy": {"beam_size": 1},
    "n_best": {"beam_size": 3, "num_hypotheses": 2},
    "all": {"split": "sentences", "keep": ("common",), "word_probabilities": True},
}


def faults(prediction):
    return [notice for notice in prediction.notices if notice in FAULTS]


@pytest.mark.parametrize(
    "name", ["greedy", *(pytest.param(name, marks=pytest.mark.slow) for name in ("n_best", "all"))]
)
def test_a_translation_with_fewer_faults_replaces_the_first_one(run, name):
    first, second = (
        Translator.from_run(run, **SEARCHES[name], second_search=x) for x in (False, True)
    )
    before, after = first.n_best(TEXTS), second.n_best(TEXTS)
    replaced = [old != new for old, new in zip(before, after, strict=True)]
    for text, old, new, is_new in zip(TEXTS, before, after, replaced, strict=True):
        if is_new:
            assert len(faults(new[0])) < len(faults(old[0])), text
        assert [x.text for x in second.n_best([text])[0]] == [x.text for x in new]
    assert any(replaced)
    assert not all(replaced)


@pytest.mark.slow
def test_texts_with_a_prefix_or_terms_are_not_searched_again(run):
    first, second = (Translator.from_run(run, second_search=x) for x in (False, True))
    assert first(TEXTS) != second(TEXTS)
    prefixes = ["ein"] * len(TEXTS)
    assert second(TEXTS, prefixes) == first(TEXTS, prefixes)
    texts = [text for text in TEXTS if "two" in text]
    terms = ["two\tdrei"] * len(texts)
    assert second(texts, terms=terms) == first(texts, terms=terms)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_an_export_searches_again_like_python(run, tmp_path, name):
    translator = Translator.from_run(run, **SEARCHES[name], second_search=True)
    translator.save(tmp_path / "1")
    saved = Translator.load(tmp_path / "1")
    rows = translator.n_best(TEXTS)
    assert [[x.text for x in row] for row in saved.n_best(TEXTS)] == [
        [x.text for x in row] for row in rows
    ]
    assert [x.text for x in saved(TEXTS)] == [x.text for x in translator(TEXTS)]


def test_predictors_of_other_texts_refuse_the_option(run):
    translator = Translator.from_run(run)
    options = replace(translator.config, second_search=True)
    with pytest.raises(InputError, match=r"decode.second_search is for translators"):
        TextPredictor(translator.model, translator.codec, options)
