"""A corpus, and the short forms of a list of corpora."""

from dataclasses import dataclass, replace

from tf_transformer.config.option import check, free, not_negative, positive
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath, PathOrAddress

GENERATED_PAIRS = 40_000
# Short forms that complete corpora of a list, with the field that each gives.
COMPLETED = {"tfds_dir": "data_dir", "generated_pairs": "pairs"}


@dataclass(frozen=True)
class Corpus:
    """A corpus: two files, one file that holds both sides, a TFDS corpus, or generated text.

    Attributes:
        source: file of source sentences, one per line. Any file may be plain or compressed.
        target: file of translations; line n translates line n of source.
        path: one file that holds both sides of each example; replaces source and target.
        name: name of a corpus without a file, like wmt14_translate/de-en with format tfds.
        format: text, tsv, jsonl, tmx, tfds, generated, or the name of a registered format. Empty:
            the ending of the file decides.
        columns: the places of source and target in path. tsv: names from the first line, or
            numbers from 1 when the first line is an example; default 1 and 2. jsonl: keys;
            default source and target, or the languages of the data options. tmx: languages;
            default the languages of the data options.
        split: split of a tfds or generated corpus; empty: train.
        reverse: translate a tfds corpus from the second language of the pair to the first.
        data_dir: folder of the prepared corpora of tfds; empty: the default of TFDS.
        pairs: pairs in the train split of a generated corpus; 0: 40,000.
    """

    source: LocalPath = ""
    target: LocalPath = ""
    path: LocalPath = ""
    name: str = ""
    format: str = ""
    columns: tuple[str, ...] = ()
    split: str = ""
    reverse: bool = False
    data_dir: PathOrAddress = ""
    pairs: int = free(0, not_negative)

    def __post_init__(self) -> None:
        check(self, "corpus")
        if bool(self.source) != bool(self.target):
            raise InputError(
                "a corpus of two files has source and target, but only "
                f"{self.source or self.target} is given. For one file with both sides give path."
            )
        if bool(self.source) + bool(self.path) + bool(self.name) > 1:
            raise InputError(
                "a corpus has source and target, path, or name; got "
                f"{', '.join(filter(None, [self.source, self.path, self.name]))}. List them as "
                "separate corpora."
            )

    def __repr__(self) -> str:
        """The fields that are given."""
        given = {name: value for name in self.__match_args__ if (value := getattr(self, name))}
        return f"Corpus({', '.join(f'{name}={value!r}' for name, value in given.items())})"


@dataclass(frozen=True)
class ShortForms:
    """Options that stand for a list of corpora, `data.corpora` or `data.valid_corpora`.

    They are short for one corpus. `config.yaml` has the list. On the command line, a short form
    overrides the list in a file.
    """

    train_source: LocalPath = free("", short_for="corpora")
    train_target: LocalPath = free("", short_for="corpora")
    valid_source: LocalPath = free("", short_for="valid_corpora")
    valid_target: LocalPath = free("", short_for="valid_corpora")
    train_file: LocalPath = free("", short_for="corpora")
    valid_file: LocalPath = free("", short_for="valid_corpora")
    tfds: str = free("", short_for="corpora")
    tfds_reverse: bool = False
    tfds_valid_split: str = free("", short_for="valid_corpora")
    tfds_dir: PathOrAddress = ""
    generated_pairs: int = free(GENERATED_PAIRS, positive)

    def __post_init__(self) -> None:
        check(self, "data")
        for side in ("train", "valid"):
            if bool(getattr(self, f"{side}_source")) != bool(getattr(self, f"{side}_target")):
                raise InputError(
                    f"data.{side}_source and data.{side}_target must be given together."
                )
        if bool(self.train_source) + bool(self.train_file) + bool(self.tfds) > 1:
            raise InputError(
                "give data.train_file, data.train_source with data.train_target, or data.tfds: "
                "one of them only."
            )
        if (self.tfds_reverse or self.tfds_valid_split) and not self.tfds:
            name = "tfds_reverse" if self.tfds_reverse else "tfds_valid_split"
            raise InputError(f"data.{name} needs data.tfds.")

    @property
    def corpora(self) -> tuple[Corpus, ...]:
        """The corpora of the training text."""
        if self.tfds:
            return (Corpus(name=self.tfds, format="tfds", reverse=self.tfds_reverse),)
        return _of_files(self.train_file, self.train_source, self.train_target)

    @property
    def valid_corpora(self) -> tuple[Corpus, ...]:
        """The corpora of the validation text."""
        listed = _of_files(self.valid_file, self.valid_source, self.valid_target)
        if listed or not self.tfds_valid_split:
            return listed
        return tuple(replace(corpus, split=self.tfds_valid_split) for corpus in self.corpora)

    def completed(self, corpora: tuple[Corpus, ...]) -> tuple[Corpus, ...]:
        """Corpora with `tfds_dir` and `generated_pairs`, unless they have their own."""
        pairs = self.generated_pairs if self.generated_pairs != GENERATED_PAIRS else 0

        def completed(corpus: Corpus) -> Corpus:
            if corpus.format == "tfds":
                return replace(corpus, data_dir=corpus.data_dir or self.tfds_dir)
            if corpus.format == "generated":
                return replace(corpus, pairs=corpus.pairs or pairs)
            return corpus

        return tuple(map(completed, corpora))


def _of_files(file: str, source: str, target: str) -> tuple[Corpus, ...]:
    if file:
        return (Corpus(path=file, format="text"),)
    return (Corpus(source, target),) if source else ()
