"""The commands as a user types them: some in processes of their own, most in this one."""

import contextlib
import io
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from unittest import mock

import numpy as np
import pytest

from tf_transformer.commands import command_line, evaluate, export, train, translate
from tf_transformer.config import Config
from tf_transformer.errors import InputError
from tf_transformer.export import to_saved_model
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.predictor import Prediction
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run

pytestmark = pytest.mark.usefixtures("loaded_once")

ROOT = pathlib.Path(__file__).parents[2]
# The lines of this project: progress, warnings, notices of `weights` and of translate.py.
OWN_LINE = re.compile(
    r"^(\d+%, \d+/)?\d+, .* (updates|sentences)/s, "
    r"|^(warning: |average \d+: |cut to |output |several lines|numbers differ|words that )"
)


MAINS = {"train.py": train, "evaluate.py": evaluate, "translate.py": translate, "export": export}


def process(*words, stdin=b"", check=True):
    """Runs a program; when it succeeds, standard error holds only lines of this project."""
    ended = subprocess.run(
        [sys.executable, *map(str, words)],
        input=stdin,
        capture_output=True,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"},
        check=False,
    )
    if check:
        assert ended.returncode == 0, ended.stderr.decode()
        lines = re.split(r"[\r\n]+", ended.stderr.decode())
        assert [line for line in lines if line.strip() and not OWN_LINE.search(line)] == []
    return ended


