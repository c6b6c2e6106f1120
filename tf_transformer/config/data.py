"""The options of the examples: corpora, random changes of their text, tokens and batches."""

from dataclasses import InitVar, dataclass, field, fields, replace
from typing import Any, Literal, NoReturn

from tf_transformer.config.option import (
    at_least_one,
    check,
    free,
    inherited,
    not_negative,
    options_in,
    positive,
    rate,
    same,
    share,
)
from tf_transformer.errors import InputError
from tf_transformer.files.local_paths import LocalPath, PathOrAddress

GENERATED_PAIRS = 40_000
SHARD_PAIRS = 250_000  # in one shard of tokenised text
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
        format: text, tsv, jsonl, tmx, xliff, moses, wmt, parquet, po, tfds, generated, or the name
            of a registered format. Empty: the ending of the file decides.
        columns: the places of source and target in path. tsv: names from the first line, or
            numbers from 1 when the first line is an example; default 1 and 2. jsonl and
            parquet: keys; default source and target, or the languages of the data options. tmx,
            xliff, moses, wmt: languages; default the languages of the data options. In wmt,
            de:refA names a reference.
        split: split of a tfds or generated corpus; empty: train.
        reverse: tfds: translate from the second language of the pair to the first. po: translate
            from the translations to the messages.
        data_dir: folder of the prepared corpora of tfds; empty: the default of TFDS.
        pairs: pairs in the train split of a generated corpus; 0: 40,000.
        weight: how often an epoch has each pair, for one of several training corpora. 2: twice.
            0.5: in every second epoch. All pairs of a corpus are seen equally often.
        tag: a token that is put before each source text, such as >>de<<. It tells the model which
            target language to write, or where the text comes from. language: the tag of the
            target language of the corpus.
        limit: pairs that are read, from the start of the corpus; 0: all.
        clean: for a training corpus: rules in place of those of the option clean; none: no rule.
        alignments: file beside source and target with the links of their words, as
            `tf-transformer align` writes it, for train.guided_alignment_weight.
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
    weight: float = free(1.0, positive)
    tag: str = ""
    limit: int = free(0, not_negative)
    clean: tuple[str, ...] | str = ()
    alignments: LocalPath = ""

    def __post_init__(self) -> None:
        check(self, "corpus")
        if isinstance(self.clean, str):  # one text stands for a list of it
            object.__setattr__(self, "clean", (self.clean,) if self.clean else ())
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
        if self.alignments and not self.source:
            raise InputError(
                f"alignments {self.alignments} are for a corpus of two files, source and target."
            )

    def __repr__(self) -> str:
        """The fields that are given."""
        values = ((option, getattr(self, option.name)) for option in fields(self))
        given = (f"{option.name}={value!r}" for option, value in values if value != option.default)
        return f"Corpus({', '.join(given)})"


@dataclass(frozen=True)
class ShortForms:
    """Options that stand for a list of corpora, `data.corpora` or `data.valid_corpora`.

    They are short for one corpus. `config.yaml` has the list. On the command line, a short form
    overrides the list in a file.
    """

    train_source: LocalPath = free("", short_for="corpora")
    train_target: LocalPath = free("", short_for="corpora")
    train_alignments: LocalPath = free("", short_for="corpora")
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
        if self.train_alignments and not self.train_source:
            raise InputError("data.train_alignments needs data.train_source and train_target.")
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
        return _of_files(
            self.train_file, self.train_source, self.train_target, self.train_alignments
        )

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


def _of_files(file: str, source: str, target: str, alignments: str = "") -> tuple[Corpus, ...]:
    if file:
        return (Corpus(path=file, format="text"),)
    return (Corpus(source, target, alignments=alignments),) if source else ()


