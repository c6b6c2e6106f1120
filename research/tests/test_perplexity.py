"""research/perplexity: its numbers on small texts."""

import json
import math

import pytest

from research import perplexity
from tf_transformer import tasks
from tf_transformer.config import Config, DecodeConfig, ModelConfig
from tf_transformer.inference.text_generator import TextGenerator
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.run.folder import RunFolder
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import BYTES, Tokenizer


def test_text_that_was_seen_costs_nothing_and_new_text_costs_bits():
    text = [chr(33 + (7 * i * i + i) % 89) * 2 for i in range(2000)]
    assert perplexity.compressed_bits_per_byte(text, text) < 0.1
    assert perplexity.compressed_bits_per_byte(text, ["Ünseen words"] * 2) > 1


def test_a_model_that_knows_nothing_needs_a_byte_for_a_byte(tmp_path, monkeypatch, capsys):
    """By hand: its 261 tokens have nearly equal probabilities, so log2(261) = 8.03 bits."""
    model = LanguageModel(BYTES, ModelConfig(num_layers=1, d_model=8, d_ff=8, num_heads=1))
    model.build()
    for weight in model.weights:
        weight.assign(0.01 * weight)
    generator = TextGenerator(model, Codec(Tokenizer.train([], BYTES)), DecodeConfig())
    monkeypatch.setattr(tasks, "load_predictor", lambda run: generator)
    RunFolder(tmp_path).save_config(Config(task="language_modeling"))
    (tmp_path / "text").write_text("one line\nanother\n")
    text, output = str(tmp_path / "text"), tmp_path / "found.json"
    perplexity.main([str(tmp_path)], text, text, str(output))
    ours, xz = json.loads(output.read_text())["measurements"]
    assert ours["bits_per_byte"] == pytest.approx(math.log2(BYTES), abs=0.02)
    assert (ours["system"], xz["system"]) == (str(tmp_path), "xz")
    assert "| xz | – |" in capsys.readouterr().out