def command(*words, stdin=b"", check=True):
    """The same command in this process, which has TensorFlow already."""
    program, *options = [str(word) for word in words if word != "-m"]
    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in "12")
    status = 0
    with (
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8")),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        try:
            command_line.run(MAINS[program].main, options, program)
        except SystemExit as end:
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    written = [stream.buffer.getvalue() for stream in (output, errors)]
    if check:
        assert status == 0, written[1].decode()
    return subprocess.CompletedProcess(words, status, *written)


def error_of(*words, run=command) -> str:
    ended = run(*words, check=False)
    message = ended.stderr.decode()
    assert ended.returncode in (1, 2), message
    assert "Traceback" not in message
    return message


@pytest.fixture(scope="session")
def own_files(tmp_path_factory):
    """Two small files of a user."""
    folder = tmp_path_factory.mktemp("own")
    words = ["red", "green", "blue", "old", "new"]
    things = ["house", "car", "tree", "dog", "book", "street"]
    lines = [f"the {a} {b} {c}" for a in words for b in words for c in things]
    (folder / "a.en").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (folder / "b.de").write_text("".join(f"{line.upper()} ß\n" for line in lines), "utf-8")
    return folder


@pytest.fixture(scope="session")
def own_run(own_files):
    run = own_files / "run"
    sizes = {"model.num_layers": 1, "model.d_model": 16, "model.d_ff": 32, "train.steps": 20}
    sizes["train.valid_score_examples"] = 0
    options = [f"--{name}={value}" for name, value in sizes.items()]
    process("train.py", "--run_dir", run, *training_files(own_files), *options)
    return run


def training_files(folder):
    """The options that name the two files."""
    return "--data.train_source", folder / "a.en", "--data.train_target", folder / "b.de"


@pytest.fixture(scope="session")
def saved_model(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "small" / "1"
    process("-m", "export", "--run_dir", run, "--to", path)
    return path


@pytest.mark.slow
def test_two_files_and_no_other_option_train_validate_and_export(own_files):
    run = own_files / "without_options"
    process("train.py", "--run_dir", run, *training_files(own_files))
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    assert {"val_loss", "val_bleu"} <= last.keys()
    command("-m", "export", "--run_dir", run, "--to", own_files / "served" / "1")
    assert (own_files / "served" / "1" / "saved_model.pb").is_file()


def test_evaluate_ends_with_one_json_object(own_files, own_run):
    files = ("--source", own_files / "a.en", "--reference", own_files / "b.de")
    printed = process("evaluate.py", "--run_dir", own_run, *files, "--beam_size", 2).stdout
    result = json.loads(printed.decode().strip().split("\n")[-1])
    assert {"bleu", "signature", "chrf"} <= result.keys()
    assert "tok:13a" in result["signature"]
    assert result["sentences"] == 150


def test_evaluate_reads_a_test_set_of_one_file(own_files, own_run, tmp_path):
    sides = [(own_files / name).read_text("utf-8").splitlines() for name in ("a.en", "b.de")]
    rows = zip(*sides, strict=True)
    (tmp_path / "t.tsv").write_text("".join(f"{t}\t{s}\n" for s, t in rows), "utf-8")
    corpus = ("--corpus.path", tmp_path / "t.tsv", "--corpus.columns", '["2", "1"]')
    files = ("--source", own_files / "a.en", "--reference", own_files / "b.de")
    scores, expected = (
        command("evaluate.py", "--run_dir", own_run, *options, "--beam_size", 1).stdout
        for options in (corpus, files)
    )
    assert scores == expected
    message = error_of("evaluate.py", "--run_dir", own_run, *corpus, *files)
    assert "give --source and --reference, or --corpus, not both." in message


def test_evaluate_a_generated_run_on_its_own_test_pairs(run):
    result = json.loads(
        command("evaluate.py", "--run_dir", run, "--beam_size", 1).stdout.splitlines()[-1]
    )
    assert result["sentences"] == 1000
    assert 0 <= result["exact_match"] <= 100


def test_evaluate_scores_given_outputs_without_a_run(tmp_path, capsys):
    """Oracle: sacreBLEU called directly."""
    import sacrebleu

    hypotheses, references = ["ein Haus am See", ""], ["ein Haus an dem See", "zwei\u2028drei"]
    files = {}
    for name, lines in (("hypotheses", hypotheses), ("reference", references)):
        files[name] = str(tmp_path / name)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    evaluate.main(**files)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {"bleu", "signature", "chrf"} <= result.keys()
    expected = sacrebleu.corpus_chrf(hypotheses, [references]).score
    assert result["chrf"] == pytest.approx(expected)
    assert result["sentences"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give --run_dir, or --hypotheses and --reference"),
        ({"source": "a", "reference": "b"}, "give --run_dir, or --hypotheses and --reference"),
        ({"hypotheses": "a"}, "--hypotheses needs --reference"),
        ({"hypotheses": "a", "reference": "b", "output": "c"}, "--corpus and --output have no"),
    ],
)
def test_evaluate_needs_a_run_or_two_files(options, message):
    with pytest.raises(InputError, match=message):
        evaluate.main(**options)


def test_translate_gives_one_line_per_line(run):
    odd = "one\n\n  \ntwo\u2028three\x85four\n\ufeff\r\nbroken ".encode() + b"\xff\xfe\nlast"
    printed = process("translate.py", "--run_dir", run, stdin=odd).stdout
    assert printed.count(b"\n") == odd.count(b"\n") + 1
    assert printed.split(b"\n")[1:3] == [b"", b""]
    assert command("translate.py", "--run_dir", run, stdin=b"").stdout == b""


@pytest.mark.slow
def test_a_killed_translation_is_resumed_to_the_same_bytes(run, tmp_path):
    """kill -9 while it writes four files; afterwards they equal those of an uninterrupted run."""
    lines = (run / "samples.txt").read_text("utf-8").splitlines()
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in (*lines, "", "x") * 20), "utf-8")

    def words(folder):
        files = {"output": "out", "n_best_output": "n", "scores_output": "s"}
        files["alignments_output"] = "a"
        named = [word for option, name in files.items() for word in (f"--{option}", folder / name)]
        common = ("translate.py", "--run_dir", run, "--input", tmp_path / "in", "--window", 7)
        return [*map(str, (*common, "--num_hypotheses", 2, *named))]

    command(*words(tmp_path / "whole"))
    killed = subprocess.Popen(
        [sys.executable, *words(tmp_path / "killed")], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    partial = tmp_path / "killed" / "out.partial"
    while killed.poll() is None and not (partial.exists() and partial.stat().st_size > 500):
        time.sleep(0.01)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    assert not {path.name for path in partial.parent.iterdir()} & {"out", "n", "s", "a"}
    command(*words(tmp_path / "killed"), "--resume")
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "killed" / path.name).read_bytes() == path.read_bytes()
    assert len(list((tmp_path / "killed").iterdir())) == 4


