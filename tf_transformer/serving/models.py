"""The models behind a server: a run, a SavedModel or a model on another server."""

import contextlib
import functools
import json
import os
import pathlib
import re
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_lines
from tf_transformer.inference.attention_record import join_pieces
from tf_transformer.inference.inputs import WITH_INPUTS, Input, inputs_in
from tf_transformer.inference.notices import UNSEEN_WORDS, WARNINGS
from tf_transformer.inference.predictor import NBest, Prediction, predictions_of, with_unseen
from tf_transformer.inference.saved_translator import SavedTranslator
from tf_transformer.inference.text_predictor import TextPredictor
from tf_transformer.inference.word_probabilities import WORD_PROBABILITIES
from tf_transformer.run.run import Run, direction_of
from tf_transformer.tasks import load_predictor
from tf_transformer.text.kept_spans import COMMON

CARD = "README.md"  # in the folder of a run
CACHED_SEARCHES = 8  # each is a traced graph
TIMEOUT = 60.0  # seconds to wait for an answer of a server
Options = tuple[tuple[str, float | str], ...]
"""Names and values of controls that differ from their defaults, and of fields that have a text."""


class Control(NamedTuple):
    """An option of the search with a slider."""

    label: str
    default: float
    lowest: float
    highest: float
    step: float


class Field(NamedTuple):
    """An input beside each text, with a field for text or a choice of values."""

    label: str
    plural: str  # the argument of a predictor
    choices: Sequence[str]  # (): any text
    has_lines: bool = False  # whether a text may have several lines


def fields_of(inputs: Iterable[Input], codec: Any = None) -> dict[str, Field]:
    """The fields of inputs by name. Without a codec, a choice is a field for text."""
    choices = {x.name: sorted(x.choices(codec)) if codec and x.choices else () for x in inputs}
    return {
        x.name: Field(x.label or x.name, x.plural, choices[x.name], x.has_lines) for x in inputs
    }


@dataclass(frozen=True, eq=False)
class VariableConfig(DecodeConfig):
    """Options with variables, which have no hash; an object is equal only to itself."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __post_init__(self) -> None:
        """Checks nothing: the run's options have been checked, and controls have ranges."""


class TextModel(ABC):
    """A model behind a server, from texts to predictions; by default from texts alone."""

    name: str  # for users
    languages: Sequence[str] = ()  # codes of source and target, like en and de; (): unknown
    limits: str = ""  # what the model is not good at, in one line; "": nothing is known
    controls: Mapping[str, Control] = {}  # the controls of the search by name
    fields: Mapping[str, Field] = {}  # the fields of inputs beside each text by name
    samples: Sequence[str] = ()  # inputs to try
    example: str = "a"  # an input for the first call, which traces the graphs
    can_align: bool = False  # whether `align` works
    keeps_tags: bool = True  # whether translations have the tags of their texts, as far as is known

    @abstractmethod
    def n_best(self, texts: Sequence[str], options: Options) -> NBest:
        """The predictions for each text; an `InputError` when the model cannot be reached."""

    def n_best_of_document(self, texts: Sequence[str], options: Options) -> NBest:
        """The same for texts of a document, with their sentences and tags if the model can."""
        return self.n_best(texts, options)

    def align(
        self, pairs: Sequence[tuple[str, str]], options: Options = ()
    ) -> list[list[list[float]]]:
        """The attention weights between words for each pair of a text and a prediction.

        Rows are words of the prediction, and columns words of the text; see `join_pieces`. The end
        tokens are left out.
        """
        raise InputError(f"{self.name} gives no attention weights. Give --run_dir.")

    def inputs(self, options: Options, count: int) -> dict[str, Any]:
        """The arguments of a predictor for `count` texts that have the values of the fields."""
        return {
            self.fields[name].plural: [value] * count
            for name, value in options
            if name in self.fields
        }


def has_tags(keep: Sequence[str]) -> bool:
    """Whether the spans that a translation keeps, as in `DecodeConfig.keep`, include tags."""
    return not {COMMON, "tags"}.isdisjoint(keep)


