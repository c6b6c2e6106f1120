"""Prepares a training text on Apache Beam: tf-transformer prepare --config c.yaml --to store."""

import os
import pathlib
import secrets
import shutil
from dataclasses import replace

from tf_transformer.commands import command_line
from tf_transformer.config import DataConfig
from tf_transformer.config.data import SHARD_PAIRS
from tf_transformer.data import corpora
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath


def main(
    *beam_options: str,
    to: LocalPath,
    data: DataConfig = DataConfig(),
    shard_pairs: int = SHARD_PAIRS,
) -> None:
    """Prepares the training text of translation on Apache Beam, for texts larger than a machine.

    The pipeline reads the corpora, leaves out pairs by --data.clean, learns the vocabulary from a
    sample of a million pairs, and writes the ids in shards. Any runner and any number of workers
    write the same bytes. Train on the folder: python train.py --run_dir runs/x --config
    store/config.yaml. It needs the extra `beam`, and validation text of its own. All workers need
    the files of the corpora, and the folder --to.

    Args:
        beam_options: options of Beam, after all others and the word --, such as --
            --runner=FlinkRunner.
        to: new folder for the prepared corpus.
        data: the corpora and the vocabulary, as for training.
        shard_pairs: pairs in a shard, about.
    """
    try:
        from tf_transformer.data import beam_pipeline
    except ModuleNotFoundError as error:
        raise InputError(
            f"this command needs the package {error.name}: pip install 'tf_transformer[beam]'."
        ) from error
    from tf_transformer.data.prepared_shards import publish

    if os.path.exists(to) and not (os.path.isdir(to) and not os.listdir(to)):
        raise InputError(f"{to} exists already. Move it away, or give another folder as --to.")
    if shard_pairs < 1:
        raise InputError(f"--shard_pairs must be positive, got {shard_pairs}.")
    data = corpora.with_languages(replace(data, prepared=""))
    corpora.check(data)
    corpora.require_validation(data)
    # Workers may have another working folder.
    located = corpora.in_folder(replace(corpora.in_folder(data), folder=os.getcwd()))
    folder = f"{os.path.abspath(to)}.partial-{secrets.token_hex(4)}"
    pathlib.Path(folder).mkdir(parents=True)
    try:
        beam_pipeline.run(located, folder, shard_pairs, beam_options)
        print(*publish(folder, to, data), sep="\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{to}: train with --config {to}/config.yaml")


if __name__ == "__main__":
    command_line.run(main)