def test_a_line_of_a_pipe_is_translated_before_the_end_of_the_input(run):
    """Without the end of the input, a line that is not translated within two minutes fails."""
    with subprocess.Popen(
        [sys.executable, "translate.py", "--run_dir", run],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        for line in (b"one\n", b"twenty-one\n"):
            process.stdin.write(line)
            process.stdin.flush()
            answered = select.select([process.stdout], [], [], 120)[0]
            if not answered:
                process.kill()
            assert answered
            assert process.stdout.readline().endswith(b"\n")
        time.sleep(1)
        for _ in range(6):  # while it waits for more; on a busy machine the first had no effect
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
                break
        assert process.wait(1) == 1
        assert process.stderr.read().endswith(b"interrupted\n")


def test_truncated_lines_are_reported(run, tmp_path, capsys):
    """Lines of the input, counted from 1. A translation of one token has no room for its end."""
    (tmp_path / "in").write_text("one\n\n" + "one " * 90 + "\ntwo\n", "utf-8")
    options = {"max_source_length": 20, "max_length": 1}
    translate.main(str(run), str(tmp_path / "in"), str(tmp_path / "out"), **options)
    report = capsys.readouterr().err
    assert "cut to 20 tokens (--max_source_length): 1 line (3)\n" in report
    assert "output ends at its length limit: 3 lines (1, 3, 4)\n" in report
    (tmp_path / "target").write_text("\n\n\n" + "zwei " * 30 + "\n", "utf-8")
    files = {"score_target": str(tmp_path / "target"), "output": str(tmp_path / "scores")}
    translate.main(str(run), str(tmp_path / "in"), **files, **options)
    report = capsys.readouterr().err
    assert "cut to 20 tokens (--max_source_length): 2 lines (3, 4)\n" in report
    assert "length limit" not in report
    translate.main(str(run), str(tmp_path / "in"), str(tmp_path / "all"), beam_size=1)
    assert "cut" not in capsys.readouterr().err


def test_lines_of_several_sentences_and_empty_outputs_are_reported(run, tmp_path, capsys):
    """The first translations can be spaces only."""
    from tf_transformer.text.tokenizer import Tokenizer

    lines = ["one", "One. Two.", "", "17", "Mr. Smith", "two"]
    (tmp_path / "in").write_text("\n".join(lines) + "\n", "utf-8")
    files = {"input": str(tmp_path / "in"), "output": str(tmp_path / "out")}
    of_spaces = Tokenizer.load(run / "tokenizer.model")
    pieces = [of_spaces.piece(i) for i in range(4, of_spaces.vocabulary_size)]
    options = {"excluded_tokens": tuple(piece for piece in pieces if piece != "▁")}
    copies = {"task_options": {"copy_without_letters": True}}
    translate.main(str(run), **files, max_length=2, **copies, **options)
    report = capsys.readouterr().err
    assert "try --split sentences): 1 line (2)\n" in report
    assert "empty output (try --min_length 1): 4 lines (1, 2, 5, 6)\n" in report
    assert (tmp_path / "out").read_text("utf-8").split("\n")[3] == "17"
    (tmp_path / "out").unlink()
    translate.main(str(run), **files, min_length=1)
    report = capsys.readouterr().err
    assert "try --split sentences): 1 line (2)\n" in report
    assert "empty output" not in report


def test_lines_with_other_placeholders_and_long_lines_are_reported(run, tmp_path, capsys):
    """Lines of real text have neither; a run without the length of its text says nothing of it."""
    lines = ["one", "%1$s of {name}", "two", "&File", "one two " * 9]
    (tmp_path / "in").write_text("\n".join(lines) + "\n", "utf-8")
    files = {"input": str(tmp_path / "in"), "output": str(tmp_path / "out")}
    for number, options in enumerate(({"trained_source_length": 20}, {"trained_source_length": 0})):
        translate.main(str(run), **files, beam_size=1, overwrite=bool(number), **options)
        report = capsys.readouterr().err
        assert "placeholders differ between input and output: 2 lines (2, 4)\n" in report
        expected = "longer than the lines of training, at most 20 tokens (divide it): 1 line (5)\n"
        assert (expected in report) == (number == 0)
        assert ("longer than the lines" in report) == (number == 0)


def test_a_report_lists_the_first_lines():
    step = translate.LineStep(mock.Mock(), names=(), done=0, unit="", attention=None)
    row = [Prediction("a", 0.0), Prediction("b", 0.0), Prediction("", 0.0, (Notice.EMPTY,))]
    step.predictor.n_best.side_effect = lambda texts, progress: [[row[int(x) % 3]] for x in texts]
    for first in (0, 600):
        step([str(number) for number in range(first, 3000 if first else 600)], progress=None)
    numbers = "1,000 lines (3, 6, 9, 12, 15, 18, 21, 24, 27, 30, ...)"
    assert step.report.text() == f"empty output (try --min_length 1): {numbers}\n"


def test_a_closed_pipe_gives_no_traceback(run):
    script = f"{sys.executable} translate.py --run_dir {run} --window 1 | head -n 1"
    process = subprocess.run(
        ["bash", "-c", script], input=b"one\n" * 500, capture_output=True, cwd=ROOT, check=True
    )
    assert process.stdout.count(b"\n") == 1
    assert b"Traceback" not in process.stderr


@pytest.fixture(scope="module")
def outputs(run, tmp_path_factory):
    """The files that translate.py writes, as lists of lines."""
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "in").write_text("one\n\ntwenty-one\n", "utf-8")
    names = ["output", "n_best_output", "scores_output", "alignments_output"]
    files = {name: str(folder / name) for name in names}
    translate.main(str(run), str(folder / "in"), num_hypotheses=2, **files)
    return {name: (folder / name).read_text("utf-8").split("\n")[:-1] for name in names}


