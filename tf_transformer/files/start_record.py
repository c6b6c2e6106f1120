"""The record beside a partial output: what it depends on. Only the same work can resume it."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

from tf_transformer.errors import InputError
from tf_transformer.files.locks import FileLock

_NAME = "tf_transformer"  # a key of each record; its value is the version of the format
_VERSION = 1


class StartRecord:
    """The options of a piece of work, and hashes of the contents that it reads.

    The file `<output>.partial.json`, locked while the work writes, and removed at the end. A step
    of a pipeline keeps it beside its output, with the outcome.
    """

    def __init__(self, partial: pathlib.Path):
        self.path = partial.with_name(f"{partial.name}.json")
        self.options: dict[str, Any] = {}
        self.contents: dict[str, str] = {}  # by name, a text that identifies each content
        self._partial = partial
        self._lock: FileLock | None = None

    def exists(self) -> bool:
        """Whether an earlier start has left a complete record."""
        return self._read() is not None

    def require_same(self) -> None:
        """Raises an `InputError` if there is no record, or if the earlier start had another one."""
        stored = self._read()
        if stored is None:
            raise InputError(
                f"{self._partial} cannot be resumed: {self.path}, the record of its options and "
                "texts, is missing or broken. Move the file away and start again without --resume."
            )
        options, contents = json.loads(self._json())["options"], self.contents
        changed = [f"another {name}" for name in _changed(stored["contents"], contents)]
        for name in _changed(stored["options"], options):
            old, new = stored["options"].get(name), options.get(name)
            changed.append(f"{name} was {old!r}, now {new!r}")
        if changed:
            raise InputError(
                f"{self._partial} belongs to a start with another input, model or search: "
                f"{'; '.join(changed)}. Give the options of that start, or move it away."
            )

    def begin(self) -> None:
        """Locks and writes the record; an `InputError` if it cannot, or if the file is not one."""
        if self.path.is_file() and self.path.stat().st_size and not self.exists():
            raise InputError(
                f"{self.path} is not a record of this program, but its name is needed for one. "
                "Move the file away."
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.path)
        except BlockingIOError as error:
            raise InputError(
                f"another process is writing {self._partial}. Wait until it ends, or give another "
                "output."
            ) from error
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error}.") from error
        self._lock.write(self._json().encode())

    def end(self, remove: bool, outcome: Mapping[str, Any] | None = None) -> None:
        """Unlocks the record. `remove` says whether to remove it, if nothing is left to resume.

        The outcome of the work is stored, if there is one.
        """
        if self._lock:
            if outcome:
                self._lock.write(self._json(outcome).encode())
            self._lock.release(remove)

    @property
    def outcome(self) -> dict[str, Any]:
        """The outcome that an earlier start has stored; {} without one."""
        return (self._read() or {}).get("outcome", {})

    def _json(self, outcome: Mapping[str, Any] | None = None) -> str:
        record = {_NAME: _VERSION, "options": self.options, "contents": self.contents}
        record |= {"outcome": outcome} if outcome else {}
        return json.dumps(record, indent=1, default=str) + "\n"

    def _read(self) -> dict[str, Any] | None:
        try:
            record = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) and record.get(_NAME) == _VERSION else None


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [name for name in {**old, **new} if old.get(name) != new.get(name)]