@dataclass(frozen=True)
class AugmentConfig:
    """Random changes of the training text, so that a model also learns unusual input.

    Each option is the share of the lines that is changed, from 0 to 1. Each epoch draws other
    lines. A line may have several changes. The changes are for translation only.

    Attributes:
        join: two to four sentences in a random order become one line. A fifth of these lines are
            one long sentence with semicolons.
        names: a name on both sides is replaced by another name, most often one with accents.
        end_mark: the last punctuation mark is left out on both sides.
        upper: both sides are in upper case.
        title: each word of both sides starts with a capital.
        lower: both sides are in lower case; with fewer than three words, only the source.
        typography: quotation marks, apostrophes, dashes and ellipses of both sides are typographic.
            Half of these lines, and all without such marks, also get quotation marks or a dash.
        typos: the source has a wrong, missing, doubled or swapped letter, or several.
        spaces: the source has a space before a mark, no space after a mark, or double spaces.
        copy: an emoji, URL, e-mail address, number, code or tag is at the same place of both sides.
        terms: the source has the translations of one to three words behind them. The words are
            learned from the training text. It sets decode.terms_as to text.
    """

    join: float = free(0.0, share)
    names: float = free(0.0, share)
    end_mark: float = free(0.0, share)
    upper: float = free(0.0, share)
    title: float = free(0.0, share)
    lower: float = free(0.0, share)
    typography: float = free(0.0, share)
    typos: float = free(0.0, share)
    spaces: float = free(0.0, share)
    copy: float = free(0.0, share)
    terms: float = free(0.0, share)

    def __post_init__(self) -> None:
        check(self, "data.augment")

    def __bool__(self) -> bool:
        """Whether any text is changed."""
        return any(getattr(self, option.name) for option in fields(self))


