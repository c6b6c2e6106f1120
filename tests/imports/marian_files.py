"""Folders of Marian's files, and a writer of binary files by the description in its sources."""

import pathlib
import shutil
import struct

import numpy as np

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "marian"
# Numbers of the types: in browsermt's fork, whose models Firefox has, and in Marian 1.12.
FIREFOX, MARIAN = {"i1": 0x4101, "i2": 0x4102}, {"i1": 0x10001, "i2": 0x10002}
FLOAT32, INT8 = 0x0404, 0x0101


def folder_at(to, name="npz"):
    """A copy of a stored folder, with its vocabularies."""
    folder = pathlib.Path(shutil.copytree(FIXTURES / name, to))
    for side in ("source", "target"):
        shutil.copy(FIXTURES / f"{side}.spm", folder)
    return folder


def edit_text(name, old, new):
    """A change of a file of a folder."""

    def edit(folder):
        text = (folder / name).read_text("utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), "utf-8")

    return edit


def quantized(array: np.ndarray, kind: str, by_columns: bool) -> bytes:
    """The integers of a matrix, and the factor by which it was multiplied."""
    factor = np.float32(127.0 / np.abs(array).max() if kind == "i1" else 1024.0)
    largest = np.iinfo(kind).max
    integers = np.clip(np.rint(array * factor), -largest, largest).astype(f"<{kind}")
    return (integers.T if by_columns else integers).tobytes() + struct.pack("<f", factor)


def item(name: str, array: np.ndarray, kind: str, types: dict[str, int]) -> tuple[int, bytes]:
    """The type and the data of an array; see `write`."""
    if array.dtype == np.int8:
        return INT8, array.tobytes()
    is_embedding, is_matrix = name.endswith("Wemb"), "_W" in name[-3:]
    # Marian itself keeps embeddings as they are.
    if kind and (is_matrix or (is_embedding and types is FIREFOX)):
        return types[kind], quantized(array, kind, by_columns=not is_embedding)
    return FLOAT32, array.astype("<f4").tobytes()


def write(
    path: pathlib.Path,
    arrays: dict[str, np.ndarray],
    kind: str = "",
    types: dict[str, int] = FIREFOX,
) -> None:
    """Writes arrays; matrices become integers of a kind, i1 or i2, and the others float32."""
    items = {name: item(name, array, kind, types) for name, array in sorted(arrays.items())}
    content = struct.pack("<2Q", 1, len(items))
    padded = {name: data + bytes(-len(data) % 256) for name, (_, data) in items.items()}
    for name, (type_, _) in items.items():
        sizes = len(name) + 1, type_, arrays[name].ndim, len(padded[name])
        content += struct.pack("<4Q", *sizes)
    for name in items:
        content += name.encode() + b"\0"
    for name in items:
        content += np.array(arrays[name].shape, "<i4").tobytes()
    gap = ((len(content) + 8) // 256 + 1) * 256 - len(content) - 8
    content += struct.pack("<Q", gap) + bytes(gap) + b"".join(padded.values())
    path.write_bytes(content)