def test_every_output_has_results_for_each_line(outputs):
    n_best = [line.split(" ||| ") for line in outputs["n_best_output"]]
    assert [number for number, _, _ in n_best] == ["0", "0", "1", "2", "2"]
    first = [n_best[place] for place in (0, 2, 3)]
    assert [text for _, text, _ in first] == outputs["output"]
    assert [score for _, _, score in first] == outputs["scores_output"]
    assert outputs["output"][1:2] == [""]
    assert outputs["scores_output"][1] == "0.000000"


def links_of(lines):
    return [[tuple(map(int, link.split("-"))) for link in line.split()] for line in lines]


def test_links_are_positions_of_words(outputs):
    sources = ["one", "", "twenty-one"]
    texts, links = outputs["output"], links_of(outputs["alignments_output"])
    for source, text, of_line in zip(sources, texts, links, strict=True):
        assert sorted({t for _, t in of_line}) == list(range(len(text.split())))
        assert {s for s, _ in of_line} <= set(range(len(source.split())))


def test_links_are_positions_of_pieces_on_request(run, outputs, tmp_path):
    from tf_transformer.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(run / "tokenizer.model")
    sources, texts, files = ["one", "", "twenty-one"], outputs["output"], {}
    for name, lines in (("input", sources), ("score_target", texts)):
        files[name] = str(tmp_path / name)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    for name in ("output", "alignments_output"):
        files[name] = str(tmp_path / name)
    translate.main(str(run), alignment_unit="pieces", **files)
    links = links_of((tmp_path / "alignments_output").read_text("utf-8").split("\n")[:-1])
    for source, text, of_line in zip(sources, texts, links, strict=True):
        assert [t for _, t in of_line] == list(range(len(tokenizer.encode(text)) - 1))
        assert all(0 <= s < len(tokenizer.encode(source)) - 1 for s, _ in of_line)


def test_prefixes_start_the_translations(run, tmp_path):
    (tmp_path / "in").write_text("one\ntwo\n", "utf-8")
    (tmp_path / "prefixes").write_text("zwei\n\n", "utf-8")
    files = {name: str(tmp_path / name) for name in ("input", "output", "prefixes")}
    files["input"] = str(tmp_path / "in")
    translate.main(str(run), **files)
    lines = (tmp_path / "output").read_text("utf-8").split("\n")
    assert len(lines) == 3
    assert lines[0].startswith("zwei")
    assert not lines[1].startswith("zwei")


def test_given_translations_are_scored(run, tmp_path):
    from tf_transformer.inference.translator import Translator

    (tmp_path / "in").write_text("one\ntwo\n", "utf-8")
    (tmp_path / "target").write_text("eins\nzwei drei\n", "utf-8")
    files = {"score_target": str(tmp_path / "target"), "output": str(tmp_path / "out")}
    translate.main(
        str(run), str(tmp_path / "in"), **files, alignments_output=str(tmp_path / "links")
    )
    found = [
        tuple(map(float, line.split("\t"))) for line in (tmp_path / "out").read_text().splitlines()
    ]
    pairs = Translator.from_run(run).score(["one", "two"], ["eins", "zwei drei"])
    expected = [(pair.score, pair.log_probability) for pair in pairs]
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert len((tmp_path / "links").read_text().splitlines()) == 2


