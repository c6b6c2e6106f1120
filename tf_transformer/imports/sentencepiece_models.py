"""The SentencePiece models of a folder with a model of another program."""

import pathlib

from tf_transformer.errors import InputError

# Names in the order in which they are looked for: one file, or one for each side.
NAMES = (
    ("source.spm", "target.spm"),
    ("tokenizer.source.model", "tokenizer.target.model"),
    ("tokenizer.model",),
    ("sentencepiece.bpe.model",),
    ("sentencepiece.model",),
    ("spm.model",),
)


def sentencepiece_models(
    folder: pathlib.Path, given: str = ""
) -> tuple[pathlib.Path, pathlib.Path]:
    """Finds the SentencePiece models of source and target.

    Args:
        folder: the folder of the model, which may have them under one of `NAMES`.
        given: one path for both sides, or two paths with a comma between them; "": in the folder.

    Raises:
        InputError: if there are none, or more than two.
    """
    if given:
        paths = [pathlib.Path(path) for path in given.split(",")]
        if len(paths) > 2:
            raise InputError(f"--tokenizer takes one file or two, got {len(paths)}: {given}")
        return paths[0], paths[-1]
    for names in NAMES:
        paths = [folder / name for name in names]
        if all(path.is_file() for path in paths):
            return paths[0], paths[-1]
    expected = ", ".join(" and ".join(names) for names in NAMES)
    raise InputError(
        f"{folder} has no SentencePiece model, so texts cannot be divided into its tokens. Give "
        f"--tokenizer source.model,target.model, or put one of these into the folder: {expected}."
    )
