"""The metadata of a SavedModel in assets.extra/metadata.json, readable without the model."""

import datetime
import hashlib
import importlib
import json
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import tf_transformer
from tf_transformer import tasks
from tf_transformer.files.writing import write_whole
from tf_transformer.inference.dtypes import dtype_of
from tf_transformer.inference.predictor import Predictor
from tf_transformer.inference.saved_translator import METADATA
from tf_transformer.run.directions import directions_of
from tf_transformer.run.run import Run
from tf_transformer.run.weights import updates_of

PACKAGES = ("tensorflow", "keras", "tensorflow_text", "sentencepiece", "sacrebleu", "numpy")


def write(saved_model: pathlib.Path, facts: Mapping[str, Any]) -> None:
    """Writes facts into the folder assets.extra of a SavedModel, which servers ignore."""
    write_whole(saved_model / METADATA, json.dumps(facts, ensure_ascii=False, indent=2) + "\n")


def describe(run: Run, predictor: Predictor) -> dict[str, Any]:
    """The origin of a run's predictor and the options of its search.

    The facts by section are of JSON's types. The task adds facts.
    """
    config, task = run.config, tasks.for_run(run.config)
    model = predictor.model
    codec = predictor.codec
    tokenizers = {
        field: {
            "sha256": hashlib.sha256(tokenizer.model).hexdigest(),
            "vocabulary_size": tokenizer.vocabulary_size,
        }
        for field, tokenizer in codec.tokenizers.items()
    }
    facts: dict[str, Any] = {
        "tf_transformer": tf_transformer.__version__,
        "exported": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "task": config.task.name,
        "model": asdict(config.model)
        | {"parameters": model.count_params(), "dtype": dtype_of(model)},
        "tokenizer": (tokenizers[""] if codec.is_shared else tokenizers)
        | {key: getattr(config.data, key) for key in ("segmentation", "normalization")},
        "training": training(run, [x.name for x in task.metrics]),
        "decoding": asdict(predictor.config)
        | getattr(predictor, "own_options", {})
        | {"max_source_length": predictor.max_source_length},
        "packages": {name.replace("_", "-"): version(name) for name in PACKAGES},
    }
    if known := directions_of(run):
        facts["directions"] = known  # source, target, and the tag that chooses it
    if run.others:
        facts["ensemble"] = [asdict(member.config.model) for member in (run, *run.others)]
    for section, content in task.metadata(config).items():
        facts[section] = facts.get(section, {}) | content
    return facts


def version(package: str) -> str:
    """The `__version__` of a module or "unknown"; TensorFlow's distributions have many names."""
    try:
        return str(importlib.import_module(package).__version__)
    except (ImportError, AttributeError):
        return "unknown"


def training(run: Run, metrics: Sequence[str]) -> dict[str, Any]:
    """The checkpoints of the run's weights, and their last validation.

    A validation score belongs to one checkpoint and greedy search. It is usually lower than the
    score of the export. `metrics` are the names of the task's metrics.
    """
    updates = updates_of(run.folder, run.config.decode.average)
    rows = run.folder.load_metrics(updates[-1])
    facts = {
        "update": updates[-1],
        "averaged_updates": updates,
        "validation_loss": rows[-1]["val_loss"] if rows else None,
    }
    examples = run.config.train.valid_score_examples
    for metric in metrics:  # runs of earlier versions logged fewer metrics
        scored = next((row for row in reversed(rows) if f"val_{metric}" in row), None)
        facts |= {
            f"validation_{metric}": scored and scored[f"val_{metric}"],
            f"validation_{metric}_update": scored and scored["step"],
            f"validation_{metric}_sentences": examples if scored else None,
        }
    return facts
