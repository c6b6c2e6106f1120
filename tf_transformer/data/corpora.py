"""The corpora of a configuration: streams of examples, their size, and their languages."""

import glob
import itertools
import os
import pathlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tf_transformer.config import Config, Corpus, DataConfig
from tf_transformer.data import rules
from tf_transformer.data.examples import Examples, ExampleStream, Part, Texts, reasons
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.readers import COMPRESSED, Languages, kind_of, open_corpus
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import local_path, with_home
from tf_transformer.files.reading import check_file, split_paths
from tf_transformer.text.normalization import is_blank
from tf_transformer.text.target_tag import TAG, split_tag
from tf_transformer.text.tokenizer import smallest_vocabulary

UNKNOWN: Languages = (None, None)
LANGUAGES = ("data.source_language", "data.target_language")  # options, a direction
OWN_LANGUAGE = "language"  # as the tag of a corpus: the tag of its target language
SEVERAL = "mul"  # as data.target_language: each source text says its target language (ISO 639-2)
DEFAULTS: Languages = (DataConfig.source_language, DataConfig.target_language)
VARIABLE = "TF_TRANSFORMER_DATA"  # of the environment, with the data folder
MOST_PAIRS = 5_000_000  # that are counted
_ALL, _EACH = 50_000, 20  # characters: of all pairs up to here, and then of each 20th


class TextSize(NamedTuple):
    """The size of a training text."""

    pairs: int  # `MOST_PAIRS` for a longer text
    bytes: int  # of the longer side in UTF-8, all these pairs together
    smallest_vocabulary: int = 0  # the smallest one that has the characters of the pairs

    @classmethod
    def of(cls, stream: Iterable[Texts]) -> "TextSize":
        """The size of a stream, of which at most `MOST_PAIRS` pairs are read."""
        pairs, source_bytes, target_bytes = 0, 0, 0
        characters = Counter[str]()
        for source, target in itertools.islice(stream, MOST_PAIRS):
            pairs += 1
            source_bytes += len(source.encode("utf-8", "surrogatepass"))
            target_bytes += len(target.encode("utf-8", "surrogatepass"))
            if pairs <= _ALL or pairs % _EACH == 0:
                characters.update(unicodedata.normalize("NFC", f"{source} {target}"))
        return cls(pairs, max(source_bytes, target_bytes), smallest_vocabulary(characters))


def training_corpora(data: DataConfig) -> tuple[Corpus, ...]:
    """Returns the corpora of the training text."""
    return data.corpora or (Corpus(format="generated"),)


def validation_corpora(data: DataConfig) -> tuple[Corpus, ...]:
    """Returns the corpora of the validation text. It has none if training text is held out."""
    if data.valid_corpora or not is_generated(data):
        return data.valid_corpora
    return tuple(replace(corpus, split="validation") for corpus in training_corpora(data))


def require_validation(data: DataConfig) -> None:
    """Raises an `InputError` without validation text, which a prepared corpus needs."""
    if not validation_corpora(data):
        raise InputError(
            "a prepared corpus holds no pair out for validation. Give data.valid_corpora, or "
            "data.valid_source and data.valid_target."
        )


def is_generated(data: DataConfig) -> bool:
    """Whether the generated corpus is the only training text."""
    return all(corpus.format == "generated" for corpus in data.corpora) and len(data.corpora) < 2


def own_file(corpora: Sequence[Corpus]) -> str:
    """The file of a task with one file, which may have a format of its own; "" for others."""
    path = corpora[0].path if len(corpora) == 1 else ""
    return path if path and corpora[0] == Corpus(path=path, format="text") else ""


