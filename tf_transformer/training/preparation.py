"""Prepares what a training run reads: the run's configuration, codec and batches."""

import functools
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from tf_transformer.config import Config, Corpus, DataConfig
from tf_transformer.config.data import SHARD_PAIRS
from tf_transformer.config.train import Stage
from tf_transformer.data import corpora
from tf_transformer.data.augmentation import text_augmentation
from tf_transformer.data.augmentation.glossary import learned_glossary
from tf_transformer.data.batch_sampler import Augment, BatchSampler
from tf_transformer.data.bpe_dropout import BpeDropout, MergeTable
from tf_transformer.data.examples import Examples, ExampleStream, spread
from tf_transformer.data.mixture import Component, Mixture
from tf_transformer.data.own_shards import OwnShards
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.store import TokenStore, find_or_make
from tf_transformer.data.tokens import Encoder
from tf_transformer.data.training_keys import keys_of, stored_keys
from tf_transformer.data.word_links import with_links
from tf_transformer.errors import InputError
from tf_transformer.files.writing import write_whole
from tf_transformer.run.directions import needs_language
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.tasks.task import Splits, Task, TestSet
from tf_transformer.text.codec import Codec, reading_codec
from tf_transformer.text.inline_terms import MARKS
from tf_transformer.text.seen_words import seen_words
from tf_transformer.text.special_ids import UNK_ID
from tf_transformer.text.terms import Term, parse_terms, read_terms, to_lines
from tf_transformer.training.open_options import require_same_options
from tf_transformer.training.stages import stages_of
from tf_transformer.training.strategy import (
    broadcast,
    is_chief,
    num_workers,
    smallest,
    worker_number,
)

SAMPLES = 32  # validation inputs in the run's folder, for the check of an export
# Which validation examples are scored; stored with the identities of the text. Runs of earlier
# versions store nothing here, and score the first examples.
SCORED = {"scored": "sample"}


class TrainingData(NamedTuple):
    """The data of a training run."""

    codec: Codec
    texts: Sequence[BatchSampler]  # of each stage of the training
    valid: Mapping[str, BatchSampler]  # by the name of their corpus, "" for a single one
    scored: TestSet  # the validation examples that are predicted and scored
    scored_corpora: Sequence[str]  # the corpus of each of them

    @property
    def train(self) -> BatchSampler:
        """The text of the first stage."""
        return self.texts[0]


def prepare(run: Run, task: Task, strategy: tf.distribute.Strategy | None = None) -> TrainingData:
    """Prepares the run's folder and data. A process that trains alone needs no TensorFlow for it.

    Several processes have a strategy; they wait for the files that the chief writes. Data that
    cannot be used, and a folder that cannot be written or is of another configuration, are an
    `InputError`.
    """
    if strategy and not is_chief(strategy):
        broadcast(strategy, [0.0])
        return _divided(_batches(run, task, task.load_splits(run.config)), run.config, strategy)
    require_trainable(run)
    _require_options_of(task, run.config)
    splits = task.load_splits(run.config)
    if run.folder.has_checkpoint:
        _require_same_text(run.folder, splits)
    else:
        _start(run, task, splits)
    data = _batches(run, task, splits)
    if strategy:
        broadcast(strategy, [0.0])
        return _divided(data, run.config, strategy)
    return data


def _divided(data: TrainingData, config: Config, strategy: tf.distribute.Strategy) -> TrainingData:
    """The data of one of several workers: its own shards of a prepared text, if each has some."""
    worker, workers = worker_number(strategy), num_workers(strategy)
    agree = functools.partial(smallest, strategy)

    def of_worker(text: BatchSampler) -> BatchSampler:
        divides = config.data.prepared and not text.store.epochs_differ
        if not divides or not 1 < workers <= text.store.num_shards():
            return text
        return text.of_worker(worker, workers, agree)

    return data._replace(texts=list(map(of_worker, data.texts)))


def _is_pair(task: Task) -> bool:
    return task.only_text and set(task.fields) == set(text_augmentation.FIELDS)


