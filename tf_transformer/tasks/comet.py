"""COMET (Rei et al. 2022), a neural metric of translations that also reads the source."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tf_transformer.errors import InputError
from tf_transformer.tasks.metrics import References, Scores, Strings
from tf_transformer.text.normalization import is_blank


@dataclass(frozen=True)
class Comet:
    """The mean COMET score of translations, about 0 to 1.

    It needs the extra `comet`. The first use downloads the model, about 2 GB. A translation with
    several references is scored with its first reference.
    """

    model: str = "Unbabel/wmt22-comet-da"  # on Hugging Face
    batch_size: int = 8
    gpus: int = 0  # number of GPUs; 0: the CPU

    name = "comet"
    lower_is_better = False

    def score(self, inputs: Strings, predictions: Strings, references: References) -> Scores:
        if len(inputs) != len(predictions) or not predictions:
            raise InputError(
                "COMET needs at least one translation, and a source for each; got "
                f"{len(inputs)} sources and {len(predictions)} translations. Give --source."
            )
        rows = zip(inputs, predictions, map(_first, zip(*references, strict=True)), strict=True)
        data = [{"src": source, "mt": output, "ref": given} for source, output, given in rows]
        result = _load(self.model).predict(data, batch_size=self.batch_size, gpus=self.gpus)
        return {"comet": float(result.system_score), "comet_model": self.model}


COMET = Comet()


def _first(references: Sequence[str]) -> str:
    if given := [reference for reference in references if not is_blank(reference)]:
        return given[0]
    raise InputError(
        "COMET needs a reference for each translation, but a line has none. Fill the line in a "
        "file of references."
    )


@functools.cache  # validation scores many times
def _load(name: str) -> Any:
    try:
        from comet import download_model, load_from_checkpoint
    except ImportError as error:
        raise InputError(
            f"the metric comet needs the package unbabel-comet ({error}): "
            "pip install 'tf_transformer[comet]'"
        ) from error
    return load_from_checkpoint(download_model(name))
