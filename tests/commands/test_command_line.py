"""Options come from signatures and from `DecodeConfig`; errors set the exit status."""

import dataclasses
import importlib
import os
import pathlib
import re
import subprocess
import sys
import typing

import pytest

from tf_transformer.commands import command_line, evaluate, train, translate
from tf_transformer.commands.command_line import parser_of, read_options, types_of
from tf_transformer.commands.main import COMMANDS
from tf_transformer.commands.option_errors import as_typed
from tf_transformer.config import Config, Corpus, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.config.task import (
    ParsingOptions,
    TaskOptions,
    TranslationOptions,
)
from tf_transformer.errors import InputError
from tf_transformer.registry import OPTIONS, options_of
from tf_transformer.run.earlier import own_options
from tf_transformer.run.folder import RunFolder

FIELDS = [field.name for field in dataclasses.fields(DecodeConfig)]


def mains():
    export = importlib.import_module("tf_transformer.commands.export")
    return [translate.main, evaluate.main, export.main]


def required(main):
    return ["--run_dir", "x", *(["--to", "y"] if "to" in main.__annotations__ else [])]


@pytest.mark.parametrize("main", mains(), ids=lambda main: main.__module__)
def test_every_field_of_decode_config_is_an_option_with_default_none(main):
    options = vars(parser_of(main).parse_args(required(main)))
    assert {name: options[name] for name in FIELDS} == dict.fromkeys(FIELDS)
    assert options["dtype"] == "float32"


@pytest.mark.parametrize("name", FIELDS)
def test_an_option_is_typed_and_documented_as_its_field(name):
    parser = parser_of(translate.main)
    default = getattr(DecodeConfig(), name)
    value, word = {
        bool: (True, "true"),
        int: (7, "7"),
        float: (0.5, "0.5"),
        str: (default or "opus", default or "opus"),
        tuple: (("▁foo", "a"), '["▁foo", "a"]'),
    }[type(default)]
    assert parser.parse_args(["--run_dir", "x", f"--{name}", word])[name] == value
    documented = typing.cast(str, DecodeConfig.__doc__).split(f" {name}: ")[1].split()[:2]
    assert f" {' '.join(documented)}" in " ".join(parser.format_help().split())


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["--resume"], True), (["--resume", "true"], True), (["--resume=false"], False), ([], False)],
)
def test_a_switch_needs_no_value(words, expected):
    options = parser_of(translate.main).parse_args(["--run_dir", "x", *words, "--sampling"])
    assert options["resume"] is expected
    assert options["sampling"] is True


@pytest.mark.parametrize(
    "words", [["--beam_siz", "3"], ["--beam_size", "many"], ["--dtype", "float16"], ["x"]]
)
def test_bad_options_exit_with_two(monkeypatch, capsys, words):
    monkeypatch.setattr("sys.argv", ["translate.py", "--run_dir", "x", *words])
    with pytest.raises(SystemExit) as exit_info:
        command_line.run(translate.main)
    assert exit_info.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.fixture
def error_of(tmp_path, capsys):
    """The error for options of a command, where {yaml} is a file with the given text."""

    def read(main, *words, yaml=""):
        (tmp_path / "x.yaml").write_text(yaml)
        files = ("--config", str(tmp_path / "x.yaml")) if yaml else ()
        with pytest.raises(SystemExit) as exit_info:
            command_line.read_options(main, ["--run_dir", "x", *files, *words], "x.py")
        assert exit_info.value.code == 2
        first, *rest = capsys.readouterr().err.replace(f"{tmp_path}/", "").splitlines()
        assert rest == ["See x.py --help."]
        return first

    return read


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("--train.stepz", "unknown option --train.stepz; did you mean --train.steps?"),
        (
            "--data.augment.uper=1",
            "unknown option --data.augment.uper; did you mean --data.augment.upper?",
        ),
        ("--data.augment.upper=x", "--data.augment.upper must be a number, got 'x'."),
        (
            "--data.augment=1",
            "--data.augment is a group of options, such as --data.augment.join; got '1'.",
        ),
        (
            "--data.augment.upper=2",
            "--data.augment.upper must be from 0 to 1, the share of the lines that is changed, got "
            "2.0.",
        ),
        ("--trian.steps=3", "unknown option --trian.steps; did you mean --train.steps?"),
        ("--beam_size", "unknown option --beam_size; did you mean --decode.beam_size?"),
        ("--zzz", "unknown option --zzz."),
        ("word", "unexpected 'word'; options start with --."),
        ("--train.steps", "--train.steps needs a value."),
        ("--train.steps=many", "--train.steps must be an integer, got 'many'."),
        ("--train.steps=-1", "--train.steps must not be negative, got -1."),
        (
            "--train.precision=x",
            "--train.precision must be one of auto, float32, mixed_bfloat16, mixed_float16, "
            "got 'x'.",
        ),
    ],
)
def test_a_wrong_option_gives_two_lines_with_the_nearest_one(error_of, word, expected):
    assert error_of(train.main, word) == f"error: {expected}"


