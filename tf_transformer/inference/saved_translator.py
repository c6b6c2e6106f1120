"""Loads an exported translator into Python."""

import json
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import local_path
from tf_transformer.files.reading import literal
from tf_transformer.inference.inputs import WITH_INPUTS, Input, as_texts, columns_of, inputs_in
from tf_transformer.inference.notices import UNSEEN_WORDS, WARNINGS
from tf_transformer.inference.predictor import (
    NBest,
    PairScore,
    Prediction,
    predictions_of,
    with_unseen,
)
from tf_transformer.inference.word_probabilities import WORD_PROBABILITIES
from tf_transformer.machine.threads import require_threads
from tf_transformer.text.graph_tokenizer import as_strings
from tf_transformer.text.sentencepiece_ops import sentencepiece_ops

METADATA = pathlib.PurePath("assets.extra", "metadata.json")
SIGNATURES = ("serving_default", "n_best", "score")
Translation = Prediction


class SavedTranslator:
    """Translates lists of strings with a SavedModel from `python -m export`.

    The export fixes the options of the search; `metadata` lists them. Lists may have any length:
    the model splits them into micro-batches.

    Args:
        path: the folder of one version, like served/x/1.

    Raises:
        InputError: when the folder has no SavedModel, a file is broken or missing, or a signature
            is missing.

    Example:
        >>> translator = SavedTranslator("served/demo/1")
        >>> translator(["twenty-one"])[0].text
        'einundzwanzig'
    """

    def __init__(self, path: str | os.PathLike):
        require_threads()
        sentencepiece_ops()  # the graph has them
        self._path = pathlib.Path(local_path(os.fspath(path), "path"))
        if not (self._path / "saved_model.pb").is_file():
            raise InputError(
                f"{path} is not a SavedModel: it has no saved_model.pb. Give the folder of a "
                "version, like served/x/1, from python -m export."
            )
        try:
            self._model = tf.saved_model.load(literal(self._path))  # holds the variables
        except (tf.errors.OpError, OSError, LookupError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"the SavedModel {path} is broken: {reason:.300}. Copy it again, or export the run "
                "again."
            ) from error
        if missing := set(SIGNATURES) - set(self._model.signatures):
            raise InputError(
                f"{path} has no signature {', '.join(sorted(missing))}. Export it again with this "
                "version of the project."
            )

    @property
    def metadata(self) -> dict[str, Any]:
        """The origin of the model and the options of its search; empty without metadata."""
        path = self._path / METADATA
        return json.loads(path.read_text("utf-8")) if path.is_file() else {}

    @property
    def optional_inputs(self) -> list[Input]:
        """The texts that may be given beside each text; none in exports of earlier versions."""
        endpoint = self._model.signatures.get(WITH_INPUTS["n_best"])
        return inputs_in(endpoint.structured_input_signature[1]) if endpoint else []

    def __call__(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        **inputs: Sequence[str] | None,
    ) -> list[Prediction]:
        """The translation of each text; arguments and errors are those of a `Predictor`."""
        return [row[0] for row in self._rows("serving_default", texts, prefixes, inputs)]

    def n_best(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        **inputs: Sequence[str] | None,
    ) -> list[list[Prediction]]:
        """The translations of each text, best first; at least one."""
        return self._rows("n_best", texts, prefixes, inputs)

    def score(self, texts: Sequence[str], translations: Sequence[str]) -> list[PairScore]:
        """The model's score of a given translation of each text."""
        texts = as_texts(texts)
        translations = as_texts(translations, "translations", texts)
        outputs = self._call("score", source=texts, target=translations)
        pairs = zip(outputs["score"], outputs["log_probability"], outputs["truncated"], strict=True)
        return [PairScore(float(score), float(total), bool(cut)) for score, total, cut in pairs]

    def _rows(
        self, signature: str, texts: Sequence[str], prefixes: Any, inputs: Mapping[str, Any]
    ) -> NBest:
        """Calls a signature with texts alone, or the one with all inputs if any is given."""
        texts = as_texts(texts)
        columns = columns_of(self.optional_inputs, texts, {"prefixes": prefixes, **inputs})
        outputs = self._call(
            WITH_INPUTS[signature] if columns else signature, text=texts, **columns
        )
        if signature == "n_best":
            fields = [outputs["translations"], outputs["scores"]]
        else:
            fields = [outputs["translation"][:, None], outputs["score"][:, None]]
        # Exports of earlier versions do not distinguish both flags. A cut text has no second flag.
        truncated = outputs["truncated"]
        cut = outputs.get("cut", np.zeros_like(truncated))
        parts = outputs.get("parts", np.ones_like(cut, int)).tolist()  # with `DecodeConfig.split`
        fields += [cut, truncated & ~cut, np.zeros_like(cut), parts]
        strings = {  # missing in exports of earlier versions, or without the option
            name: outputs[name].reshape(fields[0].shape)
            for name in (WORD_PROBABILITIES, WARNINGS)
            if name in outputs
        }
        rows = [
            predictions_of(*row, **{name: strings[name][i] for name in strings})
            for i, row in enumerate(zip(*fields, strict=True))
        ]
        return with_unseen(rows, outputs.get(UNSEEN_WORDS, ()))

    def _call(self, signature: str, **texts: Sequence[str]) -> Mapping[str, Any]:
        inputs = {name: as_strings(strings) for name, strings in texts.items()}
        try:
            outputs = self._model.signatures[signature](**inputs)
        except tf.errors.InvalidArgumentError as error:
            # The graph refuses texts by assertions, such as that of an unknown language.
            if not (refused := re.search("assertion failed: (.*)", error.message)):
                raise
            raise InputError(f"{self._path}: {refused[1]}") from error
        return {name: output.numpy() for name, output in outputs.items()}
