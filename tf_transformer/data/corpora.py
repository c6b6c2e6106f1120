"""The corpora of a configuration as streams of examples."""

import itertools
import pathlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tf_transformer.config import Config, Corpus, DataConfig
from tf_transformer.data.examples import Examples, ExampleStream, Texts
from tf_transformer.data.folder import in_folder
from tf_transformer.data.generated import require_packages
from tf_transformer.data.readers import COMPRESSED, format_of, open_corpus
from tf_transformer.data.readers.tfds import pair_in, tfds_languages
from tf_transformer.data.text_size import TextSize
from tf_transformer.errors import InputError
from tf_transformer.files.reading import check_file

Languages = tuple[str | None, str | None]
"""The languages of source and target. None stands for an unknown language."""

UNKNOWN: Languages = (None, None)
DEFAULTS: Languages = (DataConfig.source_language, DataConfig.target_language)


def training_corpora(data: DataConfig) -> tuple[Corpus, ...]:
    """Returns the corpora of the training text: `data.corpora`, or the corpus of a short form.

    Example:
        >>> training_corpora(DataConfig(train_source="a.en", train_target="a.de"))
        (Corpus(source='a.en', target='a.de', ...),)
    """
    if data.corpora:
        return data.corpora
    if data.train_file:
        return (Corpus(path=data.train_file, format="text"),)
    if data.train_source:
        return (Corpus(data.train_source, data.train_target),)
    if data.tfds:
        return (Corpus(name=data.tfds, format="tfds", reverse=data.tfds_reverse),)
    return (Corpus(format="generated"),)


def validation_corpora(data: DataConfig) -> tuple[Corpus, ...]:
    """Returns the corpora of the validation text. It has none if training text is held out."""
    if data.valid_corpora:
        return data.valid_corpora
    if data.valid_file:
        return (Corpus(path=data.valid_file, format="text"),)
    if data.valid_source:
        return (Corpus(data.valid_source, data.valid_target),)
    if data.tfds_valid_split:
        return tuple(
            replace(corpus, split=data.tfds_valid_split) for corpus in training_corpora(data)
        )
    if is_generated(data):
        return (Corpus(format="generated", split="validation"),)
    return ()


def is_generated(data: DataConfig) -> bool:
    """Whether the generated corpus is the only training text."""
    return training_corpora(data) == (Corpus(format="generated"),)


def load_examples(config: Config, fields: Sequence[str]) -> tuple[ExampleStream, Examples]:
    """Opens the training and validation examples of a configuration.

    Args:
        config: the configuration of the run.
        fields: names of the texts of an example, such as source and target.

    Returns:
        the training examples as a stream, and the validation examples in memory.

    Raises:
        InputError: if a corpus cannot be read.
    """
    check(config.data)
    data = in_folder(config.data)
    train = stream(training_corpora(data), fields, data)
    if validation := validation_corpora(data):
        return train, stream(validation, fields, data).read()
    return train.hold_out(data.held_out, config.train.seed)


def training_size(data: DataConfig, fields: Sequence[str]) -> TextSize:
    """The size of the training text, with the pairs that are held out from it for validation.

    Args:
        data: options of the run.
        fields: names of the two texts of an example.

    Raises:
        InputError: for a corpus that cannot be read.
    """
    check(data)
    data = in_folder(data)
    return TextSize.of(stream(training_corpora(data), fields, data))


def stream(corpora: Sequence[Corpus], fields: Sequence[str], data: DataConfig) -> ExampleStream:
    """Makes one stream of the examples of all corpora, in order. Each corpus must have examples."""
    streams = [open_corpus(corpus, fields, data).stream(fields) for corpus in corpora]
    if len(streams) == 1:
        return streams[0]

    def start(skipped: Counter[str]) -> Iterator[Texts]:
        return itertools.chain.from_iterable(part.start(skipped) for part in streams)

    def identify() -> str:
        return "corpora " + "; ".join(part.identity for part in streams)

    return ExampleStream(tuple(fields), start, identify)