def test_only_options_are_suggested(error_of):
    """The function of a command also has a type of its result, and a name for all other options."""
    assert error_of(train.main, "--retrun") == (
        "error: unknown option --retrun; did you mean --train?"
    )
    assert error_of(translate.main, "--decode_option=1") == "error: unknown option --decode_option."


@pytest.mark.parametrize("word", ["in.docx", "in"])
def test_an_input_behind_options_is_an_error_that_says_where_it_stands(error_of, word):
    assert error_of(translate.main, "--beam_size", "2", word) == (
        f"error: unexpected '{word}'; options start with --, and the input stands before them."
    )


CORPORA = "a list of corpora, like '[{source: a.en, target: a.de}, {path: b.tmx}]'"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("[{sourc: a}]", f"--data.corpora must be {CORPORA}; a corpus has no 'sourc'."),
        ("[{path:a}]", f"--data.corpora must be {CORPORA}; a corpus has no 'path:a'."),
        ("a.tsv", f"--data.corpora must be {CORPORA}, got 'a.tsv'."),
        ("{path: a.tsv}", f"--data.corpora must be {CORPORA}, got \"{{'path': 'a.tsv'}}\"."),
        ("[{source: a}]", "a corpus of two files has source and target, but only a is given."),
        ("[{}]", f"--data.corpora must be {CORPORA}, got '{{}}'."),
        ("[3]", f"--data.corpora must be {CORPORA}, got '3'."),
    ],
)
def test_a_wrong_list_of_corpora_says_what_is_expected(error_of, word, expected):
    assert error_of(train.main, "--data.corpora", word).startswith(f"error: {expected}")


def test_corpora_are_options_and_lists_in_files(tmp_path):
    corpora = "[{source: a.en, target: 1e3}, {path: b.tsv, columns: ['2', \"no\"]}]"
    expected = (Corpus("a.en", "1e3"), Corpus(path="b.tsv", columns=("2", "no")))
    options = read_options(train.main, ["--run_dir", "x", "--data.corpora", corpora])
    assert options["data"].corpora == expected
    (tmp_path / "x.yaml").write_text(f"data: {{valid_corpora: {corpora}, tfds: x}}")
    options = read_options(train.main, ["--run_dir", "x", "--config", str(tmp_path / "x.yaml")])
    assert options["data"].valid_corpora == expected
    words = ["--corpus.path", "a.tsv", "--corpus.columns", "[en, de]"]
    assert read_options(evaluate.main, words)["corpus"] == Corpus(
        path="a.tsv", columns=("en", "de")
    )


def test_options_of_listed_corpora_override_a_file(tmp_path):
    tfds = "{name: wmt14_translate/de-en, format: tfds, data_dir: /x}"
    (tmp_path / "x.yaml").write_text(
        f"data: {{corpora: [{{format: generated, pairs: 50}}, {tfds}], valid_corpora: [{tfds}]}}"
    )
    words = ["--run_dir=x", f"--config={tmp_path / 'x.yaml'}", "--data.generated_pairs=60"]
    data = read_options(train.main, [*words, "--data.tfds_dir=/y"])["data"]
    assert [(corpus.pairs, corpus.data_dir) for corpus in data.corpora] == [(60, ""), (0, "/y")]
    assert data.valid_corpora[0].data_dir == "/y"
    (tmp_path / "x.yaml").write_text("data: {corpora: [{path: a.tmx}]}")
    words = ["--run_dir=x", f"--config={tmp_path / 'x.yaml'}", "--data.origin", "tfds"]
    assert read_options(train.main, words)["data"].corpora == (Corpus(path="a.tmx"),)


