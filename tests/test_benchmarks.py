"""The pure parts of benchmarks/: texts, medians, ratios, tables, and what refuses a false speed."""

import importlib
import json
import pathlib

import pytest

from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.tokenizer import Tokenizer

FOLDER = pathlib.Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def in_benchmarks(monkeypatch):
    """Its files import each other as programs in one folder do."""
    monkeypatch.syspath_prepend(str(FOLDER))


def load(name):
    return importlib.import_module(name)


@pytest.mark.parametrize("vocabulary_size", [600, 8000])
def test_sentences_have_the_tokens_asked_for(vocabulary_size):
    sentences = load("sentences")
    lines = sentences.made_up_lines(vocabulary_size)
    tokenizer = Tokenizer.train(lines, vocabulary_size)
    assert tokenizer.vocabulary_size == vocabulary_size
    texts = sentences.sentences_of(24, lines, tokenizer.encode, count=5)
    assert [len(tokenizer.encode(text)) for text in texts] == [24] * 5
    assert len(set(texts)) == 5


def test_sentences_that_do_not_add_up_are_refused():
    def encode(text):
        return [5] * (7 if " " in text else 2)

    with pytest.raises(RuntimeError, match="expected 24 tokens, got 7"):
        load("sentences").sentences_of(24, ["ab cd"], encode, count=1)
    with pytest.raises(RuntimeError, match="no word of the text is a single piece"):
        load("sentences").sentences_of(24, ["ab cd"], lambda text: [5, 6, 2], count=1)


def test_shapes_are_those_of_the_presets():
    for name, shape in load("workload").SHAPES.items():
        preset = ModelConfig.preset(name)
        sizes = (preset.num_layers, preset.d_model, preset.d_ff, preset.num_heads)
        assert tuple(shape)[:-1] == sizes


def test_random_sources_are_whole_sentences():
    workload = load("workload")
    ids = workload.random_sources(workload.SHAPES["tiny"]._replace(vocabulary_size=6), 3)
    assert ids.shape == (3, 24)
    assert (ids[:, -1] == 2).all()
    assert set(ids[:, :-1].flat) == {4, 5}  # below are padding, start, end and unknown


@pytest.mark.parametrize("lengths", [[24, 23], [24], [24, 24, 24], []])
def test_translations_that_stop_early_or_are_missing_are_refused(lengths):
    workload = load("workload")
    workload.check_lengths([24, 24], 2)
    with pytest.raises(RuntimeError, match="expected 2 translations of 24 tokens each"):
        workload.check_lengths(lengths, 2)


def test_scores_of_shorter_translations_are_refused(tmp_path):
    workload, expected = load("workload"), load("expected")
    setting = workload.Setting(workload.SHAPES["tiny"], tmp_path, tmp_path / "mine")
    expected.write_expected(setting, 4, ["a", "b"], [-60.0, -62.0])
    sentences, check = expected.read_expected(setting, workload.Cell(beam=4, batch=1))
    assert sentences == ["a"]
    check([-60.5])
    for wrong in ([-45.0], [-60.0, -62.0], []):
        with pytest.raises(RuntimeError, match="not the translations of full length"):
            check(wrong)


def measured(contender, seconds, sentences=1, cell=(1, 1), shape="tiny"):
    workload, report = load("workload"), load("report")
    return report.Measurement(shape, contender, workload.Cell(*cell), sentences, seconds)


def test_a_figure_is_the_median_of_the_calls_of_all_rounds():
    """By hand: of 1, 2, 4, 8 and 9 seconds the median is 4; a call of 2 sentences has 48 tokens."""
    report = load("report")
    rounds = [measured("python", [9.0, 1.0, 8.0], 2), measured("python", [2.0, 4.0], 2)]
    (figure,) = report.figures_of(rounds).values()
    assert figure.median_seconds == 4
    assert figure.tokens_per_second == 12
    assert figure.rounds == [48 / 8, 48 / 3]


def figures():
    """Speeds by hand: 12,000 and 24,000 for CTranslate2, 6,000 and 36,000 for ours."""
    return load("report").figures_of(
        [
            measured("ctranslate2", [0.002]),
            measured("savedmodel", [0.004]),
            measured("ctranslate2", [0.032], 32, (4, 32)),
            measured("savedmodel", [0.064 / 3], 32, (4, 32)),
            measured("marian", [0.008]),
        ]
    )


def test_a_table_shows_speed_and_ratio_of_the_same_cell():
    workload, report = load("workload"), load("report")
    cells = [workload.Cell(1, 1), workload.Cell(4, 32)]
    names = ["savedmodel", "python", "ctranslate2", "marian"]
    assert report.table(figures(), "tiny", names, cells).split("\n") == [
        "tiny: 4 layers, d_model 128, d_ff 256, 4 heads, vocabulary 8,000",
        "",
        "| contender | greedy, batch 1 | beam 4, batch 32 |",
        "| --- | ---: | ---: |",
        "| `savedmodel` | 6,000 (0.50) | 36,000 (1.50) |",
        "| `ctranslate2` | 12,000 (1.00) | 24,000 (1.00) |",
        "| `marian` | 3,000 (0.25) | – |",
    ]


def test_without_the_reference_a_table_has_no_ratios():
    workload, report = load("workload"), load("report")
    found = report.figures_of([measured("python", [0.004])])
    assert "| `python` | 6,000 |" in report.table(found, "tiny", ["python"], [workload.Cell(1, 1)])
    assert report.as_json(found)[0]["ratio_to_ctranslate2"] is None


