"""Training reads sources as translation does: with the target tag and the rules for punctuation."""

import dataclasses
import itertools
import pathlib
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer import tasks
from tf_transformer.commands import import_model
from tf_transformer.config import AugmentConfig, Config, ModelConfig, TrainConfig
from tf_transformer.data.augmentation.text_augmentation import TextAugmentation
from tf_transformer.data.tokens import IdRows, TokenExamples
from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator
from tf_transformer.run.run import Run
from tf_transformer.text.codec import SourceCodec
from tf_transformer.text.graph_tokenizer import as_strings
from tf_transformer.training.preparation import prepare, require_trainable

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "marian"
TEXTS = ["a small house", ">>deu<< two dogs run", "the ( old ) house", "run"]
RULES = [("kept", ">>nld<<"), ("opus", ""), ("opus", ">>deu<<"), ("kept", "")]
PARTS = ["a", "small", "house", " ", "  ", "“", "»", "–", "…", "（", "`", "''", "\u00a0", "\u00ad"]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The run of a model with the target tags >>deu<< and >>nld<<."""
    folder = tmp_path_factory.mktemp("imported")
    shutil.copytree(FIXTURES / "shared", folder / "model")
    for side in ("source", "target"):
        shutil.copy(FIXTURES / f"{side}.spm", folder / "model")
    import_model.main(marian=str(folder / "model"), run_dir=str(folder / "run"))
    return folder / "run"


@pytest.fixture(
    scope="module",
    params=[*RULES[::2], *(pytest.param(rules, marks=pytest.mark.slow) for rules in RULES[1::2])],
    ids=str,
)
def reading(request, imported):
    """The rules, a translator with them, and the codec of a training run with them."""
    punctuation, tag = request.param
    rules = {"punctuation": punctuation, "target_tag": tag}
    translator = Translator.from_run(imported, **rules)
    return rules, translator, SourceCodec(translator.codec, "source", **rules)


def searched_ids(translator, texts):
    """The ids that a search of a translator reads."""
    return [row.tolist() for row in translator._read_text(as_strings(texts)).ids.lists()]


@settings(max_examples=200)
@given(
    st.sampled_from(["", ">>deu<<", ">>nld<< "]),
    st.lists(st.sampled_from(PARTS) | st.characters(exclude_characters="\r\n<>"), max_size=8),
)
def test_a_source_has_the_same_ids_in_training_and_in_a_search(reading, tag, parts):
    _, translator, codec = reading
    text = tag + "".join(parts).lstrip()
    assert [codec.encode("source", text)] == searched_ids(translator, [text])
    assert codec.encode("target", text) == translator.codec.encode("target", text)


def config_of(folder, imported, **decode):
    """The configuration of fine-tuning on `TEXTS`, with a folder of tokenised text."""
    for name in ("a.en", "a.nl"):
        (folder / name).write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    origin = Run.load(imported).config
    files = {"train_source": str(folder / "a.en"), "train_target": str(folder / "a.nl")}
    files |= {name.replace("train", "valid"): path for name, path in files.items()}
    return dataclasses.replace(
        origin,
        data=dataclasses.replace(origin.data, **files, cache_dir=str(folder / "cache")),
        train=TrainConfig(steps=1, init_from=str(imported)),
        decode=dataclasses.replace(origin.decode, **decode),
    )


def test_training_and_validation_read_what_a_search_reads(reading, imported, tmp_path):
    rules, translator, _ = reading
    config = config_of(tmp_path, imported, **rules)
    data = prepare(Run.at(tmp_path / "run", config), tasks.for_run(config))
    expected = sorted(searched_ids(translator, TEXTS))
    for batches in (
        itertools.islice(data.train.batches(), len(data.train)),
        data.valid[""].one_epoch(),
    ):
        rows = [row[row > 0].tolist() for batch in batches for row in batch["source"]]
        assert sorted(rows) == expected
    if rules != {"punctuation": "kept", "target_tag": ""}:
        assert expected != sorted(data.codec.encode_batch("source", TEXTS))
    greedy = tasks.for_run(config).predictor(translator.model, data.codec, config.decode.greedy)
    loaded = Translator.from_run(imported, **rules, beam_size=1)
    untagged = dataclasses.replace(loaded.config, target_tag=rules["target_tag"])
    expected = loaded.like(loaded.model, untagged)(TEXTS)
    assert [each.text for each in greedy(TEXTS)] == [each.text for each in expected]


def test_joined_texts_are_read_in_the_same_way(reading, imported, tmp_path):
    """Augmentation decodes texts, joins them, and encodes them again."""
    rules, translator, codec = reading
    config = config_of(tmp_path, imported, **rules)
    augment = TextAugmentation(AugmentConfig(join=1.0), codec, 100, config.train.seed)
    texts = {"source": ["a small house", "the sea"], "target": ["ein kleines Haus", "Meer"]}
    rows = {name: codec.encode_batch(name, lines) for name, lines in texts.items()}
    examples = TokenExamples({name: IdRows.from_lists(each) for name, each in rows.items()})
    longest = 0
    for window in range(10):
        changed = augment(window, examples)["source"]
        row = changed.ids[: changed.lengths[0]].tolist()
        assert [row] == searched_ids(translator, [codec.decode("source", row)])
        longest = max(longest, len(row))
    assert longest > max(map(len, rows["source"]))


def test_tokenised_text_of_other_rules_is_not_read(imported, tmp_path):
    stores = set()
    for number, (punctuation, tag) in enumerate([*RULES, *RULES]):
        config = config_of(tmp_path, imported, punctuation=punctuation, target_tag=tag)
        prepare(Run.at(tmp_path / str(number), config), tasks.for_run(config))
        stores |= {path.name for path in (tmp_path / "cache").iterdir()}
    # The same files are training text and validation text, so they differ in their identity.
    assert len(stores) == 2 * len(RULES)


def test_a_run_resumes_with_the_same_rules_only(imported, tmp_path, monkeypatch):
    config = config_of(tmp_path, imported, target_tag=">>nld<<")
    run = Run.at(tmp_path / "run", config)
    prepare(run, tasks.for_run(config))
    monkeypatch.setattr(type(run.folder), "has_checkpoint", True)
    for name, value in (("target_tag", ">>deu<<"), ("punctuation", "opus"), ("beam_size", 1)):
        decode = dataclasses.replace(config.decode, **{name: value})
        other = Run.at(run.folder.path, dataclasses.replace(config, decode=decode))
        if name == "beam_size":
            require_trainable(other)
        else:
            with pytest.raises(InputError, match=rf"decode\.{name} was .*, now '{value}'"):
                require_trainable(other)


def test_a_tag_that_the_vocabulary_lacks_is_an_error_before_training(imported, tmp_path):
    config = config_of(tmp_path, imported, target_tag=">>eng<<")
    with pytest.raises(InputError, match=r"decode\.target_tag '>>eng<<' .* are >>deu<<, >>nld<<"):
        prepare(Run.at(tmp_path / "run", config), tasks.for_run(config))


@pytest.mark.parametrize(
    ("task", "source"),
    [
        *(("translation", "source"), ("parsing", "sentence"), ("classification", "")),
        *(("language_modeling", ""), ("masked_language_modeling", "")),
    ],
)
def test_the_source_of_a_task_is_a_text_beside_its_labels(task, source):
    assert tasks.for_run(Config(ModelConfig(), task=task)).source == source
