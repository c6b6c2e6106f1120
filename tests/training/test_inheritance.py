"""What a run takes from the run in `train.init_from`: a rule for every option of every task."""

import dataclasses
import operator
import re
import shutil
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from tf_transformer import tasks
from tf_transformer.commands import command_line, train
from tf_transformer.config import (
    AugmentConfig,
    Config,
    Corpus,
    DataConfig,
    ImportedConfig,
    ModelConfig,
    TrainConfig,
)
from tf_transformer.config.task import ClassificationOptions, ParsingOptions
from tf_transformer.errors import InputError
from tf_transformer.registry import OPTIONS, options_of
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.text.codec import Codec
from tf_transformer.text.own_tokenizer import load_own
from tf_transformer.text.tokenizer import Tokenizer
from tf_transformer.training.open_options import fit_to_text
from tf_transformer.training.preparation import require_trainable

# Each option can differ from these alone.
MODEL = ModelConfig(tie_embeddings="target", output_bias=True)
CLASSES = [
    *(hint for name, hint in get_type_hints(Config).items() if name != "task"),
    *(options_of(task) for task in OPTIONS),
    AugmentConfig,
    ImportedConfig,
]
OF_TASKS = [
    (task, f"task.{field.name}")
    for task in OPTIONS
    for field in dataclasses.fields(options_of(task))
    if field.name != "name"
]
NAMES = [("translation", name) for name in Config().rules if "." in name]
CASES = list(dict.fromkeys([*NAMES, *OF_TASKS]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, and with the tokenizer of an origin."""
    folder = tmp_path_factory.mktemp("inheritance")
    rows = ["text\tlabel", "a dog\tanimal", "a tree\tplant"]
    (folder / "rows.tsv").write_text("".join(f"{row}\n" for row in rows))
    (folder / "origin").mkdir()
    Codec(Tokenizer.train(["a house"], 300)).save(folder / "origin")
    return folder


def base(folder, task):
    """The configuration from which an origin or a new run differs in one option."""
    options = ClassificationOptions(labels=("animal", "plant")) if "class" in task else task
    data = DataConfig(train_file=str(folder / "rows.tsv")) if task != "translation" else None
    return Config(MODEL, data or DataConfig(), task=options)


def others(hint, value):
    """Values of a type, not equal to `value`."""
    if get_origin(hint) is Literal:
        found = get_args(hint)
    elif get_origin(hint) is tuple:
        is_corpora = get_args(hint)[0] is Corpus
        found = [(Corpus("a.en", "a.de"),)] if is_corpora else [("1", "2"), ("x",)]
    else:
        numbers = [0.5, 0.25, 2, 1, 3, 300, 5, 64]
        found = [True, False, "fr", *numbers]
    return [each for each in found if each != value]


def changed(config, name):
    """The configuration with another value of an option; None if it cannot differ alone."""
    *groups, option = name.split(".")
    parts = [config]
    for group in groups:
        parts.append(getattr(parts[-1], group))
    hint = get_type_hints(type(parts[-1]))[option]
    for value in others(hint, getattr(parts[-1], option)):
        try:
            new = dataclasses.replace(parts[-1], **{option: value})
            for part, group in zip(parts[-2::-1], groups[::-1], strict=True):
                new = dataclasses.replace(part, **{group: new})
        except InputError:
            continue
        return new
    return None


def start(folder, run_dir, origin, config, given):
    """The configuration of a run that starts with an origin, before it is trained."""
    RunFolder(folder / "origin").save_config(origin)
    options = dataclasses.replace(config.train, init_from=str(folder / "origin"))
    run = Run.at(run_dir, dataclasses.replace(config, train=options))
    run = fit_to_text(run, tasks.for_run(run.config), given)
    require_trainable(run)
    return run.config


def test_every_option_of_every_task_says_what_it_means_for_an_origin():
    silent = [
        f"{cls.__name__}.{field.name}"
        for cls in CLASSES
        for field in dataclasses.fields(cls)
        if field.name not in ("augment", "imported") and "rules" not in field.metadata
    ]
    assert not silent, "write same(…), inherited(…), free(…) or search(…); see config/option.py"
    assert len(CASES) > 110


def test_a_tuned_run_is_the_same_model_with_a_training_of_its_own():
    """The table in docs/start/fine_tune.md."""
    free = {
        name
        for task in OPTIONS
        for name, rules in Config(task=task).rules.items()
        if rules.from_origin == "free"
    }
    assert {name for name in free if not name.startswith(("train.", "data."))} == {"decode.average"}
    assert free >= {f"train.{field.name}" for field in dataclasses.fields(TrainConfig)}


@pytest.mark.parametrize(("task", "name"), CASES, ids=lambda x: x)
def test_each_option_follows_its_rule(folder, tmp_path, task, name):
    """An option that is not given, and a given one, with an origin that has another value."""
    value = operator.attrgetter(name)
    new = base(folder, task)
    rule = new.rules[name].from_origin
    origin = changed(new, name)
    if origin is None:
        assert rule == "free", "give the test a value that the option can have"
        return
    assert value(origin) != value(new)
    taken = value(start(folder, tmp_path / "run", origin, new, given=()))
    if rule == "free":
        assert taken == value(new) or name in ("train.init_from", "train.learning_rate")
    else:
        assert taken == value(origin)
    if rule == "same":
        with pytest.raises(InputError) as error:
            start(folder, tmp_path / "run", origin, new, given={name})
        expected = f"{name} is {value(origin)!r} there, {value(new)!r} here"
        assert expected in str(error.value)
        assert "Leave them out" in str(error.value)
    elif name != "train.init_from":
        assert value(start(folder, tmp_path / "run", origin, new, given={name})) == value(new)


@pytest.mark.parametrize("name", ["model.d_ff", "data.segmentation", "data.vocabularies"])
def test_python_gives_all_options_so_those_that_must_be_equal_are_checked(folder, tmp_path, name):
    new = base(folder, "translation")
    RunFolder(folder / "origin").save_config(changed(new, name))
    options = dataclasses.replace(new.train, init_from=str(folder / "origin"))
    with pytest.raises(InputError, match=f"{name} is .* there, .* here"):
        require_trainable(Run.at(tmp_path / "run", dataclasses.replace(new, train=options)))


def test_an_origin_of_another_task_gives_the_model_and_the_vocabulary_only(folder, tmp_path):
    origin = base(folder, "masked_language_modeling")
    for name in ("model.d_ff", "data.segmentation", "decode.beam_size", "data.source_language"):
        origin = changed(origin, name)
    new = base(folder, "classification")
    config = start(folder, tmp_path / "run", origin, new, given=())
    assert config.model == origin.model
    assert config.data.segmentation == "unigram"
    assert (config.decode, config.task) == (new.decode, new.task)
    assert config.data.source_language == "en"
    assert config.train.learning_rate == new.train.learning_rate
    with pytest.raises(InputError, match=r"model\.d_ff is"):
        start(folder, tmp_path / "run", origin, new, given={"model.d_ff"})


def test_a_training_has_the_task_of_its_origin(folder, tmp_path):
    origin = folder / "origin"
    RunFolder(origin).save_config(base(folder, "parsing"))
    words = ["--run_dir", str(tmp_path / "run"), f"--train.init_from={origin}"]
    (tmp_path / "x.yaml").write_text(f"train: {{init_from: '{origin}'}}")
    for given in (words, [*words[:2], "--config", str(tmp_path / "x.yaml")]):
        assert command_line.read_options(train.main, given)["task"] == ParsingOptions()
    named = command_line.read_options(train.main, [*words, "--task", "classification"])
    assert named["task"] == ClassificationOptions()


def test_another_tokenizer_than_that_of_the_origin_is_an_error(folder, tmp_path):
    Tokenizer.train(["another text"], 300).save(tmp_path / "own.model")
    shutil.copy(folder / "origin" / "tokenizer.model", tmp_path / "same.model")
    codec = Codec(load_own(str(tmp_path / "same.model")))
    task = tasks.get("translation")
    for name, message in (("own.model", r"own.model is not the vocabulary"), ("same.model", "")):
        data = DataConfig(tokenizer=str(tmp_path / name))
        if message:
            with pytest.raises(InputError, match=message):
                task.reuse_codec(codec, None, Config(data=data))
        else:
            assert task.reuse_codec(codec, None, Config(data=data)) is codec


# --- directions ------------------------------------------------------------------------------

DE_EN = DataConfig(train_source="x.de", train_target="x.en")
IMPORTED = DataConfig(source_language="de", target_language="en")
UNKNOWN = DataConfig(source_language="", target_language="")  # of an import
LANGUAGES = {"data.source_language", "data.target_language"}
PAIR = {"en": "Fire!", "de": "Feuer!", "fr": "Au feu !"}


@pytest.fixture
def text(tmp_path):
    """Corpora of the same texts: by name, the options of the data."""
    for language, line in PAIR.items():
        (tmp_path / f"a.{language}").write_text(f"{line}\n" * 2)
    (tmp_path / "a.txt").write_text("text\n" * 2)
    tags = {"en": "en", "de": "de-AT", "fr": "fr"}
    items = "".join(
        f'<tuv xml:lang="{tags[x]}"><seg>{line}</seg></tuv>' for x, line in PAIR.items()
    )
    (tmp_path / "a.tmx").write_text(f"<tmx><body><tu>{items}</tu></body></tmx>")
    (tmp_path / "a.jsonl").write_text(str(PAIR).replace("'", '"') + "\n")

    def files(one, other):
        paths = {"source": tmp_path / f"a.{one}", "target": tmp_path / f"a.{other}"}
        return DataConfig(**{f"train_{side}": str(path) for side, path in paths.items()})

    def corpus(name, *columns):
        return DataConfig(corpora=(Corpus(path=str(tmp_path / name), columns=columns),))

    return {
        **{f"{one} {other}": files(one, other) for one in PAIR for other in PAIR if one != other},
        "txt": files("txt", "txt"),
        "txt fr": files("txt", "fr"),
        "tmx": corpus("a.tmx"),
        "tmx en de": corpus("a.tmx", "en", "de"),
        "tmx en-US de-DE": corpus("a.tmx", "en-US", "de-DE"),
        "tmx de-AT en": corpus("a.tmx", "de-AT", "en"),
        "jsonl": corpus("a.jsonl"),
        "jsonl en de": corpus("a.jsonl", "en", "de"),
        "jsonl de en": corpus("a.jsonl", "de", "en"),
    }


@pytest.mark.parametrize(
    ("origin", "name", "languages", "found"),
    [
        *((origin, name, None, ("de", "en")) for name in ("de en", "txt", "tmx", "jsonl")
          for origin in (DE_EN, IMPORTED)),
        *((DE_EN, name, None, ("de", "en")) for name in ("tmx de-AT en", "jsonl de en")),
        *((DE_EN, name, None, "from en to de") for name in ("en de", "tmx en de", "jsonl en de")),
        (DE_EN, "tmx en-US de-DE", None, "from en to de"),
        (IMPORTED, "en de", None, "from en to de"),
        (DE_EN, "fr en", None, "from fr to en"),
        (DE_EN, "de fr", None, "from de to fr"),
        (DE_EN, "txt fr", None, "from an unknown language to fr"),
        (DE_EN, "en de", ("en", "de"), ("en", "de")),
        (DE_EN, "tmx", ("en", "de"), ("en", "de")),
        (DE_EN, "de fr", ("de", "fr"), ("de", "fr")),
        (DE_EN, "de fr", ("en", "de"), "from de to fr"),
        (UNKNOWN, "en de", None, ("", "")),
        (UNKNOWN, "tmx", ("en", "de"), ("en", "de")),
    ],
)  # fmt: skip
def test_text_goes_in_the_direction_of_the_origin_unless_languages_are_given(
    folder, tmp_path, text, origin, name, languages, found
):
    """`found`: the languages of the new run, or the direction in the error."""
    data, given = text[name], set()
    if languages:
        pair = dict(zip(("source_language", "target_language"), languages, strict=True))
        data, given = dataclasses.replace(data, **pair), LANGUAGES
    old, new = (dataclasses.replace(base(folder, "translation"), data=x) for x in (origin, data))
    if isinstance(found, tuple):
        config = start(folder, tmp_path / "run", old, new, given)
        assert (config.data.source_language, config.data.target_language) == found
        return
    with pytest.raises(InputError) as error:
        start(folder, tmp_path / "run", old, new, given)
    message = str(error.value)
    assert f"goes {found}, but {folder / 'origin'} translates from de to en" in message
    _, source, target = re.split("from | to ", found)
    options = f"data.source_language {source} and data.target_language {target}"
    unknown = "data.source_language an unknown language and "
    assert message.endswith(f"give {options.replace(unknown, '')}.")


def test_a_tuned_run_has_a_direction_also_if_its_text_does_not_say_it(folder, tmp_path, text):
    """It has inherited its languages, or they were given."""
    config = base(folder, "translation")
    tuned = dataclasses.replace(config, data=text["txt"], train=TrainConfig(init_from="runs/first"))
    new = dataclasses.replace(config, data=text["de en"])
    with pytest.raises(InputError, match=r"goes from de to en, but .* translates from en to de"):
        start(folder, tmp_path / "run", tuned, new, set())


def test_an_inherited_target_tag_allows_one_target_language(folder, tmp_path, text):
    folder = shutil.copytree(folder, tmp_path / "tagged")
    tokenizer = Tokenizer.train(["a house"], 300, symbols=(">>deu<<", ">>fra<<"))
    Codec(tokenizer).save(folder / "origin")
    config = base(folder, "translation")
    decode = dataclasses.replace(config.decode, target_tag=">>deu<<")
    origin = dataclasses.replace(config, data=text["en de"], decode=decode)
    new = dataclasses.replace(config, data=text["en fr"])
    with pytest.raises(InputError, match=r"goes from en to fr, but .* translates from en to de"):
        start(folder, tmp_path / "run", origin, new, set())
    decode = dataclasses.replace(config.decode, target_tag=">>fra<<")
    new = dataclasses.replace(new, decode=decode)
    assert start(folder, tmp_path / "run", origin, new, {"decode.target_tag"}).decode == decode


def test_a_training_starts_with_one_run(folder, tmp_path):
    origin = base(folder, "translation")
    RunFolder(folder / "origin").save_config(origin)
    (tmp_path / "other").symlink_to(folder / "origin")
    both = f"{folder / 'origin'},{tmp_path / 'other'}"
    run = Run.at(tmp_path / "run", dataclasses.replace(origin, train=TrainConfig(init_from=both)))
    with pytest.raises(
        InputError, match=r"train\.init_from must be a run's folder: expected one run"
    ):
        _ = run.origin


def test_the_test_text_of_a_tuned_run_is_read_in_its_direction(folder, tmp_path, text):
    old, new = (
        dataclasses.replace(base(folder, "translation"), data=x) for x in (DE_EN, text["tmx"])
    )
    config = start(folder, tmp_path / "run", old, new, given=())
    test = tasks.for_run(config).load_corpus(config, Corpus(path=str(tmp_path / "a.tmx")))
    assert (test.inputs, test.references) == (["Feuer!"], ["Fire!"])


def test_a_corpus_of_an_unknown_direction_needs_its_languages(folder, tmp_path, text):
    old, new = (
        dataclasses.replace(base(folder, "translation"), data=x) for x in (UNKNOWN, text["tmx"])
    )
    with pytest.raises(InputError, match=r"are en, de-AT, fr. Set data.source_language and"):
        start(folder, tmp_path / "run", old, new, given=())


def test_options_of_a_resumed_run_are_its_own(folder, tmp_path, monkeypatch):
    """Also those that an earlier version did not inherit."""
    run = RunFolder(tmp_path / "run")
    origin = changed(base(folder, "translation"), "task.lower_capitals")
    stored = start(folder, run.path, origin, base(folder, "translation"), given=LANGUAGES)
    stored = dataclasses.replace(stored, task="translation")
    run.path.mkdir()
    run.save_config(stored)
    monkeypatch.setattr(RunFolder, "has_checkpoint", property(lambda self: self.path == run.path))
    options = dataclasses.replace(stored.train, learning_rate=1.0)
    again = Run.at(run.path, Config(train=options))
    config = fit_to_text(again, tasks.for_run(again.config), given={"train.init_from"}).config
    assert (config.task, config.model) == (stored.task, stored.model)
    assert config.train.learning_rate == 0.1
