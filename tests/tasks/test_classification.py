"""Encoder-only models: pre-training, fine-tuning, scores, labels out, exports, bad input."""

import dataclasses
import io
import itertools
import json
import math

import numpy as np
import pytest

from tf_transformer.commands import evaluate, export, train, translate
from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.export.check import in_session
from tf_transformer.run_folder import RunFolder
from tf_transformer.tasks import load_predictor
from tf_transformer.tasks.classification import CLASSIFICATION

MODEL = ModelConfig(num_layers=1, d_model=16, d_ff=32, num_heads=2, dropout_rate=0.0)
SIZES = {"vocabulary_size": 320, "batch_tokens": 500, "max_length": 40}
WORDS = {"animal": ["dog", "cat", "horse", "bird"], "plant": ["oak", "rose", "fern", "grass"]}
SENTENCES = ["a {} and a {} here", "the {} is near the {}", "I see {} with {}"]
TEXTS = [  # (text, label)
    (sentence.format(*words), label)
    for label, names in WORDS.items()
    for words in itertools.product(names, names)
    for sentence in SENTENCES
]
np.random.default_rng(1).shuffle(TEXTS)


def options(steps, **more):
    defaults = {"warmup_steps": 30, "learning_rate": 0.5, "label_smoothing": 0.0, "threads": 2}
    return TrainConfig(steps=steps, validate_every=steps, **defaults | more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("encoder_only")


@pytest.fixture(scope="module")
def pretrained(folder):
    """A masked language model of all texts."""
    (folder / "text").write_text("".join(text + "\n" for text, _ in TEXTS))
    data = DataConfig(train_file=str(folder / "text"), **SIZES)
    run = folder / "pretrained"
    train.main(str(run), MODEL, data, options(60), DecodeConfig(average=1), "masked_language_model")
    return run


@pytest.fixture(scope="module")
def classifier(folder, pretrained):
    """A classifier of the texts that starts with the encoder of the masked language model."""
    return fine_tuned(folder, pretrained, "one", [(text, label) for text, label in TEXTS])


@pytest.fixture(scope="module")
def of_pairs(folder, pretrained):
    """Pairs of texts; the labels name the kinds of both."""
    rows = [
        (one, other, ", ".join(sorted({label, label_of_other})))
        for (one, label), (other, label_of_other) in itertools.pairwise(TEXTS)
    ]
    columns = {"text_columns": ("1", "2"), "label_column": "3", "label_separator": ","}
    return fine_tuned(folder, pretrained, "pairs", rows, **columns)


def fine_tuned(folder, pretrained, name, rows, **columns):
    header = "" if columns else "text\tlabel\n"
    table = folder / f"{name}.tsv"
    table.write_text(header + "".join("\t".join(row) + "\n" for row in rows))
    data = DataConfig(train_file=str(table), **SIZES | columns)
    run = folder / name
    tuning = options(100, init_from=str(pretrained))
    decode = DecodeConfig(average=1, num_hypotheses=2)
    train.main(str(run), MODEL, data, tuning, decode, "classification")
    return run


def test_a_masked_language_model_is_evaluated(pretrained, folder, capsys):
    evaluate.main(str(pretrained), reference=str(folder / "text"), output=str(folder / "restored"))
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert scores.keys() == {"masked_perplexity", "masked_accuracy", "masked", "sentences"}
    assert scores["masked_accuracy"] > 0.25
    restored = (folder / "restored").read_text().splitlines()
    assert len(restored) == len(TEXTS)


def test_a_classifier_is_evaluated(classifier, folder, capsys):
    evaluate.main(str(classifier), reference=str(folder / "one.tsv"))
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert scores.keys() == {"accuracy", "f1_macro", "f1_micro", "examples"}
    assert scores["accuracy"] > 0.95
