"""research/variants and research/equal_budgets: their numbers on tiny work."""

import json

import pytest

from research import equal_budgets, variants
from research.figures import blocks
from tf_transformer.config import PRESETS, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator
from tf_transformer.run.folder import RunFolder

TINY = {"preset": "tiny", "sentences": 3, "tokens": 5, "updates": 1, "searches": 1}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_variant_is_a_model(preset):
    """Of a gated network with 2/3 of d_ff, 3 · 2/3 · d_ff · D parameters remain 2 · d_ff · D."""
    configs = {
        name: ModelConfig.preset(preset, **variant.options)
        for name, variant in variants.variants(preset).items()
    }
    assert configs["swiglu"].d_ff == 2 * configs["plain"].d_ff // 3
    deep = configs["deep_encoder"]
    assert deep.encoder.num_layers + deep.decoder.num_layers == 2 * configs["plain"].num_layers


@pytest.mark.parametrize(
    "name", ["multi_query", "luong", "parsing", "language_modeling", "classification"]
)
def test_a_round_measures_training_and_predictions(name, monkeypatch):
    """By hand: a token has 1 layer · 1 of 4 heads · (8 + 8) numbers of 4 bytes in the cache."""
    small = ModelConfig(num_layers=1, d_model=32, d_ff=24)
    monkeypatch.setitem(variants.PRESETS, "tiny", small)
    monkeypatch.setattr(variants, "VOCABULARY", 50)
    found = variants.measured(name, **TINY)
    speeds = [found[f"{kind}_tokens_per_second"] for kind in ("training", "prediction", "beam")]
    if name == "classification":  # has no search
        assert speeds.pop() is None
    assert min(speeds) > 0
    if name == "multi_query":
        assert found["cache_bytes_per_token"] == 64


def test_the_median_of_all_rounds_is_reported(monkeypatch, tmp_path, capsys):
    speeds = iter([5.0, 1.0, 30.0])
    monkeypatch.setattr(variants, "call", lambda place, **work: {"speed": next(speeds)})
    variants.main(names="rotary", rounds=3, output=str(tmp_path / "x.json"))
    assert "| rotary | 5 |" in capsys.readouterr().out
    assert json.loads((tmp_path / "x.json").read_text())["summary"]["preset"] == "tiny"


def test_an_unknown_variant_is_an_error():
    with pytest.raises(InputError, match="unknown name 'rotery'"):
        variants.main(names="rotery")


CONFIG = """
data: {generated_pairs: 60, held_out: 5, vocabulary_size: 300, batch_tokens: 200}
model: {num_layers: 1, d_model: 8, d_ff: 8, num_heads: 2}
train: {warmup_steps: 2, threads: 1, valid_score_examples: 0}
decode: {beam_size: 1, max_extra_length: 2}
"""


def test_runs_are_trained_on_short_pairs_and_scored(tmp_path, monkeypatch):
    from tf_transformer.commands import command_line, train

    def in_this_process(command, **options):
        command_line.run(train.main, command[4:])

    monkeypatch.setattr(equal_budgets.subprocess, "run", in_this_process)
    (tmp_path / "c.yaml").write_text(CONFIG)
    lines = ["one", "two hundred and twenty thousand and forty-one"]
    for name in ("s", "t"):
        (tmp_path / name).write_text("\n".join(lines))
    places = (str(tmp_path / name) for name in ("runs", "s", "t"))
    output = tmp_path / "positions.json"
    equal_budgets.main(
        *(str(tmp_path / "c.yaml"), *places, "model.position", "rotary,none"),
        options={"train.steps": 2, "data.max_length": 80},
        buckets="9",
        output=str(output),
    )
    config = RunFolder(tmp_path / "runs" / "rotary").load_config()
    assert (config.data.max_length, config.model.position) == (80, "rotary")
    rows = json.loads(output.read_text())["measurements"]
    found = {(row["model"], row["source_tokens"]): row for row in rows}
    assert [found["none", bucket]["sentences"] for bucket in ("all", "1 to 9", "from 10")] == [
        2,
        1,
        1,
    ]
    texts = [each.text for each in Translator.from_run(tmp_path / "runs" / "none")(lines)]
    expected = equal_budgets.score(texts[1:], lines[1:])
    assert expected.items() <= found["none", "from 10"].items()
    monkeypatch.setattr(blocks, "rows_of", lambda name: rows)
    assert blocks.by_length("positions").startswith("| model | all |")


def test_options_that_do_not_fit_are_errors():
    with pytest.raises(InputError, match="needs --values and a single configuration"):
        equal_budgets.models("a.yaml,b.yaml", "model.position", "none")
    names = [each.name for each in equal_budgets.models("configs/a.yaml,b.yaml", "", "")]
    assert names == ["a", "b"]