def test_an_empty_group_in_a_file_takes_options_of_the_command_line(tmp_path):
    (tmp_path / "x.yaml").write_text("data: null")
    words = ["--run_dir=x", f"--config={tmp_path / 'x.yaml'}", "--data.held_out=5"]
    assert read_options(train.main, words)["data"].held_out == 5


def test_a_file_in_place_of_the_options_of_a_corpus_is_an_error(error_of):
    expected = "--corpus is a group of options, such as --corpus.source; got 'a.tsv'."
    assert error_of(evaluate.main, "--corpus", "a.tsv") == f"error: {expected}"


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        (
            "data: {corpora: [{path: a, columns: ['1', 2]}]}",
            f"data.corpora must be {CORPORA}, got '2'. Write '2' in quotes: without them, YAML "
            "does not read it as text.",
        ),
        ("train: {stepz: 3}", "unknown option train.stepz; did you mean train.steps?"),
        ("trian: {steps: 3}", "unknown option trian.steps; did you mean train.steps?"),
        ("train: {steps: many}", "train.steps must be an integer, got 'many'."),
        ("data: {augment: 1}", "data.augment must be a group of options, got 1."),
        (
            "data: {augment: {uper: 1}}",
            "unknown option data.augment.uper; did you mean data.augment.upper?",
        ),
        ("train: {steps: -3}", "train.steps must not be negative, got -3."),
        ("words", "expected options like 'train: {steps: 100}', got 'words'."),
    ],
)
def test_an_error_in_a_yaml_file_names_the_file(error_of, yaml, expected):
    assert error_of(train.main, yaml=yaml) == f"error: x.yaml: {expected}"
    correct = "train: {epochs: 3}"  # the file is not to blame for the command line
    assert error_of(train.main, "--train.steps=-1", yaml=correct).startswith("error: --train.steps")


def test_an_option_of_the_search_is_named_as_the_command_has_it():
    message = "decode.num_hypotheses (3) must be at most decode.beam_size (2): see data.en."
    assert as_typed(message, types_of(translate.main)).startswith(
        "--num_hypotheses (3) must be at most --beam_size (2): see data.en."
    )
    assert as_typed(message, types_of(train.main)).startswith("--decode.num_hypotheses (3) must")
    in_file = "runs/x/config.yaml: decode.beam_size must be positive, got 0."
    assert as_typed(in_file, types_of(translate.main)) == in_file


@pytest.mark.parametrize("config", [["--config", "{}"], ["--config={}"]])
def test_the_command_line_counts_more_than_files_wherever_config_stands(tmp_path, config):
    path = tmp_path / "x.yaml"
    path.write_text("train: {steps: 1, epochs: 2}")
    files = [word.format(path) for word in config]
    options = read_options(train.main, ["--run_dir", "x", "--train.steps", "7", *files])
    assert (options["train"].steps, options["train"].epochs) == (7, 2)


def test_training_goes_on_with_the_options_of_the_run(tmp_path):
    run = RunFolder(tmp_path)
    words = ["--run_dir", str(tmp_path), "--train.steps", "7"]
    run.save_config(Config(model=ModelConfig(d_model=16), train=TrainConfig(steps=5)))
    assert read_options(train.main, words)["model"].d_model == 128  # it has not started
    run.resume.mkdir(parents=True)
    (run.resume / "checkpoint").touch()
    options = read_options(train.main, words)
    assert (options["model"].d_model, options["train"].steps) == (16, 7)
    (tmp_path / "x.yaml").write_text("model: {d_model: 32}")
    options = read_options(train.main, [*words, "--config", str(tmp_path / "x.yaml")])
    assert options["model"].d_model == 32


# --- options of a task -------------------------------------------------------------------------


def options_in_help(main, words, capsys) -> set[str]:
    """The options of a task that --help shows."""
    with pytest.raises(SystemExit) as exit_info:
        read_options(main, [*words, "--help"])
    assert exit_info.value.code == 0
    return set(re.findall(r"--(task\.\w+)", capsys.readouterr().out))


