"""Trains a small, fast model on the translations of a large one: sequence-level distillation.

A student learns the translations of its teacher more easily than those of people, which vary more
(Kim and Rush 2016). It also needs no beam. The command is a chain of others: `synthesize`, `train`,
and a comparison of both models.
"""

import json
import pathlib
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from tf_transformer.commands import command_line
from tf_transformer.commands import train as training
from tf_transformer.commands.synthesize import MAX_RATIO, MIN_SCORE
from tf_transformer.config import (
    Config,
    Corpus,
    DataConfig,
    DecodeConfig,
    ModelConfig,
    TaskOptions,
    TrainConfig,
)
from tf_transformer.data import corpora
from tf_transformer.data.synthetic_corpus import SyntheticCorpus
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath
from tf_transformer.files.reading import check_file
from tf_transformer.files.writing import one_line, write_whole
from tf_transformer.machine.programs import run_command
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.text.codec import codec_files

if TYPE_CHECKING:
    from tf_transformer.tasks import TestSet

FOLDER = "distillation"  # in the folder of the student
SOURCE, VALID = "source.txt", "valid.jsonl"  # in this folder: the text of the teacher
FIELDS = ("source", "target")
# Of a student whose layers know something: below the rate of random weights, and above that of
# fine-tuning, 0.1, because some layers are missing.
LEARNING_RATE = 0.5


def main(
    teacher: LocalPath,
    run_dir: LocalPath,
    text: LocalPath = "",
    valid: Corpus = Corpus(),
    test: Corpus = Corpus(),
    min_score: float = MIN_SCORE,
    max_ratio: float = MAX_RATIO,
    model: ModelConfig = ModelConfig(),
    data: DataConfig = DataConfig(),
    train: TrainConfig = TrainConfig(),
    decode: DecodeConfig = DecodeConfig(),
    task: TaskOptions | str = "translation",
    given: Collection[str] | None = None,
) -> None:
    """Trains a student on the translations of its teacher, and compares both.

    The same command continues where it was interrupted. Options of the model, the search and the
    task that are not given are those of the teacher; so is the vocabulary. A student of the same
    width also starts with layers of the teacher. The table has BLEU, chrF, sentences per second on
    CPUs and the size of the SavedModel of both models, each with its own search.

    Args:
        teacher: folder of the run that translates; a,b,c for an ensemble, whose first run gives
            the options.
        run_dir: folder of the student. Its folder `distillation` has the translations.
        text: file of sentences to translate, one per line. Empty: the training text of the teacher.
        valid: validation pairs, like --valid.path valid.tsv; default: those of the teacher.
        test: pairs for the table, like --test.path test.tsv; default: the validation pairs.
        min_score: least mean log-probability of the tokens of a translation, nats; drops others.
        max_ratio: most tokens of the longer side per token of the shorter side.
        model: sizes and variants of the student.
        data: further training text, in data.corpora, and the batches.
        train: how the student is trained.
        decode: defaults for the predictions of the student.
        task: the task, translation.
        given: names of the options that were given, like model.num_decoder_layers. None: all were
            given.
    """
    large, folder = Run.load(teacher), pathlib.Path(run_dir, FOLDER)
    corpus, small = SyntheticCorpus(folder), RunFolder(run_dir)
    if large.config.task.name != "translation":
        raise InputError(f"--teacher must be a translator, got one of {large.config.task.name}.")
    if small.has_checkpoint and not corpus.card.exists():
        raise InputError(
            f"--run_dir {run_dir} holds a run that is not a student. Give another folder."
        )
    if text:
        check_file(text)
    given_pairs = [pairs for pairs in (valid, test) if pairs != Corpus()]
    for pairs in given_pairs:
        corpora.check_corpus(pairs)
    valid_corpora = (valid,) if valid in given_pairs else data.valid_corpora
    own = Config(model, data, train, decode, task)  # type: ignore[arg-type]
    config, given = student(large, own, given)
    if not (text and valid_corpora):
        _write_texts(large, folder, text)
    limits = ["--min_score", str(min_score), "--max_ratio", str(max_ratio)]
    paths = ["--run_dir", teacher, "--text", text or str(folder / SOURCE), "--to", str(folder)]
    if status := run_command("synthesize", *paths, *limits):
        sys.exit(status)
    place = folder.absolute() if data.folder else folder
    pairs, held_out = (Corpus(path=str(place / name)) for name in (corpus.pairs.name, VALID))
    config = config.with_options(
        {
            "data.corpora": tuple(dict.fromkeys([pairs, *data.corpora])),
            "data.valid_corpora": valid_corpora or (held_out,),
        }
    )
    options = (config.model, config.data, config.train, config.decode, config.task)
    training.main(run_dir, *options, given=given)
    print(comparison([teacher, run_dir], _test_set(small.load_config(), test)))


