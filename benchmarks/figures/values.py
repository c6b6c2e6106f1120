"""Single numbers of results, as text for the middle of a sentence.

A name is that of a result file, followed by what selects a number in it, with dots between:

- an entry of its circumstances or its summary: `multi30k.date`, `contract.sentences`;
- the key fields of a row and the field wanted, as in
  `decode.base.savedmodel.beam4.batch1.tokens_per_second`. A number follows the name of its field, a
  flag is the name of its field or no_ and it (`remat.no_remat.seconds`), and in texts all
  characters but letters and digits become _.
"""

import functools
import re
from typing import Any

from benchmarks.harness.results import read, result_names
from benchmarks.harness.tables import formatted

# The fields that tell the rows of a result file apart: measurements, or another table of the file.
KEY_FIELDS: dict[str, tuple[str, ...]] = {
    "ablations": ("row", "change"),
    "agreement": ("form",),
    "alignments": ("layer", "pairs"),
    "data_memory": ("pairs",),
    "decode": ("shape", "system", "beam", "batch"),
    "decode_intel": ("shape", "system", "beam", "batch"),
    "decode_avx2": ("shape", "system", "beam", "batch"),
    "decode_lengths": ("beam", "target_tokens"),
    "decode_other_systems": ("shape", "system", "beam", "batch"),
    "experiments": ("id",),
    "forced_choices": ("choice",),
    "heads.pruned": ("removed",),
    "language_models": ("system",),
    "layer_complexity.fitted": ("layer", "size"),
    "long_sequences": ("attention", "length"),
    "parsing": ("system",),
    "positions": ("model", "source_tokens"),
    "positions_short": ("model", "source_tokens"),
    "pretraining": ("labels", "pretrained"),
    "real_text": ("system",),
    "real_text_avx2": ("system",),
    "real_text_base": ("system",),
    "real_text_intel": ("system",),
    "recurrent": ("model", "source_tokens"),
    "reduction": ("part",),
    "regularization": ("row", "change"),
    "remat": ("remat",),
    "scaling": ("part",),
    "serving_load": ("clients",),
    "text_forms": ("form",),
    "train_avx2": ("shape", "system"),
    "train_base": ("system",),
    "train_intel": ("shape", "system"),
    "train_base_other_systems": ("system",),
    "train_text": ("system",),
    "train_tiny": ("system",),
    "variants": ("variant",),
    "whole_run": ("part",),
} | dict.fromkeys(  # of benchmarks.translations.scores
    (name for name in result_names() if name.startswith("multi30k")),
    ("average", "dtype", "beam"),
)


def value(name: str) -> str:
    """The text for a name.

    Raises:
        KeyError: when there is no such number.
    """
    result, _, key = name.partition(".")
    return values(result)[key]


@functools.cache
def values(result: str) -> dict[str, str]:
    """All values of a result file, by their keys.

    Raises:
        KeyError: when there is no such file.
    """
    if result not in result_names():
        raise KeyError(result)
    found = read(result)
    texts = {"machine": machine(found), "date": found["date"], "command": found["command"]}
    texts |= {key: formatted(key, number) for key, number in found.get("summary", {}).items()}
    tables = {result: found["measurements"]}
    tables |= {f"{result}.{name}": rows for name, rows in found.items()}
    for table, fields in KEY_FIELDS.items():
        for row in tables.get(table, ()):
            place = f"{table}.{place_of(table, row)}".removeprefix(f"{result}.")
            texts |= {
                f"{place}.{_selector('', field)}": formatted(field, entry)
                for field, entry in row.items()
                if field not in fields and isinstance(entry, int | float | str)
            }
    return texts


def machine(result: dict[str, Any]) -> str:
    """The machine of a result, in words."""
    found = result["machine"]
    count = f"{found['cores']} core{'s' * (found['cores'] > 1)}"
    return f"{count} of an {found['processor']} with {found['instruction_set']}"


def place_of(table: str, row: dict[str, Any]) -> str:
    """The key fields that select a row of a table."""
    return ".".join(_selector(field, row[field]) for field in KEY_FIELDS[table])


def _selector(field: str, entry: Any) -> str:
    if isinstance(entry, bool):
        return field if entry else f"no_{field}"
    if isinstance(entry, int):
        return f"{field}{entry}"
    return re.sub(r"[^a-z0-9]+", "_", entry.lower()).strip("_")