class RunModel(TextModel):
    """A run of any task. Runs with a search have controls. Translators also align words."""

    def __init__(self, run: Run, dtype: str = "float32"):
        folder = run.folder
        self.name = os.path.basename(os.path.abspath(folder.path))
        self.languages = direction_of(run.config)
        self.limits = first_limit(folder.path / CARD)
        texts = folder.load_samples() if folder.samples.is_file() else []
        self.samples = [text for text in texts if 20 < len(text) < 80][:3]
        self._predictor: Any = load_predictor(run, dtype)
        self._document_options = run.document_options()
        self.can_align = hasattr(self._predictor, "align")
        self.keeps_tags = has_tags(self._predictor.config.keep)
        self.example = "\t".join("a" * getattr(self._predictor.model, "texts", 1))
        self.fields = fields_of(self._predictor.optional_inputs, self._predictor.codec)
        if isinstance(self._predictor, TextPredictor):
            config = self._predictor.config
            beam, penalty = config.beam_size, config.length_penalty
            heat = config.temperature if config.sampling else 0  # 0: no sampling
            self.controls = {
                "beam_size": Control("Beam size", beam, 1, max(10, beam), 1),
                "length_penalty": Control("Length penalty", penalty, 0, max(2, penalty), 0.1),
                "temperature": Control("Temperature (0: no sampling)", heat, 0, max(2, heat), 0.1),
            }
        self._length_penalty, self._temperature = tf.Variable(0.0), tf.Variable(1.0)
        self._searching = functools.lru_cache(CACHED_SEARCHES)(self._with_search)

    def n_best(self, texts: Sequence[str], options: Options) -> NBest:
        return self._n_best(texts, options)

    def n_best_of_document(self, texts: Sequence[str], options: Options) -> NBest:
        return self._n_best(texts, options, **self._document_options)

    def _n_best(self, texts: Sequence[str], options: Options, **others: Any) -> NBest:
        """The predictions with values of controls and other options of the search."""
        if not self.controls:
            return self._predictor.n_best(texts)
        given = dict(options)
        values = {x: float(given.get(x, control.default)) for x, control in self.controls.items()}
        temperature = values["temperature"]
        self._length_penalty.assign(values["length_penalty"])
        self._temperature.assign(temperature or 1.0)
        searching = self._searching(int(values["beam_size"]), temperature > 0, **others)
        return searching.n_best(texts, **self.inputs(options, len(texts)))

    def align(
        self, pairs: Sequence[tuple[str, str]], options: Options = ()
    ) -> list[list[list[float]]]:
        texts, predictions = zip(*pairs, strict=True)
        joined = self._predictor.joined(texts, **self.inputs(options, len(texts)))
        aligned = self._predictor.align(joined, predictions)
        matrices = []
        for text, whole, (source, target, weights) in zip(texts, joined, aligned, strict=True):
            first = len(whole.split()) - len(text.split())  # a tag is no word of the text
            matrix = join_pieces(weights, target, source)[:-1, first:-1]
            matrices.append(matrix.round(3).tolist())
        return matrices

    def _with_search(self, beam_size: int, sampling: bool, **others: Any) -> TextPredictor:
        """The predictor that returns all hypotheses of its beam, with other options of the search.

        Length penalty and temperature are variables of its graphs. A new value thus needs no new
        graph, which would take seconds to trace.
        """
        predictor = self._predictor
        options = {
            "beam_size": beam_size,
            "num_hypotheses": beam_size,
            "length_penalty": self._length_penalty,
            "sampling": sampling,
            "temperature": self._temperature,
            **others,
        }
        config = VariableConfig(**vars(predictor.config) | options)
        return predictor.like(predictor.model, config)


def first_limit(card: pathlib.Path) -> str:
    """The first item of the list under "## Limits" in the card of a run; "" without one."""
    if not card.is_file():
        return ""
    text = "\n".join(line.decode() for line in read_lines(card))
    found = re.search(r"^## Limits\n+- (.+(?:\n  .+)*)", text, re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


class SavedModel(TextModel):
    """An exported translator, with the search of the export, in a folder like served/x/1."""

    def __init__(self, path: str | os.PathLike):
        self.name = str(path)
        self._translator = SavedTranslator(path)
        languages = self._translator.metadata.get("languages", {}).values()
        self.languages = tuple(languages) if languages and all(languages) else ()
        self.keeps_tags = has_tags(self._translator.metadata.get("decoding", {}).get("keep", ()))
        self.fields = fields_of(self._translator.optional_inputs)

    def n_best(self, texts: Sequence[str], options: Options) -> NBest:
        return self._translator.n_best(texts, **self.inputs(options, len(texts)))


class ServedModel(TextModel):
    """A model with a name on TF Serving, over its REST interface at host:port."""

    def __init__(self, server: str, model: str):
        self.name = f"{model} on {server}"
        self._url = f"http://{server}/v1/models/{model}"
        self._answer(self._url)
        self.fields = fields_of(self._inputs())

    def _inputs(self) -> list[Input]:
        """The inputs of the signature with all inputs; none in exports of earlier versions."""
        with contextlib.suppress(InputError, LookupError, TypeError):
            metadata = self._answer(f"{self._url}/metadata")["metadata"]
            signatures = metadata["signature_def"]["signature_def"]
            return inputs_in(signatures[WITH_INPUTS["n_best"]]["inputs"])
        return []

    def n_best(self, texts: Sequence[str], options: Options) -> NBest:
        given: dict[str, Any] = {**dict.fromkeys(self.fields, ""), **dict(options)}
        signature = WITH_INPUTS["n_best"] if options else "n_best"
        instances = [{"text": text} | (given if options else {}) for text in texts]
        content = {"signature_name": signature, "instances": instances}
        rows = self._answer(f"{self._url}:predict", content).get("predictions")
        if not isinstance(rows, list) or len(rows) != len(texts):
            raise InputError(
                f"expected {len(texts)} predictions from {self._url}, got {rows!r:.80}."
            )
        return list(map(_predictions, rows))

    def _answer(self, url: str, content: Any = None) -> dict[str, Any]:
        body = None if content is None else json.dumps(content).encode("ascii")
        try:
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                return json.loads(response.read().decode("utf-8", "replace"))
        except urllib.error.HTTPError as error:
            text = " ".join(error.read().decode("utf-8", "replace").split())
            raise InputError(f"{url} answered {error.code}: {text}") from error
        except (OSError, ValueError) as error:
            raise InputError(
                f"no answer from {url}: {error}. Check that the server runs, and that this is its "
                "REST port."
            ) from error


def _predictions(row: dict[str, Any]) -> list[Prediction]:
    """The predictions in an answer of the signature `n_best`, without its empty places."""
    cut = row.get("cut", False)  # missing in exports of earlier versions
    parts = row.get("parts", 1)  # missing if texts are not divided
    strings = {name: row[name] for name in (WARNINGS, WORD_PROBABILITIES) if name in row}
    others = {"cut", "truncated", "scores", "parts", UNSEEN_WORDS, *strings}
    (texts,) = (row[name] for name in row.keys() - others)
    at_limit = row["truncated"] and not cut
    found = predictions_of(texts, row["scores"], cut, at_limit, parts=parts, **strings)
    return with_unseen([found], [row.get(UNSEEN_WORDS, "")])[0]
