"""Imported Marian models against Transformers; `fixtures/make_marian.py` has stored its results."""

import json
import pathlib
import shutil
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from tf_transformer.commands import import_model
from tf_transformer.imports import marian_folder
from tf_transformer.inference.search import LengthPenalty, Search, score_pairs
from tf_transformer.inference.translator import Translator
from tf_transformer.text.graph_tokenizer import as_strings, clean
from tf_transformer.text.sequences import shift_right
from tf_transformer.text.special_ids import EOS_ID

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "marian"


def folder_of(name, to):
    """A copy of a stored folder. All stored folders have the same SentencePiece models."""
    folder = pathlib.Path(shutil.copytree(FIXTURES / name, to))
    for side in ("source", "target"):
        shutil.copy(FIXTURES / f"{side}.spm", folder)
    return folder


class Case:
    """An imported model, and what Transformers computes with the original."""

    def __init__(self, folder):
        self.imported = marian_folder.read(folder)
        self.codec, self.model = self.imported.codec, self.imported.model
        self.expected = json.loads((folder / "expected.json").read_text("utf-8"))
        self.arrays = np.load(folder / "expected.npz")
        source, target = self.imported.vocabularies
        self.orders = {"source": source.order, "target": target.order}

    def theirs(self, field, ids):
        """Our ids as ids of Transformers."""
        return self.orders[field][np.asarray(ids, int)].tolist()

    def batch(self, field, texts):
        rows = self.codec.encode_batch(field, texts)
        return tf.ragged.constant(rows, tf.int32).to_tensor()


@pytest.fixture(scope="module", params=["shared", "separate"])
def case(request, tmp_path_factory):
    return Case(folder_of(request.param, tmp_path_factory.mktemp("marian") / request.param))


def test_ids_are_those_of_transformers_in_python_and_in_the_graph(case):
    lines, graph = case.expected["lines"], case.codec.in_graph()
    for key, field, tag in (
        ("source_ids", "source", ""),
        ("target_ids", "target", ""),
        ("tagged_ids", "source", ">>nld<< "),
    ):
        texts = [tag + line for line in lines]
        rows = case.codec.encode_batch(field, texts)
        assert [case.theirs(field, row) for row in rows] == case.expected[key]
        in_graph = graph[field].encode(clean(as_strings(texts))).to_list()
        assert [[*row, EOS_ID] for row in in_graph] == rows


def test_logits_are_those_of_transformers(case):
    source = case.batch("source", case.expected["sentences"])
    target = case.batch("target", case.expected["targets"])
    ours = np.asarray(case.model((source, shift_right(target))))
    order = case.orders["target"][2:]  # without padding and start
    for row, ids in enumerate(target.numpy()):
        length = np.count_nonzero(ids)
        theirs = case.arrays["logits"][row, :length][:, order]
        np.testing.assert_allclose(ours[row, :length, 2:], theirs, atol=1e-4)


def test_scores_of_given_targets_are_those_of_transformers(case):
    source = case.batch("source", case.expected["sentences"])
    target = case.batch("target", case.expected["targets"])
    scores = score_pairs(case.model, source, target, LengthPenalty(1.0, 0.0))
    np.testing.assert_allclose(scores.log_probability, case.arrays["scores"], atol=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_translations_are_those_of_transformers(case, beam_size):
    config = replace(case.imported.config.decode, beam_size=beam_size)
    signature = [tf.TensorSpec((None, None), tf.int32)]
    search = tf.function(Search(case.model, config), signature, autograph=False)
    found = search(case.batch("source", case.expected["sentences"]))
    expected = case.expected["greedy" if beam_size == 1 else "beam"]
    compared = 0
    for i, (row, theirs) in enumerate(zip(found.ids[:, 0].numpy(), expected, strict=True)):
        if len(theirs) == config.max_length:  # Transformers forces the end token at its limit
            continue
        compared += 1
        ids = row[: len(theirs)]
        assert case.theirs("target", ids) == theirs
        if beam_size > 1:
            assert found.scores[i, 0].numpy() == pytest.approx(
                case.arrays["beam_scores"][i], abs=1e-4
            )
            assert case.codec.decode("target", ids) == case.expected["beam_texts"][i]
    assert compared >= 3


def test_the_command_writes_a_run_that_translates_as_the_model(case, tmp_path, capsys):
    folder = folder_of("shared", tmp_path / "model")
    import_model.main(str(folder), str(tmp_path / "run"))
    assert "en to de" in capsys.readouterr().out
    translator = Translator.from_run(tmp_path / "run")
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    translations = translator(expected["sentences"])
    for each, text in zip(translations, expected["beam_texts"], strict=True):
        assert each.at_limit or each.text == text
    assert sum(each.at_limit for each in translations) < 2
