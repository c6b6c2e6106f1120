"""benchmarks/decode: texts, table, options, and the checks that refuse a false speed."""

import json

import pytest

from benchmarks.decode import __main__ as command
from benchmarks.decode import expected, report, sentences, systems, workload
from benchmarks.decode.workload import Cell
from benchmarks.harness.processes import ProcessError
from benchmarks.harness.shapes import SHAPES
from benchmarks.harness.speed import Measurement, Place, speeds_of
from benchmarks.harness.systems import not_installed
from benchmarks.harness.tasks import Setting
from benchmarks.harness.usage import Usage
from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.text.tokenizer import Tokenizer


@pytest.mark.parametrize("vocabulary_size", [600, 8000])
def test_sentences_have_the_tokens_asked_for(vocabulary_size):
    lines = sentences.generated_lines(vocabulary_size)
    tokenizer = Tokenizer.train(lines, vocabulary_size)
    assert tokenizer.vocabulary_size == vocabulary_size
    texts = sentences.sentences_of(24, lines, tokenizer.encode, count=5)
    assert [len(tokenizer.encode(text)) for text in texts] == [24] * 5
    assert len(set(texts)) == 5


def test_sentences_of_another_length_are_refused():
    def encode(text):
        return [5] * (7 if " " in text else 2)

    with pytest.raises(RuntimeError, match="expected 24 tokens, got 7"):
        sentences.sentences_of(24, ["ab cd"], encode, count=1)
    with pytest.raises(RuntimeError, match="no word of the text is a single piece"):
        sentences.sentences_of(24, ["ab cd"], lambda text: [5, 6, 2], count=1)


def test_shapes_are_those_of_the_presets():
    for name in ("tiny", "base", "big"):
        shape, preset = SHAPES[name], ModelConfig.preset(name)
        sizes = (preset.num_layers, preset.d_model, preset.d_ff, preset.num_heads)
        assert tuple(shape)[:-1] == sizes


def test_random_sources_are_whole_sentences():
    ids = workload.random_sources(SHAPES["tiny"]._replace(vocabulary_size=6), 3)
    assert ids.shape == (3, 24)
    assert (ids[:, -1] == 2).all()
    assert set(ids[:, :-1].flat) == {4, 5}  # below are padding, start, end and unknown


@pytest.mark.parametrize("lengths", [[24, 23], [24], [24, 24, 24], []])
def test_translations_that_end_early_or_are_missing_are_refused(lengths):
    workload.check_lengths([24, 24], 2, 24)
    with pytest.raises(RuntimeError, match="expected 2 translations of 24 tokens each"):
        workload.check_lengths(lengths, 2, 24)


def test_scores_of_shorter_translations_are_refused(tmp_path):
    setting = Setting(SHAPES["tiny"], tmp_path, tmp_path / "mine")
    expected.write_expected(setting, Cell(4, 2), ["a", "b"], [-60.0, -62.0])
    texts, check = expected.read_expected(setting, Cell(beam=4, batch=1))
    assert texts == ["a"]
    check([-60.5])
    for wrong in ([-45.0], [-60.0, -62.0], []):
        with pytest.raises(RuntimeError, match="not the full translations"):
            check(wrong)


def test_lengths_have_files_of_their_own(tmp_path):
    setting = Setting(SHAPES["tiny"], tmp_path, tmp_path / "mine")
    paths = {expected.saved_model_path(setting, Cell(4, 1, tokens)) for tokens in (24, 100)}
    assert len(paths) == 2
    assert str(Cell(4, 1, 100)) == "beam 4, batch 1, 100 tokens"


def measured(system, seconds, sentences=1, cell=(1, 1), shape="tiny"):
    place = Place(shape, system, Cell(*cell))
    usages = [Usage(each, 0, 0.0) for each in seconds]
    return Measurement(place, 24 * sentences, 1, 0, usages, [])


def speeds():
    """By hand: 12,000 and 24,000 for CTranslate2, 6,000 and 36,000 for this project."""
    return speeds_of(
        [
            measured("ctranslate2", [0.002]),
            measured("savedmodel", [0.004]),
            measured("ctranslate2", [0.032], 32, (4, 32)),
            measured("savedmodel", [0.064 / 3], 32, (4, 32)),
            measured("marian", [0.008]),
        ]
    )