@pytest.mark.parametrize("other", ["prefixes", "n_best_output", "scores_output"])
def test_scoring_refuses_options_of_translating(run, other):
    message = r"--score_target translates nothing\. Leave out --prefixes, --terms, --n_best_output"
    with pytest.raises(InputError, match=message):
        translate.main(str(run), score_target="a", **{other: "b"})


def test_files_are_checked_before_the_model_is_loaded(tmp_path):
    RunFolder(tmp_path).save_config(Config())  # a run without a model
    with pytest.raises(InputError, match="--resume needs files: give the --input"):
        translate.main(str(tmp_path), resume=True)


def test_the_saved_model_translates_in_a_session_as_translate_does(run, saved_model):
    """The session's process imports tensorflow and tensorflow_text only."""
    lines = b"one\n\ntwenty-one\nJune twelfth, twenty seventeen\n"
    served = process("export/run_in_session.py", saved_model, stdin=lines).stdout.decode()
    translations = [json.loads(line)["translation"] for line in served.splitlines()]
    printed = command("translate.py", "--run_dir", run, stdin=lines).stdout.decode()
    assert translations == printed.split("\n")[:-1]


@pytest.mark.slow
def test_an_export_divides_texts_in_a_session_as_translate_does(run, tmp_path):
    split = ("--split", "sentences")
    process("-m", "export", "--run_dir", run, "--to", tmp_path / "1", *split)  # checks itself, too
    text = "One. Twenty-one! Mr. Seven left. Seven"
    served = process("export/run_in_session.py", tmp_path / "1", stdin=text.encode()).stdout
    answer = json.loads(served)
    printed = process("translate.py", "--run_dir", run, *split, stdin=f"{text}\n\n".encode())
    assert answer["translation"] == printed.stdout.decode().split("\n")[0]
    assert answer["parts"] == 4
    assert b"several sentences" not in printed.stderr
    sentences = b"One.\nTwenty-one!\nMr. Seven left.\nSeven\n"
    alone = process("translate.py", "--run_dir", run, stdin=sentences).stdout.decode()
    assert answer["translation"] == " ".join(alone.split("\n")[:-1])


@pytest.mark.parametrize("words", [(), ("--requests",), ("a", "b")])
def test_run_in_session_prints_its_usage(words):
    ended = process("export/run_in_session.py", *words, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"usage: python export/run_in_session.py")


def test_run_in_session_has_help_and_names_a_missing_folder(tmp_path):
    program = "export/run_in_session.py"
    shown = process(program, "--help").stdout.decode()
    assert shown.startswith(f"usage: python {program} ")
    message = error_of(program, tmp_path / "missing", run=process)
    assert message.startswith(f"error: {tmp_path / 'missing'} is not a")
    assert "Make one: python -m export" in message


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"signature_name": "scores", "inputs": {}}, "unknown signature 'scores'; expected one of"),
        (
            {"signature_name": "score", "inputs": {"text": []}},
            "expected the inputs ['source', 'target'] of the signature score, got ['text']",
        ),
        ({"inputs": {}}, "expected requests like"),
    ],
)
def test_run_in_session_refuses_a_wrong_request(saved_model, monkeypatch, request_, message):
    from tf_transformer.export import run_in_session

    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(request_).encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(SystemExit) as exit_info:
        run_in_session.main(str(saved_model), "--requests")
    assert message in exit_info.value.code


def test_run_in_session_answers_requests_to_all_signatures(run, saved_model):
    from tf_transformer.inference.translator import Translator

    requests = [
        {"signature_name": "n_best", "inputs": {"text": ["one", ""]}},
        {"signature_name": "score", "inputs": {"source": ["one"], "target": ["eins"]}},
    ]
    lines = "".join(json.dumps(request) + "\n" for request in requests).encode()
    served = process("export/run_in_session.py", saved_model, "--requests", stdin=lines).stdout
    n_best, score = [json.loads(line)["outputs"] for line in served.splitlines()]
    translator = Translator.from_run(run)
    assert n_best["translations"] == [[translator(["one"])[0].text], [""]]
    expected = translator.score(["one"], ["eins"])[0]
    assert score["score"] == pytest.approx([expected.score], abs=1e-4)
    assert score["log_probability"] == pytest.approx([expected.log_probability], abs=1e-4)


