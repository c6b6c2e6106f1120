"""research/directions: the corpora and the updates of each model."""

import json

from research.directions import MODELS, model_of


def test_a_model_has_a_corpus_and_the_updates_of_each_direction():
    (alone,) = json.loads(model_of("de-en", ("de-en",), 10).options["data.corpora"])
    assert alone == {"source": "multi30k/train.de", "target": "multi30k/train.en"}
    options = model_of("both", ("en-de", "de-en"), 10).options
    listed = json.loads(options["data.valid_corpora"])
    assert [corpus["tag"] for corpus in listed] == ["language"] * 2
    assert listed[1]["source"] == "multi30k/val.de"
    assert options["train.steps"] == 20


def test_each_direction_of_a_model_has_a_model_of_its_own():
    alone = {name for name, directions in MODELS.items() if len(directions) == 1}
    assert {direction for directions in MODELS.values() for direction in directions} == alone
