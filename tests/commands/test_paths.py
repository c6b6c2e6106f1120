"""All options that name files and folders: `~` is the home folder, and addresses are errors."""

import dataclasses
import inspect
import os
import re
from typing import get_args, get_type_hints

import docstring_parser
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from tf_transformer.commands import command_line, export
from tf_transformer.commands import main as commands
from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.corpora import VARIABLE, in_folder, own_file
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath, PathOrAddress, local_path
from tf_transformer.registry import OPTIONS, options_of
from tf_transformer.run.folder import RunFolder

LIST = ".0"  # after the name of a list of groups: its first item


def options_in(owner, prefix=""):
    """(option, its type, its description) of each option of a command, group or list of groups."""
    hints = get_type_hints(owner, include_extras=True)
    doc = docstring_parser.parse(inspect.getdoc(owner) or "")
    texts = {each.arg_name: each.description or "" for each in doc.params}
    for name, hint in hints.items():
        hint = hint.type if isinstance(hint, dataclasses.InitVar) else hint
        items = get_args(hint)[:1] if isinstance(hint, type(tuple[str, ...])) else ()
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            yield from options_in(hint, f"{prefix}{name}.")
        elif items and dataclasses.is_dataclass(items[0]):
            yield from options_in(items[0], f"{prefix}{name}{LIST}.")
        elif name != "return":
            yield prefix + name, hint, texts.get(name, "")


PATHS = [
    pytest.param(command, option, id=f"{command}-{option}")
    for command in commands.COMMANDS
    for option, hint, _ in options_in(commands.command(command))
    if hint == LocalPath
]


PAIR = {"source": "x", "target": "x"}
CORPORA = ("corpus", "valid", "test")
NEEDS = {  # validation text needs training text
    "data.valid_corpora": {"data.corpora": [PAIR]},
    "data.valid_source": {"data.train_source": "x", "data.train_target": "x"},
    "data.valid_target": {"data.train_source": "x", "data.train_target": "x"},
    "data.valid_file": {"data.train_file": "x"},
    "data.train_alignments": {"data.train_source": "x", "data.train_target": "x"},
    **{f"{x}.alignments": {f"{x}.source": "x", f"{x}.target": "x"} for x in CORPORA},
}


PLACES = {  # of the values of short forms
    f"data.{part}_{form}": f"data.{corpora}.0.{field}"
    for part, corpora in (("train", "corpora"), ("valid", "valid_corpora"))
    for form, field in (("source", "source"), ("target", "target"), ("file", "path"))
} | {"data.train_alignments": "data.corpora.0.alignments"}


def words_for(command, option, value, folder, form):
    """A command line with a value for an option in one of its forms, and what else it needs."""
    main = commands.command(command)
    group, is_item, key = option.partition(f"{LIST}.")
    if is_item:
        given = {group: [{key: value} if key == "path" else PAIR | {key: value}]}
    else:
        swapped = {"source": "target", "target": "source"}
        partner = re.sub("source$|target$", lambda side: swapped[side[0]], option)
        known = [name for name, *_ in options_in(main)]
        given = ({partner: "x"} if partner in known else {}) | {option: value}
    given |= NEEDS.get(group, {})
    words = []
    for name, parameter in inspect.signature(main).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            words.append(given.pop(name, "x"))
        elif parameter.kind is not parameter.VAR_KEYWORD and parameter.default is parameter.empty:
            words += [] if name in given else [f"--{name}=x"]
    if form == "file":
        (folder / "options.yaml").write_text(yaml.safe_dump(nested(given)))
        return [*words, "--config", str(folder / "options.yaml")]
    for name, x in given.items():
        text = x if isinstance(x, str) else yaml.safe_dump(x, default_flow_style=True)
        words += [f"--{name}={text}"] if form == "=" else [f"--{name}", text]
    return words


def nested(options):
    """{"a.b": x} as {"a": {"b": x}}."""
    tree = {}
    for name, value in options.items():
        *groups, last = name.split(".")
        place = tree
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = value
    return tree