def test_signatures_are_batch_major_and_named(saved_model):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    signatures = tf.saved_model.load(str(saved_model)).signatures
    text, number, flag = ((tf.string, [None]), (tf.float32, [None]), (tf.bool, [None]))
    contract = {
        "serving_default": (
            ["text"],
            {
                "translation": text,
                "score": number,
                "cut": flag,
                "truncated": flag,
                "warnings": text,
                "unseen_words": text,
            },
        ),
        "n_best": (
            ["text"],
            {
                "translations": (tf.string, [None, 1]),
                "scores": (tf.float32, [None, 1]),
                "cut": flag,
                "truncated": flag,
                "warnings": (tf.string, [None, 1]),
                "unseen_words": text,
            },
        ),
        "score": (
            ["source", "target"],
            {"score": number, "log_probability": number, "truncated": flag},
        ),
    }
    for name, (inputs, outputs) in contract.items():
        expected = {each: tf.TensorSpec([None], tf.string, name=each) for each in inputs}
        assert signatures[name].structured_input_signature[1] == expected
        found = signatures[name].structured_outputs.items()
        assert {each: (spec.dtype, spec.shape.as_list()) for each, spec in found} == outputs


@pytest.mark.slow
def test_an_export_has_warm_up_requests_that_it_answers(saved_model):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401
    from tensorflow_serving.apis import prediction_log_pb2

    from tf_transformer.export import warm_up

    signatures = tf.saved_model.load(str(saved_model)).signatures
    records = tf.data.TFRecordDataset(str(saved_model / warm_up.FILE)).as_numpy_iterator()
    logs = [prediction_log_pb2.PredictionLog.FromString(record) for record in records]
    names = [log.predict_log.request.model_spec.signature_name for log in logs]
    assert sorted(names) == sorted([*signatures] * len(warm_up.SHAPES))
    assert len(signatures) == 5
    for log in logs:
        request = log.predict_log.request
        inputs = {
            name: tf.constant(tf.make_ndarray(value)) for name, value in request.inputs.items()
        }
        outputs = signatures[request.model_spec.signature_name](**inputs)
        rows = {len(value) for value in (*inputs.values(), *outputs.values())}
        assert rows <= {rows for rows, _ in warm_up.SHAPES}
        assert len(rows) == 1


def test_metadata_describe_tokenizer_weights_and_search(run, saved_model):
    import hashlib

    from tf_transformer.inference.translator import Translator

    facts = Translator.load(saved_model).metadata
    tokenizer = (run / "tokenizer.model").read_bytes()
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert facts["task"] == "translation"
    assert facts["languages"] == {"source": "en", "target": "de"}
    assert facts["tokenizer"]["sha256"] == hashlib.sha256(tokenizer).hexdigest()
    assert facts["decoding"]["beam_size"] == 2
    assert facts["decoding"]["max_source_length"] == 1024
    assert facts["training"]["update"] == 4
    assert facts["training"]["averaged_updates"] == [2, 4]
    assert facts["training"]["validation_bleu"] == metrics[-1]["val_bleu"]
    assert facts["training"]["validation_chrf"] == metrics[-1]["val_chrf"]
    assert facts["training"]["validation_bleu_update"] == 4
    assert "tok:13a" in facts["training"]["bleu_signature"]
    assert facts["requires"]["lowest_server"] == "2.12"
    assert facts["requires"]["compiled_functions"] == []
    assert facts["packages"].keys() >= {"tensorflow", "keras", "tensorflow-text"}


def test_variables_are_stored_once(run, saved_model):
    from tf_transformer.inference.translator import Translator

    parameters = Translator.from_run(run).model.count_params()
    stored = sum(f.stat().st_size for f in (saved_model / "variables").iterdir())
    # A few KB of index and object graph count in small models.
    assert 4 * parameters <= stored <= 4 * parameters * 1.05 + 30_000


@pytest.mark.slow
def test_a_wrong_export_is_refused_and_removed(run, tmp_path, monkeypatch):
    """The SavedModel has another length limit than the translator."""
    from tf_transformer import tasks

    translator = tasks.load_predictor(Run.load(run, max_extra_length=9))
    other, names = tasks.load_predictor(Run.load(run, max_extra_length=1)), []

    def save(folder, **options):
        other.save(folder, **options)
        names.append([path.name for path in folder.parent.iterdir()])

    monkeypatch.setattr(translator, "save", save)
    monkeypatch.setattr(tasks, "load_predictor", lambda *args, **options: translator)
    with pytest.raises(RuntimeError, match="the export differs from the run it came from"):
        export.main(str(run), str(tmp_path / "served" / "1"))
    # A server that watches the folder loads every name that is a number.
    assert all(name.startswith(".1.") for name in names[0])
    assert list((tmp_path / "served").iterdir()) == []