def load_examples(config: Config, fields: Sequence[str]) -> tuple[ExampleStream, Examples]:
    """Opens the training examples of a run as a stream, and the validation examples in memory.

    The fields are the names of the texts of an example, such as source and target. A corpus that
    cannot be read is an `InputError`.
    """
    check(config.data)
    data = in_folder(config.data)
    train = _training_stream(data, fields)
    if validation := validation_corpora(data):
        return train, stream(validation, fields, data).read()
    if data.prepared:
        require_validation(data)
    by_target = len(fields) == 2 and data.held_out_by == "both"
    return train.hold_out(data.held_out, config.train.seed, by_target)


def training_size(data: DataConfig, fields: Sequence[str]) -> TextSize:
    """The size of the training text, with the pairs that are held out from it for validation."""
    check(data)
    if data.prepared:
        prepared = Prepared.load(data.prepared)
        return TextSize(prepared.pairs, prepared.bytes)
    return TextSize.of(_training_stream(in_folder(data), fields))


def _training_stream(data: DataConfig, fields: Sequence[str]) -> ExampleStream:
    corpora = training_corpora(data)
    if not data.prepared:
        return stream(corpora, fields, data, data.clean)
    prepared = Prepared.load(data.prepared)
    if len(prepared.identities) != len(corpora):
        raise InputError(
            f"data.prepared {data.prepared} has {len(prepared.identities)} corpora, but "
            f"data.corpora has {len(corpora)}. {prepared.advice}"
        )
    return joined(corpora, prepared.streams(fields))


def stream(
    corpora: Sequence[Corpus], fields: Sequence[str], data: DataConfig, clean: Collection[str] = ()
) -> ExampleStream:
    """Makes one stream of the examples of all corpora, in order. Each corpus must have examples.

    Pairs that a rule finds, of `clean` or of the corpus itself, are skipped and counted, by rule
    and corpus.
    """
    streams = []
    for name, corpus in zip(labels(corpora), corpora, strict=True):
        text = open_corpus(corpus, fields, data).stream(fields)
        if chosen := rules.chosen(corpus.clean or clean):
            place = f" in {name}" if len(corpora) > 1 else ""
            text = _cleaned(text, chosen, two_languages(corpus, data), place)
        streams.append(text)
    return joined(corpora, streams)


def joined(corpora: Sequence[Corpus], streams: Sequence[ExampleStream]) -> ExampleStream:
    """Makes one stream of the examples of corpora, with their tags and weights."""
    parts = [
        Part(name, text, corpus.tag, corpus.weight)
        for name, text, corpus in zip(labels(corpora), streams, corpora, strict=True)
    ]
    if len(parts) == 1 and not parts[0].tag:
        return parts[0].stream
    return ExampleStream.joined(parts)


def _cleaned(
    text: ExampleStream, chosen: Mapping[str, rules.Rule], pair: Languages, place: str
) -> ExampleStream:
    """The examples of a corpus that no rule finds. `place` names the corpus in reasons."""

    def start(skipped: Counter[str]) -> Iterator[Texts]:
        tests = {name: rule.start(pair) for name, rule in chosen.items()}
        is_empty = True
        for texts in text.start(skipped):
            if found := rules.faults(tests, *texts):
                skipped[f"{found[0]}{place}"] += 1
            else:
                is_empty = False
                yield texts
        if is_empty:
            raise InputError(f"data.clean leaves no pair: {reasons(skipped)}. Name fewer rules.")

    named = rules.identity(chosen, pair)
    return ExampleStream(text.fields, start, lambda: f"{text.identity} without {named}")


def labels(corpora: Sequence[Corpus]) -> list[str]:
    """Short names of corpora, such as train.en-de, each of which is different."""
    names, counts = [_label(corpus) for corpus in corpora], Counter[str]()
    for place, name in enumerate(names):
        counts[name] += 1
        names[place] += f" #{counts[name]}" * (counts[name] > 1)
    return names


def _label(corpus: Corpus) -> str:
    files = [COMPRESSED.sub("", pathlib.Path(x).name) for x in (corpus.source, corpus.target) if x]
    if not files:
        return pathlib.Path(corpus.path).name or corpus.name or corpus.format
    (stem, _, source), (other, _, target) = (file.rpartition(".") for file in files)
    return f"{stem}.{source}-{target}" if stem and stem == other else "-".join(files)