@pytest.mark.parametrize("task", sorted(OPTIONS))
def test_help_shows_the_options_of_the_selected_task_alone(task, capsys, tmp_path):
    own = {f"task.{name}" for name in own_options(options_of(task))}
    assert options_in_help(train.main, ["--task", task], capsys) == own
    assert options_in_help(evaluate.main, [f"--task={task}"], capsys) == own
    RunFolder(tmp_path).save_config(Config(task=task))
    assert options_in_help(translate.main, ["--run_dir", str(tmp_path)], capsys) == own


@pytest.mark.parametrize(
    "form", ["task: parsing", "task: {name: parsing, linearization: brackets}"]
)
def test_a_task_has_a_short_form_and_a_group_of_options(form, tmp_path):
    (tmp_path / "x.yaml").write_text(form)
    words = ["--run_dir", "x", "--config", str(tmp_path / "x.yaml")]
    expected = ParsingOptions(linearization="brackets" if "{" in form else "lexical_in_order")
    assert read_options(train.main, words)["task"] == expected
    free = read_options(train.main, [*words, "--task.grammar", "false"])["task"]
    assert free == dataclasses.replace(expected, grammar=False)
    other = read_options(train.main, ["--run_dir", "x", "--task", "language_modeling"])["task"]
    assert other == TaskOptions("language_modeling")
    assert read_options(train.main, ["--run_dir", "x"])["task"] == TranslationOptions()


def test_a_command_with_a_run_replaces_options_of_its_task(tmp_path, error_of):
    run = RunFolder(tmp_path)
    run.save_config(Config(task=ParsingOptions(linearization="brackets")))
    words = ["--run_dir", str(tmp_path)]
    assert "task_options" not in read_options(translate.main, words)
    options = read_options(translate.main, [*words, "--task.grammar", "false", "--beam_size", "2"])
    assert (options["task_options"], options["beam_size"]) == ({"grammar": False}, 2)
    config = run.load_config(options["task_options"], beam_size=2)
    assert config.task == ParsingOptions(linearization="brackets", grammar=False)
    with pytest.raises(InputError, match="unknown option 'labels' of the task parsing; expected"):
        run.load_config({"labels": ("a",)})
    options = read_options(evaluate.main, ["--task", "parsing", "--hypotheses", "x"])
    assert (options["task"], options.get("task_options")) == ("parsing", None)
    message = "the run determines the task. Leave it out."
    assert error_of(translate.main, "--task=parsing").endswith(message)


@pytest.mark.parametrize(
    ("main", "words", "expected"),
    [
        (train.main, "--data.linearization=brackets", "has become --task.linearization."),
        (train.main, "--train.bleu_tokenize=zh", "has become --task.bleu_tokenize."),
        (translate.main, "--grammar=false", "has become --task.grammar."),
        (translate.main, "--copy_without_letters", "has become --task.copy_without_letters."),
        (evaluate.main, "--tokenize=zh", "has become --task.bleu_tokenize."),
        (evaluate.main, "--ter=true", "has become --metric ter."),
        (evaluate.main, "--label_separator=,", "has become --task.label_separator."),
        (train.main, "--task.grammar=false", "unknown option --task.grammar"),
        (train.main, "--task=parsin", "unknown task 'parsin'; expected "),
        (train.main, "--task.resamples=3", "--task.resamples must be 0 or at least 40, got 3: a"),
    ],
)
def test_an_option_that_moved_or_is_of_another_task_is_an_error(error_of, main, words, expected):
    assert expected in error_of(main, words)


def test_data_max_length_follows_from_batch_tokens(error_of):
    words = ["--run_dir", "x", "--data.batch_tokens", "200"]
    assert read_options(train.main, words)["data"].max_length == 200
    assert read_options(train.main, words[:2])["data"].max_length == 256
    message = error_of(train.main, *words[2:], "--data.max_length", "201")
    expected = "--data.batch_tokens (200) must hold at least one sentence of --data.max_length (201"
    assert expected in message


