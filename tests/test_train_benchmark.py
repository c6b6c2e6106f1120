"""benchmarks/train.py: its table, its options, and what refuses a training that is not one."""

import importlib
import importlib.util
import json
import math
import pathlib
import time

import numpy as np
import pytest

from tf_transformer.config import ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.layers.position import sinusoids
from tf_transformer.models.transformer import Transformer

FOLDER = pathlib.Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def in_benchmarks(monkeypatch):
    """Its files import each other as programs in one folder do."""
    monkeypatch.syspath_prepend(str(FOLDER))


def load(name):
    return importlib.import_module(name)


def load_command():
    """By its path: the train.py at the top of the tree has the same name."""
    spec = importlib.util.spec_from_file_location("benchmarks_train", FOLDER / "train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def small_work():
    shape = load("workload").Shape(1, 16, 32, 2, 50)
    return load("train_workload").Work(shape, sentences=3, tokens=5)


@pytest.mark.parametrize("name", ["base", "tiny"])
def test_the_formula_counts_the_parameters_of_our_model(name):
    """By the weights' own shapes; a small vocabulary, which the formula has as a factor."""
    shape = load("workload").SHAPES[name]._replace(vocabulary_size=10)
    sizes = shape._asdict()
    model = Transformer(sizes.pop("vocabulary_size"), ModelConfig(**sizes))
    model.build()
    assert load("train_workload").parameters(shape) == model.count_params()


def test_batches_are_the_same_for_all_and_have_no_padding():
    workload, work = load("train_workload"), small_work()
    made, again = workload.batches(work), workload.batches(work)
    assert len(made) == 4
    for batch, same in zip(made, again, strict=True):
        for ids, equal in zip(batch, same, strict=True):
            assert ids.shape == (3, 5)
            assert ids.dtype == np.int32
            np.testing.assert_array_equal(ids, equal)
        assert min(batch.source.min(), batch.labels.min()) >= 4
        assert (batch.target[:, 0] == 1).all()
        np.testing.assert_array_equal(batch.target[:, 1:], batch.labels[:, :-1])


def test_positions_are_those_of_our_model():
    found = load("train_workload").sinusoids(small_work())
    np.testing.assert_allclose(found, sinusoids(np.arange(5), 16), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("factor", "refused"), [(0.97, True), (1.01, False), (1.03, True)])
def test_a_model_of_another_size_is_refused(factor, refused):
    """By hand: 4 layers of (4 + 2·4) · 128² in attention, 2 · (2 · 128 · 256 + 256 + 128) in
    feed-forward and 5 norms of 256, and 8,000 embeddings of 128.
    """
    workload = load("train_workload")
    shape, expected = workload.WORKS["tiny"].shape, 2_342_912
    assert workload.parameters(shape) == expected
    if refused:
        with pytest.raises(RuntimeError, match="expected about 2,342,912 parameters"):
            workload.check_parameters(round(factor * expected), shape)
    else:
        workload.check_parameters(round(factor * expected), shape)


@pytest.mark.parametrize(
    ("losses", "text"),
    [
        ([9.0, math.nan, 8.0], "expected finite losses, got 9.000, nan, 8.000"),
        ([9.0, math.inf], "expected finite losses"),
        ([12.0, 8.0], "expected a first loss near 8.987, got 12.000, 8.000"),
        ([6.0, 5.0], "expected a first loss near 8.987"),
        ([9.0, 8.9, 9.0], "expected losses that fall, got 9.000, 8.900, 9.000"),
    ],
)
def test_a_training_that_does_not_train_is_refused(losses, text):
    """ln 8,000 is 8.987."""
    check_losses = load("train_workload").check_losses
    check_losses([9.5, 9.6, 9.4], 8000)
    with pytest.raises(RuntimeError, match=text):
        check_losses(losses, 8000)


@pytest.mark.parametrize("module", ["train_ours", "train_keras"])
def test_a_pass_makes_an_update_with_each_batch(module):
    """Untrained weights on 50 ids: the loss starts near ln 50 = 3.912 and falls."""
    workload, work = load("train_workload"), small_work()
    task = load(module).task(work, jit_compile=False)
    assert task.parameters == workload.parameters(work.shape)
    losses = [task.train() for _ in range(30)]
    workload.check_losses(losses, 50)


def test_the_loss_that_peers_smooth_is_the_paper_s():
    """In NumPy: cross-entropy with 0.9 on the label and 0.1 over all ids."""
    rng = np.random.default_rng(1)
    logits, labels = rng.normal(size=(2, 3, 7)).astype("float32"), rng.integers(0, 7, (2, 3))
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -(log_p * (0.9 * np.eye(7)[labels] + 0.1 / 7)).sum(-1)
    found = load("train_tensorflow").smoothed_cross_entropy(labels, logits)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_the_warm_up_is_not_timed_but_its_losses_count():
    workload, worker = load("train_workload"), load("train_worker")
    losses = iter([9.0, 8.0, 7.0, 6.0])
    found = list(worker.reports(workload.Task(5, lambda: next(losses)), ["a pass", "a pass"]))
    assert [report["losses"] for report in found] == [[9.0, 8.0], [7.0], [6.0]]
    assert [len(report["seconds"]) for report in found] == [0, 1, 1]
    assert {report["parameters"] for report in found} == {5}


def test_contenders_make_a_pass_in_turn_and_one_that_fails_is_left_out():
    processes, turns = load("processes"), load("turns")
    jobs = [processes.Job("tiny", name) for name in ("ours", "torch", "flax")]
    order = []

    def work(job):
        for number in range({"ours": 3, "torch": 2, "flax": 3}[job.contender]):
            order.append(job.contender)
            yield number
        if job.contender == "torch":
            raise processes.WorkerError("out of memory")

    found, failed = turns.side_by_side(jobs, work)
    assert order == ["ours", "torch", "flax", "ours", "torch", "flax", "ours", "flax"]
    assert found == {jobs[0]: [0, 1, 2], jobs[2]: [0, 1, 2]}
    assert failed == {jobs[1]: "out of memory"}


WORKER = """
import sys
print("noise")
print('measured {"number": 0}', flush=True)
for number, _ in enumerate(sys.stdin, 1):
    if number > int(sys.argv[1]):
        sys.exit("no more")
    print(f'measured {{"number": {number}}}', flush=True)
"""


def test_a_worker_reports_when_it_is_asked_to(tmp_path):
    processes = load("processes")
    program = tmp_path / "worker.py"
    program.write_text(WORKER, "utf-8")
    found = list(processes.run_worker(program, ["9"], {}, requests=2))
    assert found == [{"number": number} for number in range(3)]
    found = processes.run_worker(program, ["1"], {}, requests=2)
    assert [next(found), next(found)] == [{"number": 0}, {"number": 1}]
    with pytest.raises(processes.WorkerError, match=r"^no more$"):
        next(found)
    program.write_text("import os\nprint('measured 1', flush=True)\nos._exit(9)", "utf-8")
    found = processes.run_worker(program, [], {}, requests=2)
    assert next(found) == 1
    time.sleep(0.5)  # for it to be gone when it is asked
    with pytest.raises(processes.WorkerError, match=r"^exit status 9$"):
        next(found)


def measured(contender, seconds, shape="tiny"):
    return load("train_report").Measurement(shape, contender, seconds, [9.5, 9.25], 2_000_000)


def test_a_figure_is_the_median_of_the_passes_of_all_rounds():
    """By hand: a pass is 4 · 64 · 24 = 6,144 tokens; of 1, 2, 4, 8 and 9 s the median is 4."""
    rounds = [measured("ours", [9.0, 1.0, 8.0]), measured("ours", [2.0, 4.0])]
    (figure,) = load("train_report").figures_of(rounds).values()
    assert figure.tokens_per_second == 1536
    assert figure.median_seconds == 1  # of an update
    assert figure.rounds == [768, 2048]


def figures():
    """Speeds by hand: 6,144 for ours, 3,072 and 2,048 for peers, and one of another shape."""
    return load("train_report").figures_of(
        [
            *(measured("ours", [1.0]), measured("torch", [3.0]), measured("flax", [2.0])),
            measured("flax", [0.001], "base"),
        ]
    )


def test_a_table_shows_speed_and_ratio_to_the_fastest_peer():
    report = load("train_report")
    names = ["ours", "ours_xla", "torch", "flax"]
    assert report.table(figures(), "tiny", names).split("\n") == [
        "tiny: 4 layers, d_model 128, d_ff 256, 4 heads, vocabulary 8,000; "
        "64 × 24 target tokens an update",
        "",
        "| contender | tokens/s | to the fastest peer | parameters | loss |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| `ours` | 6,144 | 2.00 | 2,000,000 | 9.500 to 9.250 |",
        "| `torch` | 2,048 | 0.67 | 2,000,000 | 9.500 to 9.250 |",
        "| `flax` | 3,072 | 1.00 | 2,000,000 | 9.500 to 9.250 |",
    ]


def test_without_a_peer_a_table_has_no_ratios():
    report = load("train_report")
    found = report.figures_of([measured("ours", [1.0]), measured("ours_xla", [2.0])])
    assert "| `ours` | 6,144 | – |" in report.table(found, "tiny", ["ours"])
    assert [figure["ratio_to_fastest_peer"] for figure in report.as_json(found)] == [None, None]


@pytest.fixture
def runs(monkeypatch):
    """Workers that are not started: what each would have been asked."""
    train, asked = load_command(), []

    def run_worker(program, arguments, variables, requests):
        asked.append((*arguments, requests, variables))
        yield {"seconds": [], "losses": [9.5], "parameters": 7}
        yield {"seconds": [1.0], "losses": [9.25], "parameters": 7}

    monkeypatch.setattr(train, "run_worker", run_worker)
    monkeypatch.setattr(train, "missing", lambda name: ["optax"] * (name == "flax"))
    return train, asked


def test_contenders_take_turns_and_a_missing_one_is_named(runs, capsys, tmp_path):
    train, asked = runs
    output = tmp_path / "results.json"
    options = {"shapes": "tiny", "contenders": "ours,flax,torch", "rounds": 2, "updates": 5}
    train.main(**options, output=str(output))
    assert [job[:3] for job in asked] == [("ours", "tiny", 2), ("torch", "tiny", 2)] * 2
    assert "skipped: flax (needs optax)" in capsys.readouterr().out
    result = json.loads(output.read_text("utf-8"))
    assert result["skipped"] == {"flax": ["optax"]}
    assert [figure["ratio_to_fastest_peer"] for figure in result["figures"]] == [1, 1]


def test_tuned_memory_is_everyones(runs):
    train, asked = runs
    options = {"shapes": "tiny", "contenders": "ours,torch", "rounds": 1}
    train.main(**options)
    train.main(**options, malloc="tuned")
    tuned = ["GLIBC_TUNABLES" in variables for *_, variables in asked]
    assert tuned == [False, False, True, True]


def test_a_failed_contender_makes_the_command_fail(runs, monkeypatch, capsys):
    train, _ = runs

    def run_worker(program, arguments, variables, requests):
        raise load("processes").WorkerError("out of memory")
        yield

    monkeypatch.setattr(train, "run_worker", run_worker)
    with pytest.raises(SystemExit) as caught:
        train.main(shapes="tiny", contenders="ours", rounds=1)
    assert caught.value.code == 1
    assert "failed: tiny ours (out of memory)" in capsys.readouterr().out


@pytest.mark.parametrize(("found", "lacks"), [(None, ["a C++ compiler"]), ("/usr/bin/g++", [])])
def test_torch_compile_needs_a_compiler(monkeypatch, found, lacks):
    contenders = load("train_contenders")
    monkeypatch.setattr(contenders, "not_installed", lambda packages: [])
    monkeypatch.setattr(contenders.shutil, "which", lambda name: found)
    assert contenders.missing("torch_compile") == lacks
    assert contenders.missing("torch") == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"contenders": "ours,marien"}, "unknown name 'marien'"),
        ({"shapes": "big"}, "expected some of base, tiny"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"updates": 0}, "updates must be at least 1, got 0"),
    ],
)
def test_bad_options_are_errors_of_the_user(runs, options, text):
    train, asked = runs
    with pytest.raises(InputError, match=text):
        train.main(**options)
    assert not asked
