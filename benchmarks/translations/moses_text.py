"""Tokenised text, as published experiments prepare it for training or for their BLEU.

    python -m benchmarks.translations.moses_text --folder $TF_TRANSFORMER_DATA/multi30k \
        --to build/multi30k_lc
    python -m benchmarks.translations.moses_text --folder translations --to build/tokenised \
        --languages de --lowercase false --split_compounds true

Wu et al. 2021 (Good for Misconceived Reasons) normalise punctuation, lower-case and tokenise
Multi30k with the scripts of Moses; sacremoses does the same in Python. The BLEU of Attention Is All
You Need is that of tokenised text whose compounds are split at their hyphens. Tokens have blanks
between them, so BLEU needs no tokenisation of its own (`evaluate.py --task.bleu_tokenize none`).
"""

import pathlib
import re
from collections.abc import Callable

import sacremoses

from tf_transformer.commands import command_line
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.reading import read_texts
from tf_transformer.files.writing import write_whole


def main(
    folder: LocalPath,
    to: LocalPath,
    languages: str = "en,de",
    lowercase: bool = True,
    split_compounds: bool = False,
) -> None:
    """Prepares each file of a folder that has the name of a language as its ending.

    Args:
        folder: the raw text.
        to: folder for the prepared text.
        languages: endings of the files, with commas between them.
        lowercase: whether to change capitals.
        split_compounds: whether a hyphen between letters becomes a token.

    Raises:
        InputError: when there is no file of a language.
    """
    pathlib.Path(to).mkdir(parents=True, exist_ok=True)
    for language in languages.split(","):
        files = sorted(pathlib.Path(folder).glob(f"*.{language}"))
        if not files:
            raise InputError(f"{folder} has no file with the ending .{language}.")
        prepare = preparation(language, lowercase, split_compounds)
        for file in files:
            lines = prepare_file(file, pathlib.Path(to, file.name), prepare)
            tokens = sum(len(line.split(" ")) for line in lines)
            print(f"{file.name}: {len(lines):,} lines, {tokens:,} tokens")


def prepare_file(file: pathlib.Path, to: pathlib.Path, prepare: Callable[[str], str]) -> list[str]:
    """Prepares each line of a file, writes the lines to another file, and returns them."""
    lines = [prepare(line) for line in read_texts(file)[0]]
    write_whole(to, "".join(f"{line}\n" for line in lines))
    return lines


def preparation(
    language: str, lowercase: bool = True, split_compounds: bool = False
) -> Callable[[str], str]:
    """A function that normalises and tokenises a line; see `main`.

    Example:
        >>> preparation("en")("A man's well-known “hat”.")
        'a man &apos;s well-known &quot; hat &quot; .'
        >>> preparation("en", lowercase=False, split_compounds=True)("A well-known hat.")
        'A well ##AT##-##AT## known hat .'
    """
    normalizer = sacremoses.MosesPunctNormalizer(language)
    tokenizer = sacremoses.MosesTokenizer(language)

    def prepare(line: str) -> str:
        normal = normalizer.normalize(line)
        text = tokenizer.tokenize(normal.lower() if lowercase else normal, return_str=True)
        return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", text) if split_compounds else text

    return prepare


if __name__ == "__main__":
    command_line.run(main)