def test_skipped_and_failed_contenders_are_named():
    about = {"machine": "a machine", "versions": {"numpy": "2"}, "command": "python x"}
    job = load("processes").Job("tiny", "python")
    text = load("report").notes(about, {"marian": ["torch", "transformers"]}, {job: "why"})
    assert text.split("\n") == [
        "skipped: marian (needs torch, transformers)",
        "failed: tiny python (why)",
        "a machine",
        "numpy 2",
        "python x",
    ]


def test_a_contender_whose_package_is_missing_is_skipped(monkeypatch, capsys, tmp_path):
    decode = load("decode")
    monkeypatch.setattr(decode, "missing_packages", lambda name: ["torch"] * (name == "marian"))
    asked = []

    def work(step, job, folder, request):
        asked.append((step, *job))
        if step == "measure":
            yield measured(job.contender, [0.002])

    monkeypatch.setattr(decode, "work", work)
    output = tmp_path / "results.json"
    options = {"shapes": "tiny", "batches": "1", "beams": "1", "rounds": 1}
    decode.main(**options, contenders="ctranslate2,marian", output=str(output))
    assert asked == [("build", "tiny", "ctranslate2"), ("measure", "tiny", "ctranslate2")]
    assert "skipped: marian (needs torch)" in capsys.readouterr().out
    result = json.loads(output.read_text("utf-8"))
    assert result["skipped"] == {"marian": ["torch"]}
    assert [figure["tokens_per_second"] for figure in result["figures"]] == [12_000]


def test_contenders_take_turns_and_a_failed_one_is_left_out(monkeypatch):
    decode, processes = load("decode"), load("processes")
    jobs = [processes.Job("tiny", name) for name in ("python", "marian", "ctranslate2")]
    measured_in_turn = []

    def work(step, job, folder, request):
        if step == "measure":
            measured_in_turn.append(job.contender)
            yield measured(job.contender, [0.002])
            if job.contender == "marian":
                raise processes.WorkerError("out of memory")

    monkeypatch.setattr(decode, "work", work)
    found, failed = decode.measure_all(jobs, 2, {})
    assert measured_in_turn == ["python", "marian", "ctranslate2", "python", "ctranslate2"]
    assert failed == {jobs[1]: "out of memory"}
    assert len(found) == 5


def test_a_failed_contender_makes_the_command_fail(monkeypatch):
    decode, processes = load("decode"), load("processes")
    failed = {processes.Job("tiny", "python"): "why"}
    monkeypatch.setattr(decode, "measure_all", lambda jobs, rounds, request: ([], failed))
    with pytest.raises(SystemExit) as caught:
        decode.main(shapes="tiny", contenders="python")
    assert caught.value.code == 1


def test_the_error_of_a_worker_is_its_last_line(monkeypatch, tmp_path):
    processes = load("processes")
    program = tmp_path / "worker.py"
    program.write_text("import sys\nprint('noise')\nsys.exit('what\\nit said')\n", "utf-8")
    monkeypatch.setattr(processes, "_PROGRAM", program)
    with pytest.raises(processes.WorkerError, match=r"^it said$"):
        list(processes.work("build", processes.Job("tiny", "marian"), str(tmp_path), {}))


def test_calls_are_timed_as_often_and_as_long_as_asked():
    workload, worker = load("workload"), load("worker")
    calls, checked = [], []
    task = workload.Task(1, lambda: calls.append(1) or len(calls), checked.append)
    assert len(worker.time_calls(task, 5, 0.0)) == 5
    assert checked == [3, 8]  # after the warm-up, and the last
    assert sum(worker.time_calls(task, 1, 0.001)) >= 0.001


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"contenders": "python,pyhton"}, "unknown name 'pyhton'"),
        ({"shapes": "huge"}, "expected some of base, tiny"),
        ({"batches": "1,x"}, "expected positive numbers, like 1,32, got '1,x'"),
        ({"beams": "0"}, "expected positive numbers, like 1,32, got '0'"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
    ],
)
def test_bad_options_are_errors_of_the_user(options, text):
    with pytest.raises(InputError, match=text):
        load("decode").main(**options)


# --- the pipeline ----------------------------------------------------------------------------


def test_made_up_pairs_are_as_many_as_asked_for_and_the_same_in_every_pass():
    pipeline = load("pipeline")
    stream = pipeline.made_up(25)
    pairs = list(stream)
    assert pairs == list(stream)
    assert len(pairs) == 25
    assert all(1 <= len(target.split()) <= 6 for _, target in pairs)  # German: a word a number


def test_the_speed_counts_no_padding(monkeypatch):
    """A clock that goes a second a look: 7 target tokens in one second."""
    pipeline = load("pipeline")
    batching = importlib.import_module("tf_transformer.data.batching")
    tokens = importlib.import_module("tf_transformer.data.tokens")
    store = importlib.import_module("tf_transformer.data.store")
    sides = (tokens.IdRows.from_lists(rows) for rows in ([[5], [5]], [[6] * 3, [6] * 4]))
    plan = batching.BatchPlan(store.TokenStore.of(tokens.TokenPairs(*sides)), 20, 2, seed=1)
    monkeypatch.setattr(pipeline.time, "perf_counter", iter(range(9)).__next__)
    assert pipeline.target_tokens_per_second(plan, epoch=0) == 7
