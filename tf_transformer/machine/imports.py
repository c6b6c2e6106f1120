"""A fast import of TensorFlow and Keras, which a command waits for."""

import ctypes
import gc
import importlib
import mmap
import pathlib
import re
import sys

# TensorFlow and Keras import these packages if they are installed. Commands need neither for them.
# In the process of a translation, they take 140 MB and 0.8 s.
_OPTIONAL = ("IPython", "jax", "matplotlib", "pandas", "psutil", "scipy")
_OBJECTS = 100_000  # more than 700: an import makes objects that live on
# Of a mapped file that cannot be written: start, end, path, and the kB that were changed before.
_MAPPING = re.compile(r"^(\w+)-(\w+) r-.p .* (/.*)\n(?:.+:.*\n)*?Anonymous: +(\d+)", re.MULTILINE)


def import_tensorflow() -> None:
    """Imports TensorFlow and Keras, without optional packages that they would import.

    Later imports find these packages as usual. Python looks for unreachable objects less often.
    """
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    hidden = [name for name in _OPTIONAL if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: there is no such
    try:
        importlib.import_module("keras")
    finally:
        for name in hidden:
            del sys.modules[name]
    forget_pages_of("/tensorflow/")


def forget_pages_of(part: str) -> None:
    """Drops the pages of libraries with `part` in their path from the memory of this process.

    TensorFlow's libraries are read almost whole while they are loaded, for symbols, relocations and
    tables of operations: 300 MB, of which a translation needs 100. The kernel has the pages in its
    cache, and maps those that are used again. Only Linux can do this.
    """
    mappings = pathlib.Path("/proc/self/smaps")
    if not mappings.exists():
        return
    libc = ctypes.CDLL(None)
    for *places, path, changed in _MAPPING.findall(mappings.read_text("utf-8", "surrogateescape")):
        if part in path and changed == "0":  # changes would be lost
            start, end = (int(place, 16) for place in places)
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)