ROOT = pathlib.Path(__file__).parents[2]
SLOW = {
    *("tensorflow", "keras", "jax", "torch", "numpy", "matplotlib"),
    *("tensorflow_datasets", "sacrebleu"),
}
PROGRAM = """
import sys
from tf_transformer.commands import main
for words in (["--help"], ["--wrong", "x"]):
    for name in main.COMMANDS:
        sys.argv = ["tf-transformer", name, *words]
        try:
            main.main()
        except SystemExit:
            pass
for words in {wrong_paths}:
    sys.argv = ["tf-transformer", *words]
    try:
        main.main()
    except SystemExit as error:
        print(error, file=sys.stderr)
print(*sorted({slow} & set(sys.modules)))
"""


WRONG_PATHS = [
    ["train", "--run_dir", "missing", "--data.train_source", "a", "--data.train_target", "missing"],
    *(
        ["train", "--run_dir", "missing", "--task", task, "--data.train_file", "missing"]
        for task in ("parsing", "classification", "language_modeling")
    ),
    ["train", "--run_dir", "missing", "--train.init_from", "missing"],
    ["evaluate", "--hypotheses", "missing", "--reference", "a"],
    ["evaluate", "--hypotheses", "a", "--reference", "a,missing"],
    ["evaluate", "--hypotheses", "a", "--reference", "a", "--baseline", "missing"],
    ["evaluate", "--hypotheses", "a", "--source", "a"],
    ["evaluate", "--run_dir", "missing"],
    ["translate", "--run_dir", "missing", "--input", "a"],
    ["translate", "--run_dir", "missing", "--input", "missing"],
    ["export", "--run_dir", "missing", "--to", "missing"],
    ["demo", "--run_dir", "missing"],
    ["serve", "--run_dir", "missing"],
    ["serve", "--server", "missing", "--api_keys", "missing"],
    ["plot", "missing"],
]


def test_help_wrong_options_and_wrong_paths_import_no_tensorflow(tmp_path):
    (tmp_path / "a").write_text("a\n")
    program = [sys.executable, "-c", PROGRAM.format(slow=SLOW, wrong_paths=WRONG_PATHS)]
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    process = subprocess.run(
        program, capture_output=True, text=True, check=True, cwd=tmp_path, env=os.environ | path
    )
    assert process.stdout.splitlines()[-1] == ""
    errors = [line for line in process.stderr.splitlines() if line.startswith("error: ")]
    assert all(
        "missing" in error or "needs --reference" in error for error in errors[-len(WRONG_PATHS) :]
    )
    assert len(errors) == len(COMMANDS) + len(WRONG_PATHS)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert process.stderr.count("error: unknown option --wrong") == len(COMMANDS)


def test_an_option_may_have_the_name_of_a_method_of_dictionaries():
    def main(values: str, items: int = 1):
        """A command.

        Args:
            values: first.
            items: second.
        """

    assert read_options(main, ["--values", "a,b"]) == {"values": "a,b", "items": 1}


def test_main_gets_the_options_of_the_command_line_and_the_file(monkeypatch, tmp_path):
    (tmp_path / "options.yaml").write_text("length_penalty: 1.0\nexcluded_tokens: [a]\n")
    got = {}

    def main(run_dir: str, count: int = 3, **decode_options: object) -> None:
        """Takes options."""
        got.update(run_dir=run_dir, count=count, **decode_options)

    words = ["--config", str(tmp_path / "options.yaml"), "--run_dir", "x", "--beam_size", "2"]
    command_line.run(main, words)
    given = {name: value for name, value in got.items() if value is not None}
    assert given == {
        **{"run_dir": "x", "count": 3, "beam_size": 2},
        **{"length_penalty": 1.0, "excluded_tokens": ("a",)},
    }


@pytest.mark.parametrize(
    ("error", "code"), [(InputError("no"), "error: no"), (KeyboardInterrupt(), "interrupted")]
)
def test_input_errors_and_interruptions_have_no_traceback(monkeypatch, error, code):
    def main(run_dir: str = "") -> None:
        """Fails."""
        raise error

    monkeypatch.setattr("sys.argv", ["x.py"])
    with pytest.raises(SystemExit) as exit_info:
        command_line.run(main)
    assert exit_info.value.code == code


# --- presets -----------------------------------------------------------------------------------