def read_test(corpus: Corpus, fields: Sequence[str], data: DataConfig) -> list[list[str]]:
    """Reads all texts of a test set, also empty ones: a list for each field."""
    if len(fields) == 2:
        source, target = languages(data)
        if source and target and data.target_language != SEVERAL:
            data = replace(data, source_language=source, target_language=target)
        corpus = _with_tag(corpus, data)
        _require_one_target([*training_corpora(data), corpus], data)
    first, *others = open_corpus(corpus, fields, data).texts()
    if corpus.tag:
        first = [text if is_blank(text) else f"{corpus.tag} {text}" for text in first]
    return [first, *others]


def require_tags(sources: Sequence[str], config: Config) -> None:
    """Raises an `InputError` for test texts without tags if all training text had tags."""
    tags = {corpus.tag for corpus in training_corpora(config.data)}
    if "" in tags or config.decode.target_tag or any(split_tag(x, tags)[0] for x in sources):
        return
    raise InputError(
        f"the model has learned from texts with tags ({', '.join(sorted(tags))}), but the test set "
        f"has none. Give --corpus.tag {OWN_LANGUAGE}, or --target_tag with one of them."
    )


def check(data: DataConfig) -> None:
    """Raises an `InputError` if a file of the corpora of a configuration cannot be opened.

    The files of a task with one file (`own_file`) are not checked. The message names `data.origin`.
    """
    files = in_folder(data)
    if own_file(files.corpora):
        return
    training = () if files.prepared else training_corpora(files)
    for corpus in training_corpora(files):
        for rule in rules.chosen(corpus.clean or files.clean).values():
            rule.start(two_languages(corpus, files))
    if files.prepared:
        Prepared.load(files.prepared)
    for corpus in (*training, *validation_corpora(files)):
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
    """Raises an `InputError` if a file of a corpus cannot be opened, or if a package is missing.

    Also for a tag that is not of the form of tags.
    """
    if corpus.tag not in ("", OWN_LANGUAGE) and not TAG.fullmatch(corpus.tag):
        raise InputError(
            f"the tag of {_name(corpus)} must be like >>de<<, without spaces, or {OWN_LANGUAGE}, "
            f"got {corpus.tag!r}."
        )
    for path in filter(None, [corpus.source, corpus.target, corpus.path, corpus.alignments]):
        check_file(path)
    kind_of(corpus).check()


def with_languages(data: DataConfig) -> DataConfig:
    """Adds the languages that the data of a corpus name, as with TFDS, to the options.

    Writes the tags that `OWN_LANGUAGE` stands for. Two corpora of training and validation text with
    different target languages and the same tag, or none, are an `InputError`.
    """
    for corpus in training_corpora(data):
        if pair := kind_of(corpus).stored_languages(corpus):
            data = replace(data, source_language=pair[0], target_language=pair[1])
    data = replace(
        data,
        corpora=tuple(_with_tag(corpus, data) for corpus in data.corpora),
        valid_corpora=tuple(_with_tag(corpus, data) for corpus in data.valid_corpora),
    )
    _require_one_target([*training_corpora(data), *validation_corpora(data)], data)
    _require_trained_tags(data)
    return data


def _with_tag(corpus: Corpus, data: DataConfig) -> Corpus:
    """A corpus with the tag of its target language, if its tag is `OWN_LANGUAGE`."""
    if corpus.tag != OWN_LANGUAGE:
        return corpus
    target = two_languages(corpus, data)[1]
    if target in (None, SEVERAL):
        raise InputError(
            f"the target language of {_name(corpus)} is not known, so it has no tag. Give the tag "
            "itself, like >>de<<, or name the language by the file's ending, columns, or "
            "data.target_language."
        )
    return replace(corpus, tag=f">>{target}<<")


