"""Prepares corpora on Apache Beam: the steps from lines of text to the shards of token stores.

    read -> buckets: deduplicate, clean -> sample -> learn the vocabulary
                                      |                    |
                                      +----> divide -> tokenise -> report

Each pair has a key of 64 bits (`text_keys.py`). The key says in which bucket and in which shard the
pair is, at which place, and whether the vocabulary learns from it. So all runners, with any number
of workers, write the same bytes. Workers share the folder of the results.

Steps pass on blocks of pairs, because a runner needs many times the memory of its text for a pair.
"""

import json
import pathlib
import pickle
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import AsDict, AsSingleton, TaggedOutput

from tf_transformer.config import Corpus, DataConfig, TrainConfig
from tf_transformer.data import corpora, rules
from tf_transformer.data.augmentation.text_augmentation import changed_texts
from tf_transformer.data.examples import Examples, ExampleStream, Part, Texts
from tf_transformer.data.prepared import KEYS
from tf_transformer.data.prepared_shards import REPORT, SHARD, SIZE, SKIPPED, Shard, encoder_of
from tf_transformer.data.readers.text import FIELDS
from tf_transformer.data.store import write_shard
from tf_transformer.data.text_keys import pair_key
from tf_transformer.data.tokens import TokenExamples, tokenise
from tf_transformer.data.training_keys import keys_of
from tf_transformer.data.vocabulary import learned_codec, own_codec
from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole

SAMPLE = 1_000_000  # pairs that a vocabulary learns from, about
_KEYS = 2**64
_ERROR = re.compile(r"InputError: (.+?)( \[while running .*)?$", re.MULTILINE)

_BUCKETS = 4096  # of a corpus, by the first bits of the keys: parts that workers clean
_LEAST = 32  # pairs that are read for one bucket, before they are passed on

Block = bytes
"""Packed rows, lists that start with a key."""


def pack(rows: Sequence[Any]) -> Block:
    """Makes a block, which needs a fraction of the memory of its rows."""
    return zlib.compress(pickle.dumps(rows), 1)


def unpack(*blocks: Block) -> list[Any]:
    """The rows of blocks, in the order of their keys."""
    return sorted(row for block in blocks for row in pickle.loads(zlib.decompress(block)))


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
    chosen = rules.chosen(data.clean)
    is_distinct = chosen.pop(rules.DUPLICATE, None) is not None
    languages = [corpora.two_languages(corpus, data) for corpus in named]
    tests = [{name: rule.start(pair) for name, rule in chosen.items()} for pair in languages]
    read = (
        root
        | beam.Create(list(enumerate(named)))
        | "Read" >> beam.FlatMap(_read, data).with_outputs(SKIPPED, main="blocks")
    )
    clean = (
        read.blocks
        | "Buckets" >> beam.GroupByKey()
        | "Clean" >> beam.FlatMap(_clean, tests, is_distinct).with_outputs(SKIPPED, main="blocks")
    )
    sizes = clean.blocks | "Measure" >> beam.Map(_size) | "Sum" >> beam.CombinePerKey(_sums)
    shards = _write_shards(clean.blocks, sizes, data, folder, shard_pairs)
    skipped = (
        (read[SKIPPED], clean[SKIPPED], shards[SKIPPED])
        | beam.Flatten()
        | "Count" >> beam.CombinePerKey(sum)
    )
    kinds = {SHARD: shards.shards, SIZE: sizes, SKIPPED: skipped}
    _ = (
        [rows | f"Of {kind}" >> beam.Map(_named, kind) for kind, rows in kinds.items()]
        | "Join" >> beam.Flatten()
        | "Collect" >> beam.combiners.ToList()
        | "Report" >> beam.Map(_write_report, folder)
    )


def _write_shards(blocks: Any, sizes: Any, data: DataConfig, folder: str, shard_pairs: int) -> Any:
    """Learns the vocabulary from clean blocks, and writes their ids; the outputs of `_tokenise`."""
    learned = (
        blocks
        | "Sample" >> beam.FlatMap(_sampled, AsDict(sizes))
        | beam.combiners.ToList()
        | "Learn" >> beam.Map(_learn, data, folder)
    )
    return (
        blocks
        | "Divide" >> beam.FlatMap(_divided, AsDict(sizes), shard_pairs)
        | "Gather" >> beam.GroupByKey()
        | "Tokenise"
        >> beam.FlatMap(_tokenise, AsSingleton(learned), data, folder).with_outputs(
            SKIPPED, main="shards"
        )
    )


