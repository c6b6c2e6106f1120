"""Prepares corpora on Apache Beam: the steps from lines of text to the shards of token stores.

    read -> deduplicate -> clean -> sample -> learn the vocabulary
                              |                    |
                              +----> divide -> tokenise -> report

Each pair has a key of 64 bits (`text_keys.py`). The key says in which shard the pair is, at which
place, and whether the vocabulary learns from it. So all runners, with any number of workers, write
the same bytes. Workers share the folder of the results.
"""

import json
import pathlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import AsDict, AsSingleton, TaggedOutput

from tf_transformer.config import Corpus, DataConfig, TrainConfig
from tf_transformer.data import corpora, rules
from tf_transformer.data.augmentation.text_augmentation import changed_texts
from tf_transformer.data.examples import Examples, ExampleStream, Part, Texts
from tf_transformer.data.prepared_shards import REPORT, SHARD, SIZE, SKIPPED, Shard, encoder_of
from tf_transformer.data.readers.text import FIELDS
from tf_transformer.data.store import write_shard
from tf_transformer.data.text_keys import pair_key
from tf_transformer.data.tokens import TokenExamples, tokenise
from tf_transformer.data.vocabulary import learned_codec, own_codec
from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole

SAMPLE = 1_000_000  # pairs that a vocabulary learns from, about
_KEYS = 2**64
_ERROR = re.compile(r"InputError: (.+?)( \[while running .*)?$", re.MULTILINE)

Pair = tuple[tuple[int, bytes], Texts]
"""((number of the corpus, key), texts). Beam's integers are too short for a key."""


def run(data: DataConfig, folder: str, shard_pairs: int, beam_options: Sequence[str]) -> None:
    """Runs the pipeline of `prepare` with options of Beam, such as --runner=FlinkRunner.

    An unknown runner is an `InputError`. An `InputError` of a worker is raised again.
    """
    try:
        pipeline = beam.Pipeline(options=PipelineOptions(list(beam_options)))
    except ValueError as error:
        raise InputError(f"Beam cannot use its options: {error}") from error
    try:
        with pipeline as root:
            prepare(root, data, folder, shard_pairs)
    except Exception as error:
        if message := _ERROR.search(str(error)):  # Beam keeps the text of an error only
            raise InputError(message[1]) from error
        raise


def prepare(root: beam.Pipeline, data: DataConfig, folder: str, shard_pairs: int) -> None:
    """Adds the steps to a pipeline that prepares the training corpora of `data` in a folder.

    The folder gets the vocabulary, `REPORT`, and a folder with the shards of each corpus by number.
    """
    named = corpora.training_corpora(data)
    if own := [corpus for corpus in named if corpus.clean]:
        raise InputError(
            f"a prepared text has the rules of data.clean. Leave clean out of {own[0]}."
        )
    read = (
        root
        | beam.Create(list(enumerate(named)))
        | "Read" >> beam.FlatMap(_read, data).with_outputs(SKIPPED, main="pairs")
    )
    skipped = [read[SKIPPED]]
    chosen = rules.chosen(data.clean)
    if chosen.pop(rules.DUPLICATE, None):
        grouped = read.pairs | beam.GroupByKey()
        one = grouped | "Deduplicate" >> beam.FlatMap(_first).with_outputs(SKIPPED, main="pairs")
        skipped.append(one[SKIPPED])
        pairs = one.pairs
    else:
        placed = read.pairs | beam.Reshuffle()
        pairs = placed | "Forget places" >> beam.MapTuple(lambda key, pair: (key, pair[1]))
    if chosen:
        languages = [corpora.two_languages(corpus, data) for corpus in named]
        tests = [{name: rule.start(pair) for name, rule in chosen.items()} for pair in languages]
        clean = pairs | "Clean" >> beam.FlatMap(_clean, tests).with_outputs(SKIPPED, main="pairs")
        skipped.append(clean[SKIPPED])
        pairs = clean.pairs
    sizes = pairs | "Measure" >> beam.Map(_size) | "Sum" >> beam.CombinePerKey(_sums)
    learned = (
        pairs
        | "Sample" >> beam.Filter(_is_sampled, AsDict(sizes))
        | beam.combiners.ToList()
        | "Learn" >> beam.Map(_learn, data, folder)
    )
    shards = (
        pairs
        | "Divide" >> beam.Map(_divided, AsDict(sizes), shard_pairs)
        | "Gather" >> beam.GroupByKey()
        | "Tokenise"
        >> beam.FlatMap(
            _tokenise, AsSingleton(learned), named, data.max_length, folder
        ).with_outputs(SKIPPED, main="shards")
    )
    skipped.append(shards[SKIPPED])
    _ = (
        (
            shards.shards | "Of shards" >> beam.Map(_named, SHARD),
            sizes | "Of sizes" >> beam.Map(_named, SIZE),
            skipped
            | beam.Flatten()
            | "Count" >> beam.CombinePerKey(sum)
            | "Of skipped" >> beam.Map(_named, SKIPPED),
        )
        | "Join" >> beam.Flatten()
        | "Collect" >> beam.combiners.ToList()
        | "Report" >> beam.Map(_write_report, folder)
    )