def read_test(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> list[list[str]]:
    """Reads all texts of a test set, also empty ones.

    Args:
        corpus: the test set.
        fields: names of the texts of an example.
        data: the data options of the run.

    Returns:
        a list of texts for each field.

    Raises:
        InputError: if the corpus cannot be read, or if its direction is opposite to the run's.
    """
    if len(fields) == 2:
        source, target = languages(data)
        if source and target:
            data = replace(data, source_language=source, target_language=target)
        _require_one_direction([*training_corpora(data), corpus], data)
    return open_corpus(corpus, fields, data).texts()


def check(data: DataConfig) -> None:
    """Checks that the files of all corpora of a configuration can be opened.

    Files of tasks with their own file format (`data.train_file`) are not checked.

    Raises:
        InputError: if a file cannot be read. The message names `data.origin` if it is set.
    """
    files = in_folder(data)
    corpora = [*training_corpora(files), *validation_corpora(files)] if not files.train_file else []
    for corpus in corpora:
        try:
            check_corpus(corpus)
        except InputError as error:
            if not data.origin:
                raise
            raise InputError(
                f"{error} Get the text from {data.origin} and give its folder as data.folder or in "
                "the environment variable TF_TRANSFORMER_DATA; or give the paths of your files as "
                "data.corpora, or as data.train_source, data.train_target, data.valid_source and "
                "data.valid_target."
            ) from error


def check_corpus(corpus: Corpus) -> None:
    """Checks that the files of a corpus can be opened and that its packages are installed.

    Raises:
        InputError: if a file cannot be read, or if a package is missing.
    """
    for path in filter(None, [corpus.source, corpus.target, corpus.path]):
        check_file(path)
    if format_of(corpus) == "generated":
        require_packages()


def with_languages(data: DataConfig) -> DataConfig:
    """Adds the languages of a TFDS corpus to the options.

    Raises:
        InputError: if a TFDS corpus cannot be loaded, or if two corpora of training and validation
            text have opposite directions.
    """
    for corpus in training_corpora(data):
        if format_of(corpus) == "tfds":
            pair = tfds_languages(corpus.name, corpus.reverse, data.tfds_dir)
            if pair:
                data = replace(data, source_language=pair[0], target_language=pair[1])
    _require_one_direction([*training_corpora(data), *validation_corpora(data)], data)
    return data


def _require_one_direction(corpora: Sequence[Corpus], data: DataConfig) -> None:
    directions = {languages_of(corpus, data): corpus for corpus in corpora}
    for (source, target), corpus in directions.items():
        opposite = directions.get((target, source))
        if opposite and source != target:
            raise InputError(
                f"{_name(corpus)} goes from {source} to {target}, but {_name(opposite)} from "
                f"{target} to {source}. Swap the sides of one corpus by source and target, columns "
                "or reverse; or swap data.source_language and data.target_language."
            )


def _name(corpus: Corpus) -> str:
    return corpus.source or corpus.path or corpus.name or f"the {corpus.format} corpus"


def languages(data: DataConfig) -> Languages:
    """Returns the languages of the first training corpus whose languages are known."""
    for corpus in training_corpora(data):
        pair = languages_of(corpus, data)
        is_guess = pair == DEFAULTS and format_of(corpus) == "jsonl"  # its keys may be other ones
        if any(pair) and not is_guess:
            return pair
    return UNKNOWN


def languages_of(corpus: Corpus, data: DataConfig) -> Languages:
    """Returns the languages of a corpus if the configuration names them.

    The name of a TFDS corpus often has them (`wmt14_translate/de-en`). Files often have them as
    endings (`a.en`), and tables as names of columns. If the name of a TFDS corpus has no languages,
    training stores them in the options.
    """
    stored = (data.source_language, data.target_language)
    kind = format_of(corpus)
    if kind == "text":
        return _ending(corpus.source), _ending(corpus.target)
    if kind == "tfds":
        if pair := pair_in(corpus.name):
            return (pair[1], pair[0]) if corpus.reverse else pair
        return stored if stored != DEFAULTS else UNKNOWN  # an earlier version stored the defaults
    if len(corpus.columns) == 2:
        return _code(corpus.columns[0]), _code(corpus.columns[1])
    return stored if kind in ("tmx", "jsonl", "generated") else UNKNOWN


def _ending(file: str) -> str | None:
    return _code(pathlib.Path(COMPRESSED.sub("", file)).suffix[1:])


def _code(text: str) -> str | None:
    return text if len(text) == 2 and text.isalpha() else None
