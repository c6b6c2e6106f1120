"""OPUS' Moses format: a zip archive of two text files, such as NAME.de-en.de and NAME.de-en.en."""

import contextlib
import lzma
import pathlib
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.readers.rows import Row, Rows
from tf_transformer.data.readers.translation_units import places_of
from tf_transformer.errors import InputError
from tf_transformer.files.reading import align, lines_of, unreadable
from tf_transformer.files.text_lines import chunks_of

_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)
_UNREADABLE = (NotImplementedError, RuntimeError)  # another compression; a password


def read_moses_zip(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> Rows:
    """Opens a zip archive of two text files. Line n of each file belongs to pair n.

    The endings of the files are their languages. `columns` names the two languages; by default,
    the data options do. Other files of the archive do not matter. Nothing is unpacked to disk.

    A pass raises an `InputError` if the archive is broken, if it does not have one such pair of
    files, or if the files have different numbers of lines.
    """
    languages = corpus.columns or (data.source_language, data.target_language)

    def start(skipped: Counter[str]) -> Iterator[Row]:
        with _opened(corpus.path) as archive, contextlib.ExitStack() as stack:
            texts = _texts(archive, languages, corpus.path)
            names = [f"{text.filename} in {corpus.path}" for text in texts]
            files = [stack.enter_context(archive.open(text)) for text in texts]
            lines = [
                lines_of(chunks_of(file), name) for file, name in zip(files, names, strict=True)
            ]
            yield from enumerate(align(names, lines), 1)

    def identify() -> str:
        with _opened(corpus.path) as archive:
            texts = _texts(archive, languages, corpus.path)
            return " ".join(["moses", *(f"{text.CRC:08x} {text.file_size}" for text in texts)])

    return Rows((corpus.path,) * len(fields), start, identify)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except OSError as error:
        raise unreadable(path, error) from error
    except _BROKEN as error:
        raise InputError(
            f"{path} is not a whole zip archive: {error}. Download it once more."
        ) from error
    except _UNREADABLE as error:
        raise InputError(
            f"{path} cannot be read: {error}. Extract its files, and give them as source and "
            "target."
        ) from error


def _texts(
    archive: zipfile.ZipFile, languages: Sequence[str], path: str
) -> tuple[zipfile.ZipInfo, ...]:
    """Finds the two files whose names differ only in their endings, the languages."""
    members = [member for member in archive.infolist() if not member.is_dir()]
    names = [pathlib.PurePosixPath(member.filename) for member in members]
    sources, targets = (
        places_of(language, [name.suffix[1:] for name in names]) for language in languages
    )
    pairs = [
        (members[source], members[target])
        for source in sources
        for target in targets
        if source != target and names[source].with_suffix("") == names[target].with_suffix("")
    ]
    if len(pairs) != 1:
        raise InputError(
            f"{path} has {len(pairs)} pairs of files in {' and '.join(languages)}, such as "
            f"a.{languages[0]} and a.{languages[1]}; expected one. Its files are "
            f"{', '.join(map(str, names)) or 'none'}. Set data.source_language and "
            "data.target_language, give both languages as columns of the corpus, or extract the "
            "two files."
        )
    return pairs[0]