def _require_options_of(task: Task, config: Config) -> None:
    """Raises an `InputError` for options of texts that the task does not support."""
    data, name, option, expected = config.data, config.task.name, "", ""
    if data.bpe_dropout and not task.only_text:
        option, expected = "bpe_dropout", f"Expected 0 for {name}, got {data.bpe_dropout}."
    elif data.tokenizer and not task.separable:
        option = "tokenizer"
        expected = f"Leave it out for {name}, whose vocabulary has symbols of its own."
    elif config.train.guided_alignment_weight and not _is_pair(task):
        option, expected = "corpora: alignments", f"Leave them out for {name}."
    elif (data.clean or any(x.clean for x in data.corpora)) and not _is_pair(task):
        option, expected = "clean", f"Leave it out for {name}."
    elif data.augment and not _is_pair(task):
        kind, rate = next(item for item in asdict(data.augment).items() if item[1])
        option, expected = f"augment.{kind}", f"Expected 0 for {name}, got {rate}."
    elif tags := {x.tag for x in (*data.corpora, *data.valid_corpora) if x.tag and not task.source}:
        option, expected = f"corpora: tag {min(tags)}", f"Expected none for {name}."
    elif data.vocabularies != "shared" and not task.separable:
        option = f"vocabularies {data.vocabularies}"
        expected = f"Expected shared for {name}, which has one vocabulary."
    if option:
        raise InputError(f"data.{option} is for translation. {expected}")
    names = corpora.labels(corpora.training_corpora(data))
    if unknown := {x for stage in config.train.stages for x in stage.corpora} - {*names}:
        raise InputError(
            f"train.stages: there is no corpus {min(unknown)!r}; the corpora are "
            f"{', '.join(names)}."
        )
    unused = {*names} - {x for stage in stages_of(config.train) for x in stage.corpora or names}
    if unused:
        raise InputError(
            f"no stage of train.stages has the corpus {min(unused)!r}. Name it in a stage, or "
            "leave it out of data.corpora."
        )


def require_trainable(run: Run) -> None:
    """Raises an `InputError` if the run's configuration cannot be trained in its folder.

    With a checkpoint, training resumes, and needs the configuration of the folder.
    `Rules.on_resume` says which options may change.
    Without a checkpoint, the folder may hold files of a run only if a failed start made them. The
    options have to fit the weights of `train.init_from`.
    """
    folder = run.folder
    if folder.has_checkpoint:
        return _require_same_options(folder, run.config)
    origin = run.origin  # read before the text
    if origin and folder.path.resolve() == origin.folder.path.resolve():
        raise InputError(
            f"train.init_from and --run_dir are both {folder.path}, so the training would "
            "overwrite the weights that it starts with. Give another --run_dir."
        )
    require_same_options(run)
    if not folder.start_mark and (files := folder.files()):
        names = ", ".join(sorted({path.relative_to(folder.path).parts[0] for path in files}))
        raise InputError(
            f"--run_dir {folder.path} has no checkpoint to resume from, but files that training "
            f"would overwrite ({names}). Give another --run_dir. To start with the weights of the "
            f"model in this folder, add --train.init_from {folder.path}."
        )


def _require_same_options(folder: RunFolder, config: Config) -> None:
    has_identity, rules = folder.text.is_file(), config.rules
    may_change = {name for name in rules if rules[name].on_resume == "free"}
    if has_identity:
        may_change |= {name for name in rules if rules[name].on_resume == "known_text"}
    elif tfds := [corpus for corpus in config.data.corpora if corpus.format == "tfds"]:
        _require_same_direction(folder, config.data, tfds[0])  # languages were not stored then
        may_change |= set(corpora.LANGUAGES)
    if config.train.lora:
        may_change.add("train.init_from")  # it may have moved; adapters know its weights
    changed = {
        name: values
        for name, values in folder.load_config().differences(config).items()
        if name not in may_change
    }
    if changed:
        listed = "; ".join(f"{k} was {old!r}, now {new!r}" for k, (old, new) in changed.items())
        raise InputError(
            f"{folder.path} holds a run of another configuration: {listed}. Give --run_dir alone "
            "to resume this run, or give another --run_dir."
        )


def _require_same_direction(folder: RunFolder, data: DataConfig, corpus: Corpus) -> None:
    """Raises an `InputError` if an earlier version trained the other direction of a corpus."""
    languages = [data.source_language, data.target_language]
    if languages != sorted(languages, reverse=corpus.reverse):
        source, target = languages
        raise InputError(
            f"{folder.path} was trained from {target} to {source}, because an earlier version took "
            f"the languages of {corpus.name} in alphabetical order. This version would train from "
            f"{source} to {target}. Give another --run_dir."
        )


def _require_same_text(folder: RunFolder, splits: Splits) -> None:
    """Raises an `InputError` if the run started with another text.

    The folder of an earlier version has no identities; it gets the identities of the present text.
    """
    identities = splits.identities()
    stored = folder.load_text()
    if stored is None:
        return folder.save_text(identities)
    if changed := " and ".join(name for name in identities if stored.get(name) != identities[name]):
        raise InputError(
            f"the {changed} text of {folder.path} has changed since the run began, so its scores "
            "would not be comparable. Restore the text, or train on the new text in another "
            f"--run_dir; --train.init_from {folder.path} starts with these weights."
        )