@dataclass(frozen=True)
class DataConfig:
    """The examples, and how they become batches.

    The examples come from a list of corpora. For one corpus there are short forms: two files, one
    file, or a TFDS corpus. Without any of these, the program generates its corpus. The
    configuration holds the corpora that a short form stands for, and no short form.

    Attributes:
        corpora: corpora of the training text, in this order, like [{source: a.en, target: a.de},
            {path: b.tmx}, {name: wmt14_translate/de-en, format: tfds}].
        valid_corpora: corpora of the validation text; empty: held out from the training text.
        temperature: raises the weights of small corpora, so that a corpus of n pairs has a share of
            n^(1/temperature). An epoch has each pair of the largest corpus once, and pairs of
            smaller ones more often. 1: no change. 5 is usual for many languages.
        folder: folder for relative paths of text files. Empty: the working folder, then the folder
            in the environment variable TF_TRANSFORMER_DATA.
        origin: where a user can get the files; the error for a missing file says this.
        source_language: source language of generated text, as a num2words code, and of corpora that
            name languages, like tmx. With tfds, training sets it to the language of the corpus.
        target_language: target language, like source_language. mul: each source text says its
            target language, so corpora may have different ones.
        clean: rules for pairs that training leaves out, such as [identical, length_ratio];
            recommended: those that `tf-transformer inspect` recommends; or the path of a .yaml file
            with filters of OpusFilter. For translations.
        held_out: distinct sources whose pairs become the validation text when none is given. At
            most a tenth of the sources and a tenth of the pairs are held out.
        held_out_by: the sides on which held-out pairs differ from all other pairs. both: no
            training pair has their source or their target. source: their targets may be in the
            training text, as in earlier versions. For translations.
        cache_dir: folder of tokenised text, which all runs on the same text share. Empty: a text
            of up to 250,000 pairs stays in memory, and a longer one goes to the run's folder, in
            shards of this size. Memory holds only a few shards. Training shuffles four shards
            together. If a longer text is sorted by topic, shuffle its lines first.
        prepared: folder that `tf-transformer prepare` wrote, with the vocabulary and the ids of the
            corpora. Training then reads no training text.
        max_length: longest sentence in tokens, on either side. Training skips longer pairs; a
            language model learns longer lines in windows. 0: 256, or batch_tokens if smaller.
        vocabularies: shared: one vocabulary for all texts. separate: one for each side of a
            translation, for languages with different scripts; needs model.tie_embeddings target or
            none. joint: the same tokens on both sides, which divide their texts in different ways;
            only for imported models.
        vocabulary_size: tokens in each vocabulary. A small text may give fewer. 261: the tokens
            are bytes, and no pieces are learned.
        tokenizer: SentencePiece model of your own, in place of a learned vocabulary. With
            vocabularies separate, two with a comma between them: source.model,target.model. Its
            pieces, its symbols and its normalization stay; vocabulary_size, segmentation and
            normalization have no effect.
        segmentation: method of SentencePiece for pieces of words. bpe: byte-pair encoding (the
            paper, En-De). unigram: pieces chosen by likelihood, like word pieces (the paper,
            En-Fr).
        bpe_dropout: probability that byte-pair encoding skips a merge in training (Provilkov et al.
            2020). Each epoch has other pieces. For small corpora. The rate 0.1 makes about a fifth
            more pieces, and batches grow accordingly.
        augment: random changes of the training text, such as upper case and copied emoji.
        normalization: rules that rewrite text before it is divided into pieces. nmt_nfc: white
            space becomes a space, invisible characters are deleted, and letters are composed with
            their marks. nmt_nfkc and nfkc: rules of SentencePiece, which also rewrite characters
            such as ½. identity: no rewriting.
        batch_tokens: most source tokens, and most target tokens, in a batch. Counts padding, and
            the batches of all replicas together.
        bucket_width: a batch holds sentences of similar length. Lengths are rounded up to multiples
            of this before they are compared.
        train_source: short form of corpora: file of source sentences, one per line.
        train_target: file of translations; line n translates line n of train_source.
        train_alignments: file with the links of their words; see `alignments` of a corpus.
        valid_source: short form of valid_corpora: source sentences for validation.
        valid_target: translations of valid_source.
        train_file: short form of corpora: file of examples, for a task with one file.
        valid_file: short form of valid_corpora: file of validation examples, for such a task.
        tfds: short form of corpora: a TFDS translation corpus with its language pair, like
            wmt14_translate/de-en, which translates German to English.
        tfds_reverse: translate tfds from the second language of the pair to the first.
        tfds_valid_split: short form of valid_corpora: split of tfds, like validation.
        tfds_dir: folder of TFDS' prepared corpora; empty: the default of TFDS.
        generated_pairs: pairs in the generated training corpus.
    """

    corpora: tuple[Corpus, ...] = free((), on_resume="known_text", common=True)
    valid_corpora: tuple[Corpus, ...] = free((), on_resume="known_text", common=True)
    temperature: float = free(1.0, at_least_one)
    folder: LocalPath = free("", on_resume="known_text")
    origin: str = free("", on_resume="free")
    source_language: str = inherited("en", on_resume="known_text")
    target_language: str = inherited("de", on_resume="known_text")
    clean: tuple[str, ...] | str = free((), common=True)
    held_out: int = free(1000, positive)
    held_out_by: Literal["both", "source"] = free("both")
    cache_dir: LocalPath = free("", on_resume="free")
    prepared: LocalPath = free("", on_resume="known_text")
    max_length: int = free(0, not_negative, derived=True, common=True)
    vocabularies: Literal["shared", "separate", "joint"] = same("shared")
    vocabulary_size: int = same(8000, positive, fits_text=True, common=True)
    tokenizer: LocalPath = free("")
    segmentation: Literal["bpe", "unigram"] = same("bpe")
    bpe_dropout: float = free(0.0, rate)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    normalization: Literal["nmt_nfc", "nmt_nfkc", "nfkc", "identity"] = same("nmt_nfc")
    batch_tokens: int = free(2048, positive, fits_text=True, common=True)
    bucket_width: int = free(2, positive)

    train_source: InitVar[LocalPath] = ""
    train_target: InitVar[LocalPath] = ""
    train_alignments: InitVar[LocalPath] = ""
    valid_source: InitVar[LocalPath] = ""
    valid_target: InitVar[LocalPath] = ""
    train_file: InitVar[LocalPath] = ""
    valid_file: InitVar[LocalPath] = ""
    tfds: InitVar[str] = ""
    tfds_reverse: InitVar[bool] = False
    tfds_valid_split: InitVar[str] = ""
    tfds_dir: InitVar[PathOrAddress] = ""
    generated_pairs: InitVar[int] = GENERATED_PAIRS

    def __post_init__(self, *short_forms: Any) -> None:
        check(self, "data")
        self._resolve(ShortForms(*short_forms))
        if isinstance(self.clean, str):  # one text stands for a list of it
            object.__setattr__(self, "clean", (self.clean,) if self.clean else ())
        if self.bpe_dropout and self.segmentation != "bpe":
            raise InputError(
                f"data.bpe_dropout needs data.segmentation bpe, got {self.segmentation}."
            )
        if not self.max_length:
            object.__setattr__(self, "max_length", min(256, self.batch_tokens))
        if self.tokenizer and (self.vocabularies == "separate") != ("," in self.tokenizer):
            raise InputError(
                "data.tokenizer needs one file with data.vocabularies shared, and two files with a "
                f"comma between them with separate, got {self.tokenizer} with {self.vocabularies}."
            )
        if self.augment.terms and self.prepared:
            raise InputError(
                "data.augment.terms learns terms from the text, which a training with "
                "data.prepared does not read. Leave out one of them."
            )
        if self.batch_tokens < self.max_length:
            raise InputError(
                f"data.batch_tokens ({self.batch_tokens}) must hold at least one sentence of "
                f"data.max_length ({self.max_length})."
            )

    def _resolve(self, short: ShortForms) -> None:
        """Writes the corpora that short forms stand for into the lists of corpora."""
        if Corpus() in self.corpora + self.valid_corpora:
            raise InputError("a corpus needs source and target, path, or a name and a format.")
        is_generated = [corpus.format for corpus in self.corpora] == ["generated"]
        listed = () if is_generated and short.corpora else self.corpora  # any text replaces it
        if listed and short.corpora:
            raise InputError(
                "give data.corpora, or a short form of one corpus (data.train_source and "
                "data.train_target, data.train_file, or data.tfds), not both."
            )
        if self.valid_corpora and short.valid_corpora:
            raise InputError(
                "give data.valid_corpora, or a short form of one corpus (data.valid_source and "
                "data.valid_target, data.valid_file, or data.tfds_valid_split), not both."
            )
        corpora, valid = listed or short.corpora, self.valid_corpora or short.valid_corpora
        for corpus in (*corpora[: len(corpora) == 1], *valid):
            if corpus.weight != 1:
                raise InputError(
                    f"a weight is for one of several training corpora. Leave it out of {corpus}."
                )
        if cleaned := [corpus for corpus in valid if corpus.clean]:
            raise InputError(f"validation text stays as it is. Leave clean out of {cleaned[0]}.")
        if valid and not corpora:
            raise InputError("data.valid_corpora needs data.corpora, or a short form of it.")
        if not corpora and short.generated_pairs != GENERATED_PAIRS:
            corpora = (Corpus(format="generated"),)
        object.__setattr__(self, "corpora", short.completed(corpora))
        object.__setattr__(self, "valid_corpora", short.completed(valid))

    @property
    def tokenizer_options(self) -> dict[str, Any]:
        """Arguments of `Tokenizer.train`, by name."""
        names = ("vocabulary_size", "segmentation", "normalization")
        return {name: getattr(self, name) for name in names}


def _not_kept(name: str, kept: str) -> property:
    """In place of a short form in a configuration: an error that says what to read."""

    def read(_: DataConfig) -> NoReturn:
        raise AttributeError(f"a configuration does not keep data.{name}; read data.{kept}")

    return property(read)


for _short in options_in(ShortForms):
    setattr(DataConfig, _short.name, _not_kept(_short.name, _short.rules.short_for or "corpora"))
    del DataConfig.__dataclass_fields__[_short.name]  # `replace` would read the value