def _read(numbered: tuple[int, Corpus], data: DataConfig) -> Iterator[Any]:
    """The pairs of a corpus, with their places in it."""
    number, corpus = numbered
    skipped = Counter[str]()
    for place, texts in enumerate(corpora.stream([corpus], FIELDS, data).start(skipped)):
        yield (number, pair_key(*texts).to_bytes(8, "big")), (place, texts)
    yield from (_skip(number, reason, count) for reason, count in skipped.items())


def _first(group: tuple[tuple[int, bytes], Iterable[tuple[int, Texts]]]) -> Iterator[Any]:
    """The first of all pairs of a corpus with one key."""
    key, placed = group
    pairs = list(placed)
    yield key, min(pairs)[1]
    if len(pairs) > 1:
        yield _skip(key[0], rules.DUPLICATE, len(pairs) - 1)


def _clean(pair: Pair, tests: Sequence[dict[str, rules.Test]]) -> Iterator[Any]:
    """A pair, unless a test of its corpus finds it."""
    (number, _), texts = pair
    if faults := rules.faults(tests[number], *texts):
        yield _skip(number, faults[0], 1)
    else:
        yield pair


def _skip(number: int, reason: str, count: int) -> TaggedOutput:
    return TaggedOutput(SKIPPED, ((number, reason), count))


def _size(pair: Pair) -> tuple[int, list[int]]:
    (number, _), texts = pair
    return number, [1, *(len(text.encode("utf-8", "surrogatepass")) for text in texts)]


def _sums(rows: Iterable[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


def _is_sampled(pair: Pair, sizes: Mapping[int, Sequence[int]]) -> bool:
    """Whether the vocabulary learns from a pair: one of `SAMPLE`, by its key."""
    (_, key), _ = pair
    total = sum(pairs for pairs, *_ in sizes.values())
    return int.from_bytes(key, "big") * total < SAMPLE * _KEYS


def _learn(pairs: list[Pair], data: DataConfig, folder: str) -> str:
    """Writes the vocabulary to the folder; returns its identity."""
    if not pairs:
        raise InputError("data.clean leaves no pair. Name fewer rules.")
    named = corpora.training_corpora(data)
    ordered = [texts for _, texts in sorted(pairs)]
    text = corpora.joined(named, [_stream(ordered), *(_stream([]) for _ in named[1:])])
    if data.augment:
        languages = corpora.languages(data)
        text = changed_texts(text, data.augment, TrainConfig.seed, languages)
    codec = own_codec(data, FIELDS) or learned_codec(text, data, FIELDS[0])
    codec.save(folder)
    return codec.identity


def _stream(pairs: Sequence[Texts]) -> ExampleStream:
    columns = zip(*pairs, strict=True) if pairs else [()] * len(FIELDS)
    return Examples(dict(zip(FIELDS, map(list, columns), strict=True))).stream()


def _divided(
    pair: Pair, sizes: Mapping[int, Sequence[int]], shard_pairs: int
) -> tuple[tuple[int, int], tuple[bytes, Texts]]:
    """A pair with the number of its shard in the corpus."""
    (number, key), texts = pair
    shards = -(-sizes[number][0] // shard_pairs)
    return (number, int.from_bytes(key, "big") % shards), (key, texts)


def _tokenise(
    group: tuple[tuple[int, int], Iterable[tuple[bytes, Texts]]],
    identity: str,
    named: Sequence[Corpus],
    max_length: int,
    folder: str,
) -> Iterator[Any]:
    """Writes a shard, sorted by key. The vocabulary with this identity is in the folder."""
    (corpus, number), keyed = group
    pairs = [texts for _, texts in sorted(keyed)]
    text, skipped = Part("", _stream(pairs), named[corpus].tag).tagged, Counter[str]()
    parts = list(tokenise(text, encoder_of(folder, identity), max_length, len(pairs), skipped))
    if parts:
        examples = TokenExamples.concatenated(parts)
        content = write_shard(pathlib.Path(folder, str(corpus)), number, examples)
        yield Shard(corpus, number, len(examples), content)
    yield from (_skip(corpus, reason, count) for reason, count in skipped.items())


def _named(row: Any, kind: str) -> tuple[str, Any]:
    return kind, row


def _write_report(rows: list[tuple[str, Any]], folder: str) -> None:
    write_whole(pathlib.Path(folder, REPORT), json.dumps(sorted(rows)))