def test_ctranslate2_needs_a_translator(run, tmp_path, monkeypatch):
    from tf_transformer import tasks

    pytest.importorskip("ctranslate2")
    monkeypatch.setattr(tasks, "load_predictor", lambda *args, **options: object())
    with pytest.raises(InputError, match="needs a run whose task predicts with a Translator"):
        export.main(str(run), str(tmp_path / "1"), format="ctranslate2")


def test_an_export_in_bfloat16_is_checked_in_float32_first(run):
    from tf_transformer.inference.translator import Translator

    translator = Translator.from_run(run)
    stages = to_saved_model.stages(translator, "bfloat16")
    assert [each.model.compute_dtype for each in stages] == ["float32", "bfloat16"]
    assert to_saved_model.stages(translator, "float32") == [translator]


@pytest.mark.parametrize("options", [{"format": "run"}, {"jit_compile": True}])
def test_int8_is_for_saved_models_without_xla(run, tmp_path, options):
    with pytest.raises(InputError, match="--dtype int8"):
        export.main(str(run), str(tmp_path / "1"), dtype="int8", **options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--sampling", "true")])
def test_a_compiled_export_in_bfloat16(run, tmp_path, options):
    compiled = ("--dtype", "bfloat16", "--jit_compile", "true")
    command("-m", "export", "--run_dir", run, "--to", tmp_path / "1", *compiled, *options)
    assert (tmp_path / "1" / "saved_model.pb").is_file()


def test_an_existing_version_is_not_overwritten(run, saved_model):
    message = error_of("-m", "export", "--run_dir", run, "--to", saved_model)
    assert "exists; give --to a new version, like" in message
    assert f"{saved_model.parent / '2'}" in message


def test_a_folder_that_cannot_be_made_is_an_error(run, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be made: .*Give a folder that can be written"):
        export.main(str(run), str(tmp_path / "file" / "1"))


@pytest.mark.parametrize("name", ["evaluate.py", "translate.py"])
def test_a_folder_without_a_run_is_an_error(name, tmp_path):
    message = error_of(name, "--run_dir", tmp_path)
    assert "is not a run's folder: it has no config.yaml" in message


def test_exporting_to_a_path_that_tensorflow_takes_as_a_pattern_is_an_error(run, tmp_path):
    with pytest.raises(InputError, match=r"c\[1\]/1: TensorFlow reads .* as a pattern"):
        export.main(str(run), str(tmp_path / "c[1]" / "1"))
    assert list(tmp_path.iterdir()) == []


def test_exporting_a_folder_without_a_run_is_an_error(tmp_path):
    message = error_of("-m", "export", "--run_dir", tmp_path, "--to", tmp_path / "1")
    assert "is not a run's folder" in message


def test_unknown_and_impossible_options_are_errors(tmp_path):
    assert "model.d_mode" in error_of("train.py", "--run_dir", tmp_path, "--model.d_mode", 8)
    message = error_of("train.py", "--run_dir", tmp_path, "--model.dropout_rate", 1.5)
    assert "model.dropout_rate must be at least 0 and below 1, got 1.5" in message
    bad = tmp_path / "bad.yaml"
    bad.write_text("train: {stepz: 3}\n")
    assert "stepz" in error_of("train.py", "--run_dir", tmp_path, "--config", bad)


def test_files_of_unequal_length_are_an_error(own_files, tmp_path):
    (tmp_path / "short.de").write_text("x\n", "utf-8")
    message = error_of(
        *("train.py", "--run_dir", tmp_path / "run"),
        *("--data.train_source", own_files / "a.en", "--data.train_target", tmp_path / "short.de"),
    )
    assert "short.de ends after line 1, but" in message


def test_a_broken_config_is_an_error(run, tmp_path):
    broken = tmp_path / "run"
    shutil.copytree(run, broken)
    (broken / "config.yaml").write_text("model: {d_model: many}\n")
    assert "config.yaml" in error_of("translate.py", "--run_dir", broken)
