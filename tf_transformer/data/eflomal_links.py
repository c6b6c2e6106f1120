"""The word alignments of a whole corpus by eflomal, which knows no model of ours.

eflomal (Östling and Tiedemann 2016) learns from the corpus alone, in both directions. Their links
are joined by grow-diag-final-and (Koehn et al. 2003), which NLTK has. Both are in the extra
`align`.
"""

import pathlib
import re
import tempfile
from collections.abc import Sequence

from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_texts
from tf_transformer.text.normalization import clean
from tf_transformer.text.word_alignment import Link

_MARKS = re.compile(r"^[\W_]+|[\W_]+$")


def eflomal_links(sources: Sequence[str], targets: Sequence[str]) -> list[list[Link]]:
    """The links between the words of `str.split()` of each pair, in order of the target.

    A pair with an empty side has none.

    Raises:
        InputError: if a package of the extra `align` is missing.
    """
    try:
        from eflomal import Aligner
        from nltk.translate.gdfa import grow_diag_final_and
    except ImportError as error:
        raise InputError(
            "words are aligned by eflomal, which is not installed: pip install "
            "'tf_transformer[align]'. Or give --run_dir, a trained translator."
        ) from error
    words = [list(map(aligned_words, texts)) for texts in (sources, targets)]
    rows = [row for row, sides in enumerate(zip(*words, strict=True)) if all(sides)]
    links: list[list[Link]] = [[] for _ in sources]
    if not rows:
        return links
    with tempfile.TemporaryDirectory() as folder:
        files = [str(pathlib.Path(folder, name)) for name in ("forward", "reverse")]
        Aligner().align(*([" ".join(side[row]) for row in rows] for side in words), *files)
        for row, *directions in zip(rows, *read_texts(*files), strict=True):
            sizes = (len(side[row]) for side in words)
            joined = grow_diag_final_and(*sizes, *directions)
            links[row] = sorted(joined, key=lambda link: link[::-1])
    return links


def aligned_words(text: str) -> list[str]:
    """The words of a text in lower case, without marks at their ends, so that more are equal.

    Example:
        >>> aligned_words('"Yes," he said.')
        ['yes', 'he', 'said']
    """
    return [_MARKS.sub("", word).lower() or word for word in clean(text).split()]
