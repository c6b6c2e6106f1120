"""What a SavedModel says of itself, readable without loading it: assets.extra/metadata.json."""

import datetime
import hashlib
import importlib.metadata
import json
import pathlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import tf_transformer
from tf_transformer.config import Config, DataConfig
from tf_transformer.files import write_whole
from tf_transformer.run_folder import RunFolder
from tf_transformer.saved_translator import METADATA
from tf_transformer.tasks.translation import TRANSLATION
from tf_transformer.weights import updates_of

if TYPE_CHECKING:
    from tf_transformer.translator import Translator

PACKAGES = ("tensorflow", "keras", "tensorflow-text", "sentencepiece", "sacrebleu", "numpy")


def write(saved_model: pathlib.Path, facts: dict[str, Any]) -> None:
    """Puts the facts into a SavedModel; servers pass over that folder."""
    write_whole(saved_model / METADATA, json.dumps(facts, ensure_ascii=False, indent=2) + "\n")


def describe(run_dir: pathlib.Path, translator: "Translator") -> dict[str, Any]:
    """Where a translator comes from and how it translates.

    Args:
        run_dir: the run's folder.
        translator: the translator, with the options it is exported with.

    Returns:
        what JSON can hold. Languages that the run does not name are null.
    """
    config = RunFolder(run_dir).load_config()
    tokenizer, model = translator.tokenizer, translator.model
    return {
        "tf_transformer": tf_transformer.__version__,
        "exported": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "languages": languages(config.data),
        "model": asdict(config.model)
        | {"parameters": model.count_params(), "dtype": model.compute_dtype},
        "tokenizer": {
            "sha256": hashlib.sha256(tokenizer.model).hexdigest(),
            "vocabulary_size": tokenizer.vocabulary_size,
            "normalization": config.data.normalization,
        },
        "training": training(run_dir, config, translator),
        "decoding": asdict(translator.config) | {"max_source_length": translator.max_source_length},
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def training(run_dir: pathlib.Path, config: Config, translator: "Translator") -> dict[str, Any]:
    """Which checkpoints the weights come from, and the last validation before they were saved."""
    updates = updates_of(run_dir, translator.config.average)
    before = RunFolder(run_dir).load_metrics(updates[-1])
    scored = [row for row in before if "val_bleu" in row][-1:]
    return {
        "update": updates[-1],
        "averaged_updates": updates,
        "validation_loss": before[-1]["val_loss"] if before else None,
        # Of one checkpoint, translated greedily while training: lower than what is exported gets.
        "validation_bleu": scored[0]["val_bleu"] if scored else None,
        "validation_bleu_update": scored[0]["step"] if scored else None,
        "validation_bleu_sentences": config.train.valid_score_examples if scored else None,
        "bleu_signature": TRANSLATION.score(["."], ["."])["signature"],
    }


def languages(data: DataConfig) -> dict[str, str | None]:
    """The languages a run translates between, as far as its configuration tells.

    TFDS names them in the corpus (`wmt14_translate/de-en`), files often by their ending (`a.en`).
    """
    if data.train_source:
        found = [_ending(data.train_source), _ending(data.train_target)]
    elif data.tfds:
        pair = data.tfds.partition("/")[2].partition(":")[0].split("-")
        found = list(pair) if len(pair) == 2 else [None, None]
        if data.tfds_reverse:
            found.reverse()
    else:
        found = [data.source_language, data.target_language]
    return dict(zip(("source", "target"), found, strict=True))


def _ending(file: str) -> str | None:
    ending = pathlib.Path(file.removesuffix(".gz")).suffix[1:]
    return ending if len(ending) == 2 and ending.isalpha() else None