def student(teacher: Run, own: Config, given: Collection[str] | None) -> tuple[Config, set[str]]:
    """The configuration of a student, and the options that training must not choose.

    Options in `own` that are not in `given`, None: all are, become those of the teacher. An
    `InputError` says that a student cannot have the teacher's vocabulary.
    """
    rules, there = own.rules, teacher.config
    kept = set(rules if given is None else given)
    groups = ("model.", "data.", "decode.", "task.")
    shared = [name for name in rules if rules[name].from_origin != "free"]
    taken = there.values(name for name in shared if name.startswith(groups) and name not in kept)
    if there.data.target_language != corpora.SEVERAL:
        pair = zip(corpora.LANGUAGES, corpora.directions(there)[0], strict=True)
        taken |= {name: language or "" for name, language in pair if name in taken}
    config = own.with_options(taken)
    differing = [
        name
        for name in there.differences(config)
        if name.startswith("model.") and rules[name].from_origin == "same"
    ]
    if not differing:  # its layers start as layers of the teacher
        start = {"train.init_from": own.train.init_from or str(teacher.folder.path)}
        rate = {} if "train.learning_rate" in kept else {"train.learning_rate": LEARNING_RATE}
        config = config.with_options(start | rate)
    elif teacher.codec.kind == "joint":
        raise InputError(
            f"the vocabulary of {teacher.folder.path} cannot be shared with a model of another "
            f"shape. Leave out {', '.join(differing)}."
        )
    else:
        files = codec_files(teacher.folder.path).values()
        config = config.with_options({"data.tokenizer": ",".join(map(str, files))})
    fixed = {"data.tokenizer", "train.init_from", "train.learning_rate"}
    return config, kept | taken.keys() | fixed


def _write_texts(teacher: Run, folder: pathlib.Path, text: str) -> None:
    """Writes the text of the teacher's training, unless `text` replaces it, and its validation."""
    source, valid = folder / SOURCE, folder / VALID
    if valid.exists() and (text or source.exists()):  # of a start that was interrupted
        return
    try:
        learned, validation = corpora.load_examples(teacher.config, FIELDS)
        texts = "" if text else "".join(f"{line}\n" for line in distinct(learned.tagged))
    except InputError as error:
        raise InputError(
            f"the text of the teacher cannot be read: {error} Or give --text, and --valid.source "
            "with --valid.target."
        ) from error
    if texts:
        write_whole(source, texts)
    pairs = zip(*(validation[field] for field in FIELDS), strict=True)
    rows = (dict(zip(FIELDS, pair, strict=True)) for pair in pairs)
    write_whole(valid, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def distinct(pairs: Iterable[Sequence[str]]) -> Iterable[str]:
    """The distinct sources of pairs, each as one line.

    Example:
        >>> list(distinct([("a", "b"), ("c", "d"), ("a", "e")]))
        ['a', 'c']
    """
    return dict.fromkeys(one_line(source) for source, _ in pairs)


def _test_set(config: Config, test: Corpus) -> "TestSet":
    from tf_transformer import tasks

    task = tasks.for_run(config)
    if test != Corpus():
        return task.load_corpus(config, test)
    return task.test_set(task.load_splits(config).valid)


def comparison(run_dirs: Sequence[str], test: "TestSet") -> str:
    """A table of the measurements of runs; see `measure`."""
    from tf_transformer.export.measure import measure

    rows = [["run", "search", "BLEU", "chrF", "sentences/s", "MB"]]
    for run_dir in run_dirs:
        search, *numbers = measure(run_dir, *test)
        formats = ("{:.2f}", "{:.2f}", "{:,.0f}", "{:,.1f}")
        texts = [form.format(number) for form, number in zip(formats, numbers, strict=True)]
        rows.append([run_dir, search, *texts])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if place < 2 else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


if __name__ == "__main__":
    command_line.run(main)