def _read(numbered: tuple[int, Corpus], data: DataConfig) -> Iterator[Any]:
    """The pairs of a corpus by bucket, with their places in the corpus: (key, place, texts)."""
    number, corpus = numbered
    skipped, waiting = Counter[str](), defaultdict[int, list[Any]](list)
    for place, texts in enumerate(corpora.stream([corpus], FIELDS, data).start(skipped)):
        key = pair_key(*texts)
        bucket = key * _BUCKETS // _KEYS
        waiting[bucket].append((key, place, texts))
        if len(waiting[bucket]) == _LEAST:
            yield (number, bucket), pack(waiting.pop(bucket))
    yield from (((number, bucket), pack(rows)) for bucket, rows in waiting.items())
    yield from _skips(number, skipped)


def _clean(
    group: tuple[tuple[int, int], Iterable[Block]],
    tests: Sequence[dict[str, rules.Test]],
    is_distinct: bool,
) -> Iterator[Any]:
    """The pairs of a bucket that no test of their corpus finds: (key, texts).

    If pairs are distinct, the first one of the corpus with its key stays.
    """
    (number, _), blocks = group
    kept, skipped, before = list[Any](), Counter[str](), None
    for key, _, texts in unpack(*blocks):
        if is_distinct and key == before:
            skipped[rules.DUPLICATE] += 1
        elif found := rules.faults(tests[number], *texts):
            skipped[found[0]] += 1
        else:
            kept.append((key, texts))
        before = key
    if kept:
        yield number, pack(kept)
    yield from _skips(number, skipped)


def _skips(number: int, skipped: Mapping[str, int]) -> Iterator[TaggedOutput]:
    """The numbers of skipped pairs of a corpus by reason, as further output of a step."""
    return (TaggedOutput(SKIPPED, ((number, reason), n)) for reason, n in skipped.items())


def _size(block: tuple[int, Block]) -> tuple[int, list[int]]:
    """Pairs, bytes of the sources and bytes of the targets of a corpus, in a block of it."""
    number, packed = block
    rows = ([1, *(len(x.encode("utf-8", "surrogatepass")) for x in y)] for _, y in unpack(packed))
    return number, _sums(rows)


def _sums(rows: Iterable[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


def _sampled(block: tuple[int, Block], sizes: Mapping[int, Sequence[int]]) -> Iterator[Block]:
    """The pairs that the vocabulary learns from, about `SAMPLE`: (number of corpus, key, texts)."""
    number, packed = block
    total = sum(pairs for pairs, *_ in sizes.values())
    rows = [(number, *row) for row in unpack(packed) if row[0] * total < SAMPLE * _KEYS]
    if rows:
        yield pack(rows)


def _learn(blocks: list[Block], data: DataConfig, folder: str) -> str:
    """Writes the vocabulary to the folder; returns its identity."""
    if not blocks:
        raise InputError("data.clean leaves no pair. Name fewer rules.")
    named = corpora.training_corpora(data)
    ordered = [texts for *_, texts in unpack(*blocks)]
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
    block: tuple[int, Block], sizes: Mapping[int, Sequence[int]], shard_pairs: int
) -> Iterator[tuple[tuple[int, int], Block]]:
    """The pairs of a block by the number of their shard in the corpus."""
    number, packed = block
    shards = defaultdict[int, list[Any]](list)
    for row in unpack(packed):
        shards[row[0] % -(-sizes[number][0] // shard_pairs)].append(row)
    yield from (((number, shard), pack(rows)) for shard, rows in shards.items())


def _tokenise(
    group: tuple[tuple[int, int], Iterable[Block]], identity: str, data: DataConfig, folder: str
) -> Iterator[Any]:
    """Writes a shard, sorted by key. The vocabulary with this identity is in the folder."""
    (corpus, number), blocks = group
    pairs = [texts for _, texts in unpack(*blocks)]
    tag = corpora.training_corpora(data)[corpus].tag
    text, skipped = Part("", _stream(pairs), tag).tagged, Counter[str]()
    encoder = encoder_of(folder, identity)
    parts = list(tokenise(text, encoder, data.max_length, len(pairs), skipped))
    if parts:
        examples, own = TokenExamples.concatenated(parts), pathlib.Path(folder, str(corpus))
        content = write_shard(own, number, examples)
        write_whole(own / f"{number:05d}{KEYS}", (keys.tobytes() for keys in keys_of(text)))
        yield Shard(corpus, number, len(examples), content)
    yield from _skips(corpus, skipped)


def _named(row: Any, kind: str) -> tuple[str, Any]:
    return kind, row


def _write_report(rows: list[tuple[str, Any]], folder: str) -> None:
    write_whole(pathlib.Path(folder, REPORT), json.dumps(sorted(rows)))