def test_a_table_shows_speed_and_ratio_of_the_same_cell():
    cells = [Cell(1, 1), Cell(4, 32)]
    names = ["savedmodel", "python", "ctranslate2", "marian"]
    assert report.table(speeds(), "tiny", names, cells).split("\n") == [
        "tiny: 4 layers, d_model 128, d_ff 256, 4 heads, vocabulary 8,000",
        "",
        "| system | greedy, batch 1 | beam 4, batch 32 |",
        "| --- | ---: | ---: |",
        "| `savedmodel` | 6,000 (0.50) | 36,000 (1.50) |",
        "| `ctranslate2` | 12,000 (1.00) | 24,000 (1.00) |",
        "| `marian` | 3,000 (0.25) | – |",
    ]


def test_without_the_reference_a_table_has_no_ratios():
    found = speeds_of([measured("python", [0.004])])
    assert "| `python` | 6,000 |" in report.table(found, "tiny", ["python"], [Cell(1, 1)])
    (row,) = report.rows_of(found)
    assert row["ratio_to_ctranslate2"] is None
    assert (row["beam"], row["batch"], row["target_tokens"]) == (1, 1, 24)


@pytest.fixture
def calls(monkeypatch):
    """The calls of processes that are not started; marian's fails when it is measured."""
    made = []

    class Process:
        def __init__(self, environment):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def call(self, place, **arguments):
            step = place.split(":")[1]
            made.append((step, arguments["shape"], arguments["system"]))
            if step == "measure" and arguments["system"] == "marian":
                raise ProcessError("out of memory")
            return {"tokens": 24, "steps": 1, "parameters": 0, "values": []} | {
                "usages": [[0.002, 5, 0.001]]
            }

    monkeypatch.setattr(command, "Process", Process)
    monkeypatch.setattr(command, "not_installed", lambda packages: ["torch"] * ("jax" in packages))
    return made


OPTIONS = {"shapes": "tiny", "batches": "1", "beams": "1"}


def test_a_system_is_built_once_and_measured_in_every_round(calls, tmp_path, capsys):
    output = tmp_path / "results.json"
    command.main(**OPTIONS, rounds=2, systems="ctranslate2,python", output=str(output))
    steps = ["build"] * 2 + ["measure"] * 4
    assert calls == [
        (step, "tiny", name)
        for step, name in zip(steps, ["ctranslate2", "python"] * 3, strict=True)
    ]
    result = json.loads(output.read_text("utf-8"))
    assert [row["tokens_per_second"] for row in result["measurements"]] == [12_000] * 2
    assert [row["minor_faults"] for row in result["measurements"]] == [5] * 2
    assert "| `python` | greedy, batch 1 | 5 | 1.0 | 2.0 |" in capsys.readouterr().out


def test_a_system_whose_package_is_missing_is_skipped(calls, monkeypatch, tmp_path, capsys):
    absent = {**systems.SYSTEMS, "other": systems.System("x:task", ("jax",), {})}
    monkeypatch.setattr(command, "SYSTEMS", absent)
    output = tmp_path / "results.json"
    command.main(**OPTIONS, rounds=1, systems="python,other", output=str(output))
    assert {system for _, _, system in calls} == {"python"}
    assert "skipped: other (needs torch)" in capsys.readouterr().out
    assert json.loads(output.read_text("utf-8"))["skipped"] == {"other": ["torch"]}


def test_a_failed_system_makes_the_command_fail(calls, capsys):
    with pytest.raises(SystemExit) as caught:
        command.main(**OPTIONS, rounds=2, systems="marian,python")
    assert caught.value.code == 1
    assert [name for step, _, name in calls if step == "measure"] == ["marian", "python", "python"]
    assert "failed: tiny marian (out of memory)" in capsys.readouterr().out


def test_packages_that_are_not_installed_are_named():
    assert not_installed(["json", "no_such_package"]) == ["no_such_package"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"systems": "python,pyhton"}, "unknown name 'pyhton'"),
        ({"shapes": "huge"}, "expected some of base, big, tiny"),
        ({"batches": "1,x"}, "expected positive numbers, like 1,32, got '1,x'"),
        ({"beams": "0"}, "expected positive numbers, like 1,32, got '0'"),
        ({"target_tokens": "-1"}, "expected positive numbers, like 1,32, got '-1'"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
    ],
)
def test_bad_options_are_errors_of_the_user(calls, options, text):
    with pytest.raises(InputError, match=text):
        command.main(**options)
    assert not calls
