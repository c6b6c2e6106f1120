"""Each option that changes translations is in the folder of an export, or named by its summary."""

import json
import pathlib
import shutil
from dataclasses import fields, replace
from unittest import mock

import pytest

from tf_transformer.config import DecodeConfig
from tf_transformer.config.option import Effect, options_in
from tf_transformer.config.task import TranslationOptions
from tf_transformer.errors import InputError
from tf_transformer.export import (
    standalone,
    to_ctranslate2,
    to_marian,
    to_marian_npz,
    to_onnx,
)
from tf_transformer.imports import marian_folder, marian_npz
from tf_transformer.inference.translator import Translator

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "marian"
BASE = DecodeConfig(beam_size=3, length_penalty=1.0, length_penalty_offset=0.0, max_extra_length=3)
# Another value of each option that changes translations.
VALUES = {
    **{"beam_size": 2, "length_penalty": 0.5, "max_source_length": 9},
    **{"length_penalty_offset": 5.0, "coverage_penalty": 0.2, "early_stopping": "never"},
    **{"max_length": 9, "max_length_ratio": 1.5, "max_extra_length": 4},
    **{"min_length": 2, "min_length_ratio": 0.5, "no_repeat_ngram_size": 3},
    **{"repetition_penalty": 1.2, "excluded_tokens": ("▁a",), "avoid_unknown": True},
    **{"target_tag": ">>nld<<", "punctuation": "opus", "sampling": True},
    **{"keep": ("common",), "split": "sentences", "second_search": True},
    **{"copy_without_letters": True, "lower_capitals": True},
}
# What a summary calls an option, if it does not name it.
WORDS = {"length_penalty_offset": "length penalty length^α", "early_stopping": "early_stopping"}
REFUSED = {
    "ctranslate2": ("coverage_penalty", "repetition_penalty", "sampling", "second_search"),
    "onnx": tuple(standalone.LACKING),
    "marian": (),
    "marian_npz": (),
}
FILES = ("generation_config.json", "tokenizer_config.json", "decoder.yml", "metadata.json")


@pytest.fixture(scope="module")
def translators(tmp_path_factory):
    """A model for each of Marian's formats."""
    root = tmp_path_factory.mktemp("models")
    made = {}
    for name, module in (("shared", marian_folder), ("npz", marian_npz)):
        folder = pathlib.Path(shutil.copytree(FIXTURES / name, root / name))
        for side in ("source", "target"):
            shutil.copy(FIXTURES / f"{side}.spm", folder)
        imported = module.read(folder)
        made[name] = Translator(imported.model, imported.codec, BASE)
    return made


def written(translator, format, folder):
    """The summary of an export, and the options in its folder."""
    if format == "ctranslate2":
        to_ctranslate2.write(translator, folder, "float32")
        summary = "; ".join(to_ctranslate2.notes(translator.config))
    elif format == "onnx":  # without its graphs, which take long, and are those of the run
        with mock.patch.object(to_onnx, "graphs_of", return_value={}):
            to_onnx.write(translator, folder, "float32")
        summary = ""
    else:
        summary = {"marian": to_marian, "marian_npz": to_marian_npz}[format].write(
            translator, folder
        )
    return summary, [(folder / x).read_text("utf-8") for x in FILES if (folder / x).is_file()]


def with_option(translator, name):
    if name in translator.own_options:
        return Translator(translator.model, translator.codec, BASE, **{name: VALUES[name]})
    config = replace(BASE, **{name: VALUES[name]})
    return Translator(translator.model, translator.codec, config)


def test_every_option_is_known():
    options = (*options_in(DecodeConfig), *options_in(TranslationOptions))
    assert {name for name, rules, _ in options if rules.off is not None} == {
        *(field.name for field in fields(DecodeConfig)),
        *("copy_without_letters", "lower_capitals"),  # of the task
    }
    silent = None, Effect.CHOICE, Effect.SPEED
    assert set(VALUES) == {name for name, rules, _ in options if rules.off not in silent}


@pytest.mark.parametrize("format", ["marian", "marian_npz", "ctranslate2", "onnx"])
@pytest.mark.parametrize("name", VALUES)
def test_an_option_is_in_the_folder_or_in_the_summary(translators, format, name, tmp_path):
    for package in {"ctranslate2": ["ctranslate2"], "onnx": to_onnx.PACKAGES}.get(format, []):
        pytest.importorskip(package)
    translator = translators["npz" if format == "marian_npz" else "shared"]
    if name == "target_tag" and not translator.codec["source"].tags:
        pytest.skip("this model has no tags")
    changed = with_option(translator, name)
    before = written(translator, format, tmp_path / "before")
    if name in REFUSED[format]:
        with pytest.raises(InputError, match=f"does not support decode.{name}="):
            written(changed, format, tmp_path / "after")
        return
    after = written(changed, format, tmp_path / "after")
    if before[1] == after[1]:
        assert before[0] != after[0]
        assert WORDS.get(name, name) in after[0] or format == "ctranslate2"


def test_values_that_change_nothing_are_not_named(translators, tmp_path):
    config = replace(BASE, max_length=8, max_extra_length=8)
    translator = Translator(translators["shared"].model, translators["shared"].codec, config)
    summary, _ = written(translator, "marian", tmp_path / "marian")
    assert summary == "7,978 parameters"


def test_transformers_does_not_move_spaces(translators, tmp_path):
    to_marian.write(translators["shared"], tmp_path)
    options = json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8"))
    assert options["clean_up_tokenization_spaces"] is False