def _require_trained_tags(data: DataConfig) -> None:
    """Raises an `InputError` if validation text has other tags than the training text."""
    trained = {corpus.tag for corpus in training_corpora(data)}
    for corpus in data.valid_corpora if data.target_language != SEVERAL else ():
        if corpus.tag not in trained:
            tags = ", ".join(tag or "no tag" for tag in sorted(trained))
            raise InputError(
                f"the validation text {_name(corpus)} has {corpus.tag or 'no tag'}, but the "
                f"training text has {tags}. Give both the same, for example tag: {OWN_LANGUAGE}."
            )


def _require_one_target(corpora: Sequence[Corpus], data: DataConfig) -> None:
    """Raises an `InputError` for corpora with different target languages, unless `SEVERAL` may be.

    Guessed languages of a corpus are only an error if another corpus has the opposite direction.
    """
    if data.target_language == SEVERAL:
        return
    pairs = [(two_languages(corpus, data), corpus) for corpus in corpora]
    for (pair, corpus), (later, other) in itertools.combinations(pairs, 2):
        is_guess = _is_guess(corpus, data) or _is_guess(other, data)
        is_opposite = all(pair + later) and not differ(pair, later[::-1])
        if corpus.tag != other.tag:  # it says the target language
            continue
        if is_opposite if is_guess else differ(pair[1:], later[1:]):
            names = _name(corpus), _name(other)
            if names[0] == names[1]:
                names = corpus.target, other.target
            raise InputError(
                f"{names[0]} goes from {pair[0]} to {pair[1]}, but {names[1]} from {later[0]} to "
                f"{later[1]}. A run has one target language. Swap the sides of a corpus by source "
                "and target, columns or reverse; set data.source_language and "
                "data.target_language; or leave a corpus out. For one model of several directions, "
                f"give each corpus tag: {OWN_LANGUAGE}, which puts a tag such as >>de<< before its "
                "sources. If the texts have tags themselves, give data.target_language "
                f"{SEVERAL}."
            )


def require_direction(data: DataConfig, allowed: Sequence[Languages], of: str) -> None:
    """Raises an `InputError` for text in no allowed direction of the model that it fine-tunes."""
    for corpus in (*training_corpora(data), *validation_corpora(data)):
        pair = two_languages(corpus, data)
        if all(differ(pair, other) for other in allowed):
            known = zip(("source", "target"), pair, strict=True)
            options = [f"data.{side}_language {language}" for side, language in known if language]
            raise InputError(
                f"{_name(corpus)} goes {_in_words(pair)}, but {of} translates "
                f"{', or '.join(map(_in_words, allowed))}. Swap source and target of the text, or "
                "its columns. To train for another direction than the model's, give "
                f"{' and '.join(options)}."
            )


def _in_words(pair: Languages) -> str:
    """A direction in words, such as "from en to de"."""
    source, target = (language or "an unknown language" for language in pair)
    return f"from {source} to {target}"


def differ(one: Iterable[str | None], other: Iterable[str | None]) -> bool:
    """Whether two languages at the same place are known to differ.

    Regions do not count. Codes of two letters are not compared with codes of three.
    """
    codes = ([re.split("[-_]", (code or "").lower())[0] for code in pair] for pair in (one, other))
    return any(a != b and len(a) == len(b) for a, b in zip(*codes, strict=True))


def two_languages(corpus: Corpus, data: DataConfig) -> Languages:
    """The languages of a corpus. Equal ones are not languages, but endings such as a.tok, b.tok."""
    pair = languages_of(corpus, data)
    return pair if pair[0] != pair[1] else UNKNOWN


def _name(corpus: Corpus) -> str:
    return corpus.source or corpus.path or corpus.name or f"the {corpus.format} corpus"


