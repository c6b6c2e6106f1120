"""ONNX folders: the same search in onnxruntime, weights in int8, and clear errors for the rest."""

import importlib.util
import json
from unittest import mock

import numpy as np
import pytest
from untrained_translator import untrained

from tf_transformer.commands import export
from tf_transformer.config import Config, DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.export import check_onnx, check_standalone, run_in_onnx, to_onnx
from tf_transformer.inference.translator import Translator
from tf_transformer.run.folder import RunFolder
from tf_transformer.text.tokenizer import Tokenizer

TEXTS = ["", "one", "two hundred and three", "  ", "né 日本\tx", "TWO", "seven " * 30]
TEXTS += ["one {a} <b>three</b> 🙂"]
# Each kind of attention, position, activation and normalization, and each rule of a search.
VARIANTS = {
    "paper": ({}, {}),
    "greedy": ({"norm_first": True}, {"beam_size": 1}),
    "rotary, gelu": (
        {"position": "rotary", "activation": "gelu"},
        {"min_length": 3, "keep": ("common",)},
    ),
    "relative, swiglu": (
        {"position": "relative", "activation": "swiglu"},
        {"early_stopping": "never"},
    ),
    "t5, rms_norm": (
        {"position": "t5", "normalization": "rms_norm"},
        {"repetition_penalty": 1.5, "early_stopping": False},
    ),
    "alibi, local": (
        {"position": "alibi", "attention": "local", "attention_window": 3},
        {"coverage_penalty": 0.2},
    ),
    "learned, strided": (
        {"position": "learned", "max_length": 50, "attention": "strided", "attention_window": 4},
        {"excluded_tokens": ("▁t",), "avoid_unknown": True},
    ),
    "n-grams": ({}, {"no_repeat_ngram_size": 2, "beam_size": 4}),
    "linear": ({"attention": "linear", "tie_embeddings": "none"}, {"max_length": 5}),
    "ssru": ({"decoder_attention": "ssru", "attention_bias": True}, {"min_length_ratio": 0.5}),
    "grouped queries": (
        {"position": "none", "num_heads": 4, "num_key_value_heads": 2},
        {"max_length_ratio": 0.5, "length_penalty_offset": 0.0},
    ),
    "marian": ({"position": "marian"}, {"beam_size": 1, "length_penalty": 0.0}),
}


@pytest.fixture(scope="module")
def tokenizer():
    lines = ["one two three four five six seven", "hundred and twenty thousand"]
    return Tokenizer.train(lines * 3, vocabulary_size=300)


@pytest.fixture
def packages():
    for name in to_onnx.PACKAGES:
        pytest.importorskip(name, reason="needs the extra onnx: pip install '.[onnx]'")


@pytest.mark.slow
@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("name", VARIANTS)
def test_the_search_gives_the_same_translations_and_scores(name, tokenizer, tmp_path):
    """The oracle is this project's search; the last text exceeds the longest source."""
    model, decode = VARIANTS[name]
    decode = {"num_hypotheses": min(2, decode.get("beam_size", 3)), "distinct": False} | decode
    translator = untrained(tokenizer, decode, num_layers=2, **model)
    translator = Translator(
        translator.model, translator.codec, translator.config, lower_capitals=True
    )
    to_onnx.write(translator, tmp_path, "float32")
    found = run_in_onnx.Model(tmp_path, threads=1).n_best(TEXTS)
    expected = translator.n_best(TEXTS)
    assert [[row.text for row in rows] for rows in found] == [
        [row.text for row in rows] for rows in expected
    ]
    scores = ([row.score for rows in each for row in rows] for each in (found, expected))
    np.testing.assert_allclose(*scores, atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("packages")
def test_the_command_writes_a_folder_that_translates_as_the_run_does(run, tmp_path, capsys):
    """The check runs the folder in processes without TensorFlow."""
    to = tmp_path / "small"
    export.main(str(run), str(to), format="onnx", quantization="int8")
    printed = capsys.readouterr().out
    assert "int8 changes log-probabilities by 0.0" in printed
    assert "left out: score of given translations" in printed
    facts = json.loads((to / "metadata.json").read_text("utf-8"))
    assert (facts["weights"], facts["decoding"]["beam_size"]) == ("int8", 2)
    assert {path.name for path in to.iterdir()} == {
        *("metadata.json", "model.onnx", "tokenizer.model", "translate.pyz", "source_words.txt")
    }
    rows = check_standalone.run(to, ["one", "", "  ", "two\u2028three\x85four", "", "né", "last"])
    assert len(rows) == 7
    assert rows[1] == rows[2] == {"translation": "", "score": 0.0}


@pytest.mark.slow
@pytest.mark.usefixtures("packages")
def test_a_wrong_folder_is_refused_and_removed(run, tmp_path, monkeypatch):
    """The folder of a shorter search, in place of the run's."""
    write = to_onnx.write

    def wrong(translator, *others):
        config = DecodeConfig(max_length=2)
        write(Translator(translator.model, translator.codec, config), *others)

    monkeypatch.setattr(to_onnx, "write", wrong)
    with pytest.raises(RuntimeError, match=r"the run it came from\. Source: .*the run gives"):
        export.main(str(run), str(tmp_path / "x"), format="onnx")
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_an_error_before_weights_are_read(monkeypatch, tmp_path):
    RunFolder(tmp_path / "run").save_config(Config())
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "tf2onnx" else find(name)
    )
    monkeypatch.setattr(to_onnx, "PACKAGES", ("tf2onnx",))
    with pytest.raises(InputError, match=r"tf2onnx: pip install 'tf_transformer\[onnx\]'"):
        export.main(str(tmp_path / "run"), str(tmp_path / "out"), format="onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.usefixtures("packages")
def test_an_operation_that_onnx_lacks_is_named(tokenizer, monkeypatch):
    """The stand-in for the search has an operation that tf2onnx 1.17 cannot convert."""
    import tensorflow as tf

    from tf_transformer.decoding import Hypotheses

    def search(source):
        numbers = tf.bitcast(source, tf.float32)
        return Hypotheses(source[:, None], source, numbers, numbers)

    translator = mock.Mock()
    translator.graph.return_value.whole_search = search
    with pytest.raises(InputError, match=r"ONNX has no form of this model.*Bitcast"):
        to_onnx.graphs_of(translator)


def test_differences_within_rounding_are_counted_and_others_refused():
    """By hand: with scores of -2.0, the tolerance is 0.002."""
    of_run = [[([5, 2], -2.0)], [([6, 2], -1.0)], [([7, 2], -1.0)]]
    near = [[([8, 2], -2.001)], *of_run[1:]]
    assert check_onnx.require_equal("abc", of_run, of_run) == 0
    assert check_onnx.require_equal("abc", of_run, near) == 1
    far = [[([8, 2], -2.01)], *of_run[1:]]
    with pytest.raises(RuntimeError, match=r"Source: 'a'; the run gives \[5, 2\] with score -2.0"):
        check_onnx.require_equal("abc", of_run, far)
    with pytest.raises(RuntimeError, match="2 of 3 results"):
        check_onnx.require_equal("abc", of_run, [*near[:1], [([9, 2], -1.0)], *of_run[2:]])