def _start(run: Run, task: Task, splits: Splits) -> None:
    """Writes the files of a new run, after everything that may be wrong has been read."""
    terms = _learned_terms(run.config, splits.train)
    codec, folder = _new_codec(run, task, splits.train, terms), run.folder
    identities = splits.identities()
    folder.mark_start()
    folder.save_config(run.config)
    folder.save_text(identities | SCORED)
    codec.save(folder.path)
    if terms:
        write_whole(folder.terms, to_lines(terms))
    folder.save_samples(spread(task.test_set(splits.valid).inputs, SAMPLES))
    if _is_pair(task) and (keys := _keys(run, splits.train)):
        if run.origin and run.origin.folder.keys.is_file():
            keys.insert(0, stored_keys(run.origin.folder.keys))
        write_whole(folder.keys, (block.tobytes() for blocks in keys for block in blocks))


def _keys(run: Run, text: ExampleStream) -> list[Iterable[np.ndarray]]:
    """The keys of the training text, in parts; [] if a prepared text has none."""
    if prepared := run.config.data.prepared:
        return list(map(stored_keys, Prepared.load(prepared).keys))
    return [keys_of(text.tagged)]


def _batches(run: Run, task: Task, splits: Splits) -> TrainingData:
    config, data, codec = run.config, run.config.data, run.codec
    rules = config.decode.punctuation, config.decode.default_tag
    reader = reading_codec(codec, task.source, *rules)
    encoder = Encoder(
        functools.partial(task.encode_examples, codec=reader, max_length=data.max_length),
        max(reader.sizes),
        identity=f"{config.task.name} {reader.identity}",
    )

    def store(name: str, text: ExampleStream, prepared: str = "") -> TokenStore:
        return find_or_make(
            *(text, encoder, data.max_length, SHARD_PAIRS),
            folder=prepared or data.cache_dir or run.folder.tokens,
            keep=bool(data.cache_dir),
            report=lambda counts: tqdm.write(f"{name}: {counts}"),
            warn=lambda doubt: tqdm.write(f"warning: {name}: {doubt}", file=sys.stderr),
        )

    def sampler(
        text: TokenStore | Mixture, augment: Augment | None = None, stage: int = 0
    ) -> BatchSampler:
        return BatchSampler(
            *(text, data.batch_tokens, data.bucket_width, config.train.seed + stage, augment),
            keeps_budget=bool(data.augment),
        )

    pairs = splits.train
    if config.train.guided_alignment_weight:
        pairs = with_links(pairs, data)
    components = [
        Component(x.name, store(f"training, {x.name}", x.tagged, data.prepared), x.weight)
        for x in pairs.parts
    ]
    stages, augment = stages_of(config.train), _augment(run, task, reader)
    if components:
        stores: list[Mixture | TokenStore] = [_mixture(components, x, config) for x in stages]
    else:
        stores = [store("training", pairs, data.prepared)] * len(stages)
    texts = [sampler(text, augment, number) for number, text in enumerate(stores)]
    valid = {
        name: sampler(store(", ".join(filter(None, ["validation", name])), part.stream()))
        for name, part in splits.valid.by_corpus().items()
        if len(part)
    }
    return TrainingData(codec, texts, valid, *_scored(run, task, splits.valid))


def _mixture(components: Sequence[Component], stage: Stage, config: Config) -> Mixture:
    """The corpora of a stage."""
    chosen = [x for x in components if not stage.corpora or x.name in stage.corpora]
    return Mixture(chosen, SHARD_PAIRS, config.train.seed, config.data.temperature)


def _scored(run: Run, task: Task, valid: Examples) -> tuple[TestSet, list[str]]:
    """A sample of the validation examples, and the corpus of each of them.

    For a run of an earlier version, these are the first examples.
    """
    inputs, references = task.test_set(valid)
    corpus_sizes = {name: len(task.test_set(x).inputs) for name, x in valid.by_corpus().items()}
    names = [name for name, size in corpus_sizes.items() for _ in range(size)]
    count, stored = run.config.train.valid_score_examples, run.folder.load_text() or {}
    if SCORED.items() <= stored.items():
        sample = TestSet(spread(inputs, count), spread(references, count))
        return sample, spread(names, count)
    if 0 < count < len(inputs):
        tqdm.write(
            f"scored: the first {count:,} of {len(inputs):,} validation examples, as an earlier "
            "version did at the start of this run. A new run scores a sample of all."
        )
    return TestSet(inputs[:count], references[:count]), names[:count]


