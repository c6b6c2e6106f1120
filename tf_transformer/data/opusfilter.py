"""The filters of a configuration of OpusFilter (Aulamo et al. 2020), as tests for pairs.

    steps:
    - type: filter
      parameters:
        inputs: [a.en, a.de]
        outputs: [b.en, b.de]
        filters:
        - LengthFilter: {max_length: 100}

The package OpusFilter, in the extra `opusfilter`, computes them. The files of the steps are neither
read nor written.
"""

import copy
import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import yaml

from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_whole

ENDINGS = (".yaml", ".yml")
FILTER, DUPLICATES = "filter", "remove_duplicates"  # the types of steps that are read
_PARAMETERS = {FILTER: {"inputs", "outputs", "filters"}, DUPLICATES: {"inputs", "outputs"}}


class Filter(NamedTuple):
    """A filter of a configuration, and where it stands."""

    path: str
    kind: str  # its class
    content: Mapping[str, Any]  # the class with its parameters, and perhaps its module
    folder: str  # of further files that it reads, such as models

    @property
    def name(self) -> str:
        """The class and its parameters, such as LengthFilter max_length 100, unit char."""
        parameters = ", ".join(f"{name} {x}" for name, x in self.content[self.kind].items())
        return f"{self.kind} {parameters}".strip()

    def start(self) -> Callable[[str, str], bool]:
        """Makes the test whether the filter rejects a pair; an `InputError` if it cannot.

        OpusFilter reads lines without white space at their ends.
        """
        if importlib.util.find_spec("opusfilter") is None:
            raise InputError(
                f"the filters of {self.path} need OpusFilter: pip install "
                "'tf_transformer[opusfilter]'."
            )
        from opusfilter.pipeline import FilterPipeline

        def rejects(source: str, target: str) -> bool:
            (score,) = made.score([(source.rstrip(), target.rstrip())])
            return not made.accept(score)

        try:
            content = [copy.deepcopy(dict(self.content))]  # OpusFilter changes it
            (made,) = FilterPipeline.from_config(content, self.folder).filters
            rejects("a", "a")  # some errors come with the first pair
        except Exception as error:  # each class has errors of its own
            raise InputError(f"{self.path}: OpusFilter cannot use {self.name}: {error}.") from error
        if made.kwargs:  # for OpusFilter a warning
            raise InputError(
                f"{self.path}: {self.name} has no parameter {min(made.kwargs)}. Check its name."
            )
        return rejects


def read(path: str) -> tuple[bool, list[Filter]]:
    """Whether a configuration removes duplicates, and its filters, in order.

    A step that does anything else is an `InputError`.
    """
    filters, before = [], None
    try:
        content = yaml.safe_load(read_whole(path))
        folder = (content.get("common") or {}).get("output_directory", "")
        steps = [(step["type"], step["parameters"]) for step in content["steps"]]
        for number, (kind, parameters) in enumerate(steps, 1):
            _require_known(f"{path}: step {number}", kind, parameters, before)
            before = parameters["outputs"]
            for given in parameters.get("filters", ()):
                (name,) = given.keys() - {"module"}
                filters.append(Filter(path, name, {**given, name: {**given[name]}}, folder))
    except InputError:
        raise
    except (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: expected a configuration of OpusFilter, in which each step has a type and "
            f"parameters, each filter has parameters, and no value is a variable: {error}."
        ) from error
    return any(kind == DUPLICATES for kind, _ in steps), filters


def _require_known(step: str, kind: str, parameters: Mapping[str, Any], before: Any) -> None:
    """Raises an `InputError` for a step that does more than to leave out pairs of one text."""
    if kind not in _PARAMETERS:
        raise InputError(
            f"{step} is of the type {kind}. data.clean reads steps of the types {FILTER} and "
            f"{DUPLICATES}. Run the other steps with OpusFilter, and leave them out of the file."
        )
    if unknown := parameters.keys() - _PARAMETERS[kind]:
        raise InputError(f"{step} has the parameter {min(unknown)}. data.clean cannot do this.")
    inputs = parameters["inputs"]
    if not isinstance(inputs, list) or len(inputs) != 2 or before not in (None, inputs):
        raise InputError(
            f"{step} must have two inputs, the source and the target: those of the first step, or "
            f"the outputs of the step before. Got {inputs!r:.80}."
        )


def version() -> str:
    """The version of OpusFilter."""
    return importlib.metadata.version("opusfilter")