BASE_PRE_NORM = ModelConfig.preset("base", norm_first=True)


def model_of(*words):
    return read_options(train.main, ["--run_dir", "x", *words])["model"]


@pytest.mark.parametrize("preset", [["--model", "base"], ["--model=base"], ["--model.preset=base"]])
def test_a_preset_and_single_options_in_any_order(preset):
    assert model_of(*preset) == ModelConfig.preset("base")
    expected = ModelConfig.preset("base", d_model=256, norm_first=True)
    words = ["--model.d_model", "256", "--model.norm_first"]
    assert model_of(*preset, *words) == model_of(*words, *preset) == expected
    assert model_of("--model", "big", *preset) == ModelConfig.preset("base")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model: base", ModelConfig.preset("base")),
        ("model: {preset: base, norm_first: true}", BASE_PRE_NORM),
        ("model: {norm_first: true, preset: base}", BASE_PRE_NORM),
        ("model: {d_ff: 512, preset: big}", ModelConfig.preset("big", d_ff=512)),
    ],
)
def test_a_preset_in_a_file(tmp_path, text, expected):
    file = tmp_path / "x.yaml"
    file.write_text(text)
    assert model_of("--config", str(file)) == expected
    # The command line overrides the file, with single options and with another preset.
    changed = dataclasses.replace(expected, d_ff=64)
    assert model_of("--model.d_ff=64", "--config", str(file)) == changed
    small = dataclasses.replace(expected, **ModelConfig.preset_options("small"))
    assert model_of("--config", str(file), "--model", "small") == small
    file.write_text(text.removeprefix("model: "))
    if text.startswith("model: {"):
        assert model_of("--model", str(file)) == model_of("--model", file.read_text()) == expected


def test_a_run_has_the_options_of_its_preset(tmp_path):
    run = RunFolder(tmp_path)
    run.save_config(Config(model=model_of("--model", "base")))
    assert "preset" not in run.config.read_text()
    assert run.load_config().model == ModelConfig.preset("base")


def test_an_unknown_preset_is_an_error(error_of):
    expected = "unknown preset 'huge'; expected one of ['base', 'big', 'small', 'tiny']."
    assert error_of(train.main, "--model", "huge") == f"error: {expected}"
    assert error_of(train.main, yaml="model: huge") == f"error: x.yaml: {expected}"
    assert error_of(train.main, yaml="model: {preset: huge}") == f"error: x.yaml: {expected}"
    assert "unknown preset [1]" in error_of(train.main, yaml="model: {preset: [1]}")


def test_help_names_the_presets(capsys):
    with pytest.raises(SystemExit):
        read_options(train.main, ["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--model NAME A preset: tiny, small, base, big." in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {"run_dir"}),
        (["--model.d_model=8"], {"run_dir", "model.d_model"}),
        (["--data.corpora=[{source: a, target: b}]"], {"run_dir", "data.corpora"}),
        (["--train.steps=0"], {"run_dir", "train.steps"}),
        (["--task.lowercase"], {"run_dir", "task.lowercase"}),
    ],
)
def test_a_command_gets_the_names_of_the_given_options(tmp_path, words, expected):
    read = read_options(train.main, ["--run_dir", "x", *words])
    assert read["given"] == expected
    assert "given" not in read_options(evaluate.main, ["--run_dir", "x"])


def test_options_of_files_and_presets_are_given(tmp_path):
    (tmp_path / "x.yaml").write_text("data: {held_out: 1000}")
    words = ["--run_dir", "x", "--config", str(tmp_path / "x.yaml"), "--model", "tiny"]
    expected = {f"model.{name}" for name in ModelConfig.preset_options("tiny")}
    given = read_options(train.main, words)["given"]
    assert given - {"config"} == expected | {"run_dir", "data.held_out"}


def test_all_options_of_a_run_that_goes_on_are_given(tmp_path):
    run = RunFolder(tmp_path)
    run.save_config(Config())
    run.resume.mkdir(parents=True)
    (run.resume / "checkpoint").touch()
    given = read_options(train.main, ["--run_dir", str(tmp_path)])["given"]
    names = {f"train.{field.name}" for field in dataclasses.fields(TrainConfig)}
    assert names <= given