def value_of(values, option):
    """The value of an option in the arguments of a command."""
    for name in PLACES.get(option, option).split("."):
        if name.isdigit() or isinstance(values, list | tuple):
            values = values[int(name)] if name.isdigit() else values[0]
        else:
            values = values[name] if isinstance(values, dict) else getattr(values, name)
    return values[0] if isinstance(values, list) else values


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty working folder, and a home folder."""
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


ADDRESSES = {
    "=": "gs://bucket/mine/1",
    " ": "s3:/bucket/one_slash_lost",
    "file": "http://example.org/a.en",
}
# Each option in one form, and the forms in turn; the other forms are slow.
IN_FORMS = [
    pytest.param(
        *(*path.values, form),
        id=f"{path.id}-{form}",
        marks=[] if number % len(ADDRESSES) == place else pytest.mark.slow,
    )
    for number, path in enumerate(PATHS)
    for place, form in enumerate(ADDRESSES)
]


@pytest.mark.parametrize(("command", "option", "form"), IN_FORMS)
def test_an_address_is_an_error_before_anything_is_written(command, option, form, folders, capsys):
    address = ADDRESSES[form]
    words = words_for(command, option, address, folders, form)
    with pytest.raises(SystemExit) as stopped:
        command_line.run(commands.command(command), words)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    typed = option.replace(LIST, "")
    assert f"{typed} must be a path of this machine, got {address}. " in error
    assert f"no {address.partition(':')[0]}:// addresses: give a local path, and copy" in error
    assert f"Write ./{address} for a local folder of this name." in error
    assert list((folders / "work").iterdir()) == []


@pytest.mark.parametrize(("command", "option", "form"), IN_FORMS)
def test_a_tilde_is_the_home_folder_in_every_form(command, option, form, folders):
    main = commands.command(command)
    words = words_for(command, option, "~/in/x.png", folders, form)
    value = value_of(command_line.read_options(main, words), option)
    assert value == str(folders / "home" / "in" / "x.png")


@pytest.mark.parametrize("option", ["run_dir", "train.init_from"])
def test_an_address_beside_a_file_of_options_is_named(option, folders, capsys):
    (folders / "options.yaml").write_text("train: {steps: 1}")
    words = ["--config", str(folders / "options.yaml"), "--run_dir", "r", f"--{option}", "gs://b/m"]
    with pytest.raises(SystemExit):
        command_line.read_options(commands.command("train"), words)
    assert f"--{option} must be a path of this machine, got gs://b/m. " in capsys.readouterr().err


def test_a_group_of_options_may_be_a_file(folders):
    (folders / "train.yaml").write_text("steps: 7")
    words = ["--run_dir", "r", "--train", str(folders / "train.yaml"), "--train.seed", "2"]
    values = command_line.read_options(commands.command("train"), words)
    assert (values["train"].steps, values["train"].seed) == (7, 2)
    assert values["given"] == {"run_dir", "train.steps", "train.seed"}


def test_there_are_paths_in_all_commands():
    assert {each.values[0] for each in PATHS} == set(commands.COMMANDS)
    assert len(PATHS) > 40


# Options whose description speaks of files, but whose value is none.
NO_PATHS = {
    *("data.corpora", "data.valid_corpora", "data.origin"),
    *("corpus.name", "corpus.format", "corpus.split"),
    *("task.text_columns", "task.label_column"),
}


def test_every_option_that_names_a_file_or_a_folder_is_a_path():
    owners = [commands.command(name) for name in commands.COMMANDS]
    options = [each for owner in owners for each in options_in(owner)]
    for task in OPTIONS:
        options += options_in(options_of(task), "task.")
    for option, hint, text in options:
        name = re.sub(rf"^(data\.\w+{LIST}|corpora{LIST}|valid|test)\.", "corpus.", option)
        if hint is str and name not in NO_PATHS:
            assert not re.search(r"\b(files?|folders?|path)\b", text), option


plain_text = st.text(st.characters(exclude_characters="~:", exclude_categories=["Cs"]))


@given(plain_text)
def test_other_values_stay(text):
    assert local_path(text, "--x") == text


@given(st.lists(plain_text, min_size=1), st.from_regex(r"[a-z][a-z0-9+.-]+", fullmatch=True))
def test_an_address_in_a_list_of_paths_is_found(others, scheme):
    assume(not any(os.path.exists(each) for each in others))
    paths = ",".join([*others, f"{scheme}://b/c"])
    with pytest.raises(InputError, match=re.escape(f"got {scheme}://b/c.")):
        local_path(paths, "--x")


@pytest.mark.parametrize(
    "path", ["./gs://bucket/1", "a:b", "a:b/c", "C:/x", "x/~/y", "x~", "/gs:/x", "{a}:1"]
)
def test_local_names_with_colons_and_tildes_stay(path, folders):
    if path == "a:b/c":
        (folders / "work" / "a:b").mkdir()
    assert local_path(path, "--x") == path


def test_a_file_with_commas_in_its_name_is_one_path(folders):
    (folders / "work" / "a,~,s3:").mkdir()
    (folders / "work" / "a,~,s3:" / "b").write_text("")
    assert local_path("a,~,s3:/b", "--x") == "a,~,s3:/b"
    assert local_path("~/a,~,~/c", "--x") == "{0}/a,{0},{0}/c".format(folders / "home")


def test_a_library_with_file_systems_of_its_own_gets_addresses(folders):
    assert Corpus.__annotations__["data_dir"] == PathOrAddress
    words = ["--run_dir", "x", "--data.tfds", "x/de-en", "--data.tfds_dir=gs://bucket/corpora"]
    data = command_line.read_options(commands.command("train"), words)["data"]
    assert data.corpora[0].data_dir == "gs://bucket/corpora"
    words = ["--run_dir", "x", "--data.tfds", "x/de-en", "--data.tfds_dir=~/corpora"]
    data = command_line.read_options(commands.command("train"), words)["data"]
    assert data.corpora[0].data_dir == str(folders / "home" / "corpora")


def test_the_data_folder_of_the_environment_may_be_in_the_home_folder(folders, monkeypatch):
    monkeypatch.setenv(VARIABLE, "~/data")
    found = in_folder(DataConfig(train_file="a.txt"))
    assert own_file(found.corpora) == str(folders / "home" / "data" / "a.txt")
    monkeypatch.setenv(VARIABLE, "gs://bucket/data")
    with pytest.raises(InputError, match=f"^{VARIABLE} must be a path of this machine, got gs://"):
        in_folder(DataConfig(train_file="a.txt"))


def test_a_run_in_python_may_be_in_the_home_folder_and_not_at_an_address(folders):
    assert RunFolder("~/runs/x").path == folders / "home" / "runs" / "x"
    with pytest.raises(InputError, match=r"^run_dir must be a path of this machine, got gs:/b/r\."):
        RunFolder("gs:/b/r")


def test_files_of_options_may_be_in_the_home_folder(folders):
    (folders / "home" / "o.yaml").write_text("output: x.svg\n")
    values = command_line.read_options(commands.command("plot"), ["x", "--config=~/o.yaml"])
    assert values["output"] == "x.svg"
    (folders / "home" / "m.yaml").write_text("d_model: 64\n")
    words = ["--run_dir=x", "--model=~/m.yaml"]
    assert command_line.read_options(commands.command("train"), words)["model"].d_model == 64
    (folders / "home" / "d.yaml").write_text("held_out: 7\n")
    words = ["--run_dir=x", "--data=~/d.yaml"]
    assert command_line.read_options(commands.command("train"), words)["data"].held_out == 7


def test_training_resumes_a_run_in_the_home_folder(run, folders):
    (folders / "home" / "runs").symlink_to(run.parent)
    words = [f"--run_dir=~/runs/{run.name}"]
    values = command_line.read_options(commands.command("train"), words)
    assert values["model"] == RunFolder(run).load_config().model


def test_an_export_to_an_address_makes_no_folder(run, folders, capsys):
    words = ["--run_dir", str(run), "--to", "gs://bucket/mine/1", "--format", "run"]
    with pytest.raises(SystemExit):
        command_line.run(export.main, words)
    assert "--to must be a path of this machine, got gs://bucket/mine/1." in capsys.readouterr().err
    assert list((folders / "work").iterdir()) == []
