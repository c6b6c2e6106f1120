"""Lower-cased, tokenised text, as published experiments on Multi30k prepare it.

    python -m benchmarks.translations.moses_text --folder ../shared/data/multi30k \
        --to build/multi30k_lc

Wu et al. 2021 (Good for Misconceived Reasons) normalise punctuation, lower-case and tokenise with
the scripts of Moses. sacremoses does the same in Python. Tokens have blanks between them, and `'`
and others are escaped, so BLEU needs no tokenisation of its own.
"""

import pathlib
from collections.abc import Callable

import sacremoses

from tf_transformer.commands import command_line
from tf_transformer.errors import InputError
from tf_transformer.files import read_texts, write_whole


def main(folder: str, to: str, languages: str = "en,de") -> None:
    """Prepares each file of a folder that has the name of a language as its ending.

    Args:
        folder: the raw text.
        to: folder for the prepared text.
        languages: endings of the files, with commas between them.

    Raises:
        InputError: when there is no file of a language.
    """
    pathlib.Path(to).mkdir(parents=True, exist_ok=True)
    for language in languages.split(","):
        files = sorted(pathlib.Path(folder).glob(f"*.{language}"))
        if not files:
            raise InputError(f"{folder} has no file with the ending .{language}.")
        prepare = preparation(language)
        for file in files:
            lines = [prepare(line) for line in read_texts(file)[0]]
            write_whole(pathlib.Path(to, file.name), "".join(f"{line}\n" for line in lines))
            tokens = sum(len(line.split(" ")) for line in lines)
            print(f"{file.name}: {len(lines):,} lines, {tokens:,} tokens")


def preparation(language: str) -> Callable[[str], str]:
    """A function that normalises, lower-cases and tokenises a line.

    Example:
        >>> preparation("en")("A man's well-known “hat”.")
        'a man &apos;s well-known &quot; hat &quot; .'
    """
    normalizer = sacremoses.MosesPunctNormalizer(language)
    tokenizer = sacremoses.MosesTokenizer(language)
    return lambda line: tokenizer.tokenize(normalizer.normalize(line).lower(), return_str=True)


if __name__ == "__main__":
    command_line.run(main)
