"""Translations for the requests of all APIs: one model, one queue, limits, keys and metrics."""

import contextlib
import itertools
import secrets
from collections.abc import AsyncIterator, Collection, Sequence
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from tf_transformer.files.writing import one_line
from tf_transformer.inference.inputs import LANGUAGE, TERMS
from tf_transformer.inference.predictor import Prediction
from tf_transformer.run.directions import Direction
from tf_transformer.serving.batches import Batches
from tf_transformer.serving.formats import KEEP_TAGS, Divided, Format, lines_of
from tf_transformer.serving.languages import is_named, short
from tf_transformer.serving.metrics import Metrics
from tf_transformer.serving.models import TextModel
from tf_transformer.serving.requests import Limits, require, run, shown
from tf_transformer.text.normalization import well_formed

CALL = 128  # parts of a text that are queued at once; other requests come between


class Translation(NamedTuple):
    """The translations of a text."""

    texts: list[str]  # best first, each once
    complete: bool  # no part of the best one was cut or ends at its length limit


class Translations:
    """Translates the texts of requests with one model.

    Args:
        model: the model.
        directions: the directions that requests may choose, at least one.
        limits: limits of requests.
        capacity: number of lines of text that may wait.
        keys: keys of which a request must have one; empty: requests need none.
    """

    def __init__(
        self,
        model: TextModel,
        directions: Sequence[Direction],
        limits: Limits,
        capacity: int = 2048,
        keys: Collection[str] = (),
    ):
        self.model, self.limits, self._keys = model, limits, keys
        self.directions = [
            Direction(short(source), short(target), tag) for source, target, tag in directions
        ]
        self.batches = Batches(capacity=capacity)
        self.character_count = 0  # of all texts
        self.metrics = Metrics(lambda: self.batches.queued)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Runs the queue."""
        async with self.batches:
            yield

    @property
    def needs_key(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._keys)

    @property
    def sources(self) -> list[str]:
        """The codes of the source languages."""
        return list(dict.fromkeys(direction.source for direction in self.directions))

    @property
    def targets(self) -> list[str]:
        """The codes of the target languages."""
        return list(dict.fromkeys(direction.target for direction in self.directions))

    def direction(
        self, source: object, target: object, names: Sequence[str] = ("source", "target")
    ) -> Direction:
        """The direction that codes name; refuses others. The source None is any source.

        `names` are those of both codes in the request.
        """
        given = (source, target)
        for name, code, known in zip(names, given, (self.sources, self.targets), strict=True):
            is_known = code is None or any(is_named(x, code) for x in known)
            listed = ", ".join(known)
            require(is_known, f"{shown(code)} is not supported as {name}; this model has {listed}.")
        for direction in self.directions:
            pairs = zip(direction, given, strict=False)
            if all(code is None or is_named(known, code) for known, code in pairs):
                return direction
        message = f"This model does not translate from {shown(source)} to {shown(target)}."
        raise HTTPException(400, message)

    @property
    def takes_terms(self) -> bool:
        """Whether the model takes terms: phrases with translations that they must get."""
        return TERMS.name in self.model.fields

    def require_key(self, given: object, status: int) -> None:
        """Refuses a request with a key that is not known, if requests need one."""
        key = well_formed(given).encode() if isinstance(given, str) else b""
        are_equal = [secrets.compare_digest(key, known.encode()) for known in self._keys]
        require(any(are_equal) or not self.needs_key, "The API key is missing or wrong.", status)

    async def __call__(
        self,
        texts: Sequence[str],
        direction: Direction,
        form: Format = lines_of,
        count: int = 1,
        terms: str = "",
    ) -> list[Translation]:
        """The translations of texts in a format, at most `count` of each, part by part.

        A model that keeps no tags cannot translate markup. `terms` are lines of a phrase, a tab and
        its translation.
        """
        message = f"This translator keeps no tags. {KEEP_TAGS}"
        require(form is lines_of or self.model.keeps_tags, message)
        given = {LANGUAGE.name: direction.tag, TERMS.name: terms}
        options = tuple((name, value) for name, value in given.items() if value)
        divided = list(map(form, texts))
        parts = [part for text in divided for part in text.parts]
        most = self.batches.capacity
        message = f"The texts have {len(parts):,} lines; at most {most:,} are allowed."
        require(len(parts) <= most, message, status=413)
        characters = sum(map(len, texts))
        self.character_count += characters
        self.metrics.texts.inc(len(texts))
        self.metrics.characters.inc(characters)
        rows: list[list[Prediction]] = []
        for start in range(0, len(parts), CALL):
            called = parts[start : start + CALL]
            rows += await run(self.batches, self.model.n_best, called, options)
        remaining = iter(rows)
        return [
            _joined(text, list(itertools.islice(remaining, len(text.parts))), count)
            for text in divided
        ]


def _joined(text: Divided, rows: Sequence[Sequence[Prediction]], count: int) -> Translation:
    """The translations of a text from those of its parts: the k-th has the k-th of each part."""
    texts = []
    for rank in range(min(count, max(map(len, rows), default=1))):
        best = [one_line(row[min(rank, len(row) - 1)].text) for row in rows]
        texts.append(text.join(best))
    return Translation(list(dict.fromkeys(texts)), not any(row[0].truncated for row in rows))