def languages(data: DataConfig) -> Languages:
    """Returns the languages of the first training corpus whose languages are known.

    If corpora have different tags, a side with several languages is unknown.
    """
    corpora = training_corpora(data)
    known = [corpus for corpus in corpora if not _is_guess(corpus, data)]
    pairs = [pair for corpus in known if any(pair := languages_of(corpus, data))]
    if len({corpus.tag for corpus in corpora}) == 1:
        return pairs[0] if pairs else UNKNOWN
    sides = (set(side) - {None} for side in zip(UNKNOWN, *pairs, strict=True))
    source, target = (side.pop() if len(side) == 1 else None for side in sides)
    return source, target


def run_languages(config: Config) -> Languages:
    """The languages of a run. Those of fine-tuning are known: they were inherited or given."""
    pair, data = languages(config.data), config.data
    if not any(pair) and config.train.init_from:
        return data.source_language or None, data.target_language or None
    return pair


def directions(config: Config) -> list[Languages]:
    """Returns the known languages of all training corpora, also those that are a guess."""
    data = config.data
    pairs = [languages_of(corpus, data) for corpus in training_corpora(data)]
    return [pair for pair in dict.fromkeys(pairs) if any(pair)] or [run_languages(config)]


def languages_of(corpus: Corpus, data: DataConfig) -> Languages:
    """Returns the languages of a corpus if the configuration names them.

    The name of a TFDS corpus often has them (`wmt14_translate/de-en`). Files often have them as
    endings (`a.en`), and tables as names of columns. Otherwise, the options of the languages count.
    If a corpus does not need them, their defaults say nothing.
    """
    kind = kind_of(corpus)
    if (named := kind.languages(corpus)) is not None:
        return named
    stored = (data.source_language, data.target_language)
    return stored if kind.needs_languages or stored != DEFAULTS else UNKNOWN


def _is_guess(corpus: Corpus, data: DataConfig) -> bool:
    """Whether the languages are defaults, and the keys of JSON lines may be others."""
    is_default = (data.source_language, data.target_language) == DEFAULTS
    return is_default and kind_of(corpus).may_name_sides and not corpus.columns


def in_folder(data: DataConfig) -> DataConfig:
    """Returns the options with paths that can be opened from the working folder.

    With `data.folder`, relative paths are relative to it. Without it, a path that exists stays as
    it is. A path that does not exist is relative to the folder in the environment variable
    `TF_TRANSFORMER_DATA`, if it is set. A run stores the paths as the user gave them.
    """
    return replace(
        data,
        corpora=tuple(_located_corpus(corpus, data.folder) for corpus in data.corpora),
        valid_corpora=tuple(_located_corpus(corpus, data.folder) for corpus in data.valid_corpora),
        tokenizer=_located_paths(data.tokenizer, data.folder),
        clean=_located_rules(data.clean, data.folder),
    )


def _located_corpus(corpus: Corpus, folder: str) -> Corpus:
    return replace(
        corpus,
        source=located(corpus.source, folder),
        target=located(corpus.target, folder),
        alignments=located(corpus.alignments, folder),
        path=_located_paths(corpus.path, folder),
        clean=_located_rules(corpus.clean, folder),
    )


def _located_rules(names: Iterable[str], folder: str) -> tuple[str, ...]:
    """The names of rules, of which some are paths."""
    return tuple(located(with_home(x), folder) if rules.is_file(x) else x for x in names)


def _located_paths(given: str, folder: str) -> str:
    """One path, or several with commas between them, which some tasks take."""
    parts = [given] if os.path.exists(located(given, folder)) else split_paths(given)
    return ",".join(located(part, folder) for part in parts)


def located(path: str, folder: str) -> str:
    """Returns a path, or a pattern of paths, in the data folder; see `in_folder`. "" stays ""."""
    if path and folder:
        return os.path.join(folder, path)
    default = local_path(os.environ.get(VARIABLE, ""), VARIABLE)
    if not (path and default) or os.path.exists(path) or glob.glob(path):
        return path
    return os.path.join(default, path)