def _learned_terms(config: Config, stream: ExampleStream) -> list[Term]:
    """The terms that a new training learns to read, from its text, with `data.augment.terms`."""
    if not config.data.augment.terms:
        return []
    terms = learned_glossary(stream)
    if not terms:
        raise InputError(
            "data.augment.terms found no words that translate each other, because the text has too "
            "few pairs. Leave it out, or give a longer text."
        )
    tqdm.write(f"terms: {len(terms):,} words of the training text with their translations")
    return terms


def _new_codec(run: Run, task: Task, stream: ExampleStream, terms: Sequence[Term]) -> Codec:
    """The codec of a new run: learned, or the codec of the run in `train.init_from`."""
    config = run.config
    before: list[str] = []
    if run.origin:
        codec = task.reuse_codec(run.origin.codec, stream, config)
        before = codec.seen_words
    else:
        codec = task.train_codec(_changed(stream, config, terms), config)
    _require_tags(stream.tags, codec, task, config)
    if terms and UNK_ID in codec[task.source].encode(MARKS):
        raise InputError(
            f"data.augment.terms needs a vocabulary with the marks {MARKS}, or with bytes. Train "
            "a new vocabulary."
        )
    if config.train.export_best and needs_language(config, codec):
        raise InputError(
            "train.export_best needs decode.target_tag: the language of texts that name none, for "
            f"example {min(codec[task.source].tags)}."
        )
    knows_others = bool(run.origin) == bool(before) and not config.data.prepared
    if _is_pair(task) and knows_others:  # else some words are not known
        sources = (texts[stream.fields.index(task.source)] for texts in _changed(stream, config))
        codec.seen_words = seen_words(sources, before)
    return codec


def _require_tags(tags: Sequence[str], codec: Codec, task: Task, config: Config) -> None:
    """Raises an `InputError` if the vocabulary lacks a tag of the corpora."""
    if missing := [tag for tag in tags if tag not in codec[task.source].tags]:
        own = config.train.init_from or config.data.tokenizer or "a vocabulary of bytes"
        raise InputError(
            f"the tag {missing[0]} of data.corpora is not in {own}, which has "
            f"{', '.join(sorted(codec[task.source].tags)) or 'no tags'}. Give one of its tags, or "
            "train a new vocabulary."
        )


def _changed(stream: ExampleStream, config: Config, terms: Sequence[Term] = ()) -> ExampleStream:
    """The texts of the training as a vocabulary learns from them: with `data.augment`."""
    if not config.data.augment:
        return stream
    languages = corpora.run_languages(config)
    return text_augmentation.changed_texts(
        stream, config.data.augment, config.train.seed, languages, terms
    )


def _augment(run: Run, task: Task, codec: Codec) -> Augment | None:
    """Makes the changes of the training examples: of the texts, then of the pieces."""
    config, data, text, dropout = run.config, run.config.data, None, None
    limits = data.max_length, config.train.seed
    if data.augment:
        languages = corpora.run_languages(config)
        terms = parse_terms(read_terms(run.folder.terms)) if data.augment.terms else []
        text = text_augmentation.TextAugmentation(data.augment, codec, *limits, languages, terms)
    if data.bpe_dropout:
        tables = {name: MergeTable.of(tokenizer) for name, tokenizer in codec.tokenizers.items()}
        by_field = {field: tables.get("") or tables[field] for field in task.fields}
        dropout = BpeDropout(by_field, data.bpe_dropout, *limits)
    if text is None or dropout is None:
        return text or dropout
    return lambda number, examples: dropout(number, text(number, examples))


def with_trained_length(
    run: Run, stores: Sequence[TokenStore | Mixture | OwnShards], resumes: bool
) -> Config:
    """The run's configuration with the longest source that its model is trained on.

    While a thread still tokenises, this is `data.max_length`, which no example exceeds. It stays
    unknown if a training run before this one, of the run or of `train.init_from`, did not store it.
    """
    decode = run.config.decode
    before = run.folder.load_config() if resumes else run.origin and run.origin.config
    known = before.decode.trained_source_length if before else 0
    if "source" not in stores[0].names or (before and not known):
        return run.config
    most = run.config.data.max_length
    lengths = [store.longest("source") if store.is_complete else most for store in stores]
    longest = max(*lengths, known, decode.trained_source_length)
    return replace(run.config, decode=replace(decode, trained_source_length=longest))
