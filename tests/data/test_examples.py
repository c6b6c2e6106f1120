"""Examples: from files made here, and from TFDS without a network."""

import gzip
import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.config import Corpus, DataConfig
from tf_transformer.data.examples import Examples, _seeded_hash, _smallest_distinct
from tf_transformer.data.readers.text import FIELDS, read_plain_text, stream_files
from tf_transformer.data.readers.tfds import read_tfds as open_tfds
from tf_transformer.data.readers.tfds import stored_languages
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_lines


def pairs_of(sources, targets, skipped=()) -> Examples:
    return Examples({"source": sources, "target": targets}, Counter(skipped))


def read_files(source, target) -> Examples:
    return stream_files(source, target).read()


def stream_lines(path):
    return read_plain_text(Corpus(path=str(path)), ["text"], DataConfig()).stream(["text"])


def stream_tfds(name, split, reverse=False, data_dir=""):
    corpus = Corpus(name=name, split=split, reverse=reverse, data_dir=data_dir)
    return open_tfds(corpus, FIELDS, DataConfig()).stream(FIELDS)


@pytest.fixture
def files(tmp_path):
    """Writes a source and a target file of bytes and gives their paths."""

    def write(source: bytes, target: bytes):
        paths = tmp_path / "a.en", tmp_path / "a.de"
        for path, content in zip(paths, (source, target), strict=True):
            path.write_bytes(content)
        return paths

    return write


# --- lines -----------------------------------------------------------------------------------


def test_lines_end_at_newlines_only(tmp_path):
    text = "a\u0085b\u2028c\u2029d\x0be\x0cf\x1cg\rh\ni"
    path = tmp_path / "text"
    path.write_bytes(text.encode())
    assert [line.decode() for line in read_lines(path)] == text.split("\n")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"one\ntwo\n", [b"one", b"two"]),
        (b"one\ntwo", [b"one", b"two"]),  # no newline at the end
        (b"one\r\ntwo\r\n", [b"one", b"two"]),
        (b"one\n\ntwo", [b"one", b"", b"two"]),
        (b"one\r\r\n", [b"one\r"]),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_lines_of_plain_and_gz_files(tmp_path, content, expected, compressed):
    path = tmp_path / ("text.gz" if compressed else "text")
    path.write_bytes(gzip.compress(content) if compressed else content)
    assert list(read_lines(path)) == expected


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError) as error:
            list(read_lines(path))
        assert str(error.value) == f"{path} is not a file. Check the path."


def test_a_broken_gz_file_is_an_error_and_a_plain_one_is_text(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a line\n" * 99)[:-9])
    with pytest.raises(InputError) as error:
        list(read_lines(path))
    assert str(error.value).startswith(f"{path} is not a whole gzip file: ")
    path.write_bytes(b"plain text\n")
    assert list(read_lines(path)) == [b"plain text"]


# --- pairs of files --------------------------------------------------------------------------


def test_line_n_of_one_file_goes_with_line_n_of_the_other(files):
    corpus = read_files(*files("one\ntwo\u0085\n three ".encode(), b"eins\r\nzwei\ndrei\n"))
    assert corpus["source"] == ["one", "two\u0085", " three "]
    assert corpus["target"] == ["eins", "zwei", "drei"]
    assert len(corpus) == 3
    assert not corpus.skipped


def test_skipped_pairs_are_counted_and_shift_nothing(files):
    source = "0 \u0085\n\n2\n3\n \t\n5\u2028\n6".encode().replace(b"3", b"\xff3")
    target = b"null\neins\nzwei\ndrei\nvier\nf\xfcnf\nsechs"
    paths = files(source, target)
    corpus = read_files(*paths)
    pairs = list(zip(corpus["source"], corpus["target"], strict=True))
    assert pairs == [("0 \u0085", "null"), ("2", "zwei"), ("6", "sechs")]
    assert corpus.skipped == {
        "empty text": 2,
        f"not UTF-8, the first in line 4 of {paths[0]}": 2,
    }


@pytest.mark.parametrize("longer", [0, 1])
def test_files_of_unequal_length(files, longer):
    contents = [b"one\ntwo\n", b"one\ntwo\n"]
    contents[longer] += b"three\n"
    paths = files(*contents)
    with pytest.raises(InputError) as error:
        read_files(*paths)
    assert str(error.value) == (
        f"{paths[1 - longer]} ends after line 2, but {paths[longer]} has more lines. Line n of one "
        "file must belong to line n of the other. Give files with equal numbers of lines."
    )


def test_nothing_left(files):
    paths = files(b"\neins\n", b"eins\n\xff\n")
    with pytest.raises(InputError) as error:
        read_files(*paths)
    assert str(error.value) == (
        f"no example in {paths[0]} and {paths[1]} can be used: "
        f"1 empty text, 1 not UTF-8, the first in line 2 of {paths[1]}."
    )


def test_empty_files(files):
    paths = files(b"", b"")
    with pytest.raises(InputError) as error:
        read_files(*paths)
    expected = f"expected at least one line, but nothing is in {paths[0]} and {paths[1]}."
    assert str(error.value) == expected


# --- streams ---------------------------------------------------------------------------------


def test_every_pass_over_a_stream_reads_and_counts_again(files):
    stream = stream_files(*files(b"one\n\nthree\n", b"eins\nzwei\ndrei\n"))
    for _ in range(2):
        assert list(stream) == [("one", "eins"), ("three", "drei")]
        corpus = stream.read()
        assert corpus == pairs_of(["one", "three"], ["eins", "drei"], {"empty text": 1})
    assert corpus.stream().read() == corpus


def test_a_stream_reads_only_what_is_used(files):
    """The error is in line 3 of 200,000; files are read ahead by a few kB only."""
    source, target = files(b"one\n" * 200_000, b"eins\n" * 100_000)
    pairs = iter(stream_files(source, target))
    assert [next(pairs) for _ in range(90_000)] == [("one", "eins")] * 90_000
    with pytest.raises(InputError, match="ends after line 100,000"):
        list(pairs)


def test_other_texts_have_another_identity(files):
    source, target = files(b"one\n", b"eins\n")
    first = stream_files(source, target).identity
    assert stream_files(source, target).identity == first != stream_files(target, source).identity
    target.write_bytes(b"zwei\n")
    os.utime(target, ns=(0, 0))  # as long as before, but of another time
    assert stream_files(source, target).identity != first
    texts = [
        pairs_of(["a"], ["b"]),
        pairs_of(["a"], ["c"]),
        pairs_of(["b"], ["a"]),
        pairs_of(["a b"], [""]),
    ]
    assert len({text.stream().identity for text in texts}) == 4
    assert texts[0].stream().identity == pairs_of(["a"], ["b"]).stream().identity


def test_equal_texts_have_one_identity_wherever_they_are(files, tmp_path):
    paths = files(b"one\ntwo\n", b"eins\nzwei")
    moved = [tmp_path / "moved.gz", tmp_path / "moved.de"]
    moved[0].write_bytes(gzip.compress(b"one\r\ntwo\n"))
    moved[1].write_bytes(b"eins\nzwei\n")
    os.utime(moved[1], ns=(0, 0))
    assert stream_files(*paths).identity == stream_files(*moved).identity
    assert stream_lines(paths[0]).identity == stream_lines(moved[0]).identity


# --- held-out pairs --------------------------------------------------------------------------


@pytest.fixture
def repetitive():
    """100 pairs of 40 distinct sources; a target names its line."""
    sources = [f"source {n % 40}" for n in range(100)]
    return pairs_of(sources, [f"target {n}" for n in range(100)])


def held_out(corpus, count, seed):
    train, valid = corpus.stream().hold_out(count, seed)
    return train.read(), valid


def test_held_out_sources_are_not_trained_on(repetitive):
    train, valid = held_out(repetitive, 3, seed=1)
    assert not set(train["source"]) & set(valid["source"])
    assert len(set(valid["source"])) == 3
    assert sorted(train["target"] + valid["target"]) == sorted(repetitive["target"])
    pairs = set(zip(repetitive["source"], repetitive["target"], strict=True))
    for part in (train, valid):
        assert set(zip(part["source"], part["target"], strict=True)) <= pairs


def test_held_out_choice_is_a_function_of_the_seed(repetitive):
    one, again, other = (held_out(repetitive, 3, seed)[1]["source"] for seed in (1, 1, 2))
    assert one == again != other


def test_held_out_choice_does_not_depend_on_the_order(repetitive):
    backwards = pairs_of(repetitive["source"][::-1], repetitive["target"][::-1])
    assert (
        held_out(backwards, 3, seed=1)[1]["target"][::-1]
        == (held_out(repetitive, 3, seed=1)[1]["target"])
    )


def test_every_source_is_as_likely_to_be_held_out(repetitive):
    """3 of 40, 400 times: 30 each, with a standard deviation of 5.3."""
    counts = Counter(
        source for seed in range(400) for source in set(held_out(repetitive, 3, seed)[1]["source"])
    )
    assert len(counts) == 40
    assert 10 < min(counts.values()) <= max(counts.values()) < 50


def test_at_most_a_tenth_is_held_out(repetitive):
    valid = held_out(repetitive, 1000, seed=1)[1]
    assert len(set(valid["source"])) == 4  # of 40 distinct


def test_smallest_distinct_values():
    """Oracle: a sorted set. Values repeat, and there are more than are kept at a time."""
    values = np.random.default_rng(1).integers(0, 500, 5000).tolist()
    occurrences = Counter(values)
    for count in (1, 7, 100, 499, 1000):
        expected = {value: occurrences[value] for value in sorted(occurrences)[:count]}
        smallest, total = _smallest_distinct(values, count)
        assert (list(smallest.items()), total) == (list(expected.items()), 5000)


def earlier_choice(sources, count, seed):
    """The sources that earlier versions held out: a tenth of the distinct ones."""
    by_hash = sorted(set(sources), key=lambda source: _seeded_hash(source, seed))
    return set(by_hash[: max(1, min(count, len(by_hash) // 10))])


@given(
    copies=st.lists(st.sampled_from([1, 1, 1, 1, 2, 3, 40, 500]), min_size=2, max_size=150),
    count=st.sampled_from([1, 3, 1000]),
    seed=st.integers(0, 99),
)
@settings(max_examples=150)
def test_at_most_a_tenth_of_the_pairs_is_held_out(copies, count, seed):
    """Where a tenth of the distinct sources is no more than that, they are the choice."""
    sources = [str(number) for number, size in enumerate(copies) for _ in range(size)]
    train, valid = held_out(pairs_of(sources, sources), count, seed)
    assert sorted(train["source"] + valid["source"]) == sorted(sources)
    assert not set(train["source"]) & set(valid["source"])
    assert valid["source"]
    expected = earlier_choice(sources, count, seed)
    if 10 * sum(source in expected for source in sources) <= len(sources):
        assert set(valid["source"]) == expected
    if 10 * len(valid) > len(sources):  # only when each source alone exceeds a tenth
        sizes = Counter(sources)
        assert 10 * min(sizes.values()) > len(sources)
        assert len(valid) == min(sizes.values())


def test_a_warning_says_that_more_than_a_tenth_is_held_out(capsys):
    held_out(pairs_of(["a"] * 5 + ["b"] * 3, ["x"] * 8), 1, seed=1)
    assert "warning: 3 of 8 examples are held out" in capsys.readouterr().err


def test_small_corpus_gives_one_validation_source():
    train, valid = held_out(pairs_of(["a", "b"], ["x", "y"]), 1000, seed=1)
    assert len(train) == len(valid) == 1


def test_holding_out_keeps_the_count_of_skipped_pairs(files):
    train, valid = stream_files(*files(b"a\n\nb\n", b"x\ny\nz\n")).hold_out(1, seed=1)
    assert train.read().skipped == {"empty text": 1}
    assert not valid.skipped


def test_both_sides_of_a_split_have_identities_of_their_own(repetitive):
    stream = repetitive.stream()
    identities = {stream.hold_out(*options)[0].identity for options in [(3, 1), (3, 2), (2, 1)]}
    assert len(identities | {stream.identity}) == 4


def test_one_source_sentence_cannot_be_split():
    with pytest.raises(InputError) as error:
        pairs_of(["a", "a"], ["x", "y"]).stream().hold_out(1, seed=1)
    assert str(error.value) == (
        "validation examples cannot be held out of fewer than 2 distinct texts (source); "
        "give more text, or data.valid_source and data.valid_target."
    )


# --- TFDS ------------------------------------------------------------------------------------


def read_tfds(*args, **options) -> Examples:
    return stream_tfds(*args, **options).read()


GERMAN = ["ein Haus", "", "zwei\u0085 Häuser"]
ENGLISH = ["a house", "nothing", "two\u2028 houses"]


@pytest.fixture
def mocked(tmp_path):
    """wmt14_translate/de-en holding three pairs; gives a data_dir that holds nothing."""
    tf = pytest.importorskip("tensorflow")
    tfds = pytest.importorskip("tensorflow_datasets")

    def pairs(builder, *args, **kwargs):
        return tf.data.Dataset.from_tensor_slices({"de": GERMAN, "en": ENGLISH})

    with tfds.testing.mock_data(as_dataset_fn=pairs):
        yield str(tmp_path)


def test_tfds_pairs_go_from_the_first_language_to_the_second(mocked):
    corpus = read_tfds("wmt14_translate/de-en", "train", data_dir=mocked)
    assert corpus["source"] == [GERMAN[0], GERMAN[2]]
    assert corpus["target"] == [ENGLISH[0], ENGLISH[2]]
    assert corpus.skipped == {"empty text": 1}


def test_tfds_pairs_in_reverse(mocked):
    corpus = read_tfds("wmt14_translate/de-en", "train", reverse=True, data_dir=mocked)
    assert corpus["source"] == [ENGLISH[0], ENGLISH[2]]
    assert corpus["target"] == [GERMAN[0], GERMAN[2]]


@pytest.mark.parametrize(
    "corpus",
    [
        *(f"wmt{year}_translate" for year in range(13, 20)),
        *("wmt_t2t_translate", "flores", "opus", "para_crawl", "ted_hrlr_translate", "mtnt"),
        *("tatoeba", "bucc"),
    ],
)
def test_every_tfds_corpus_goes_in_its_own_direction(corpus, tmp_path):
    """Each pair of languages. Oracle: the language codes in the names of the configurations."""
    tf = pytest.importorskip("tensorflow")
    tfds = pytest.importorskip("tensorflow_datasets")

    def one_pair(builder, *args, **kwargs):
        return tf.data.Dataset.from_tensors({key: f"in {key}" for key in builder.info.features})

    kinds = [config.name for config in tfds.builder_cls(corpus).BUILDER_CONFIGS]
    with tfds.testing.mock_data(as_dataset_fn=one_pair):
        for kind in kinds[:: -(-len(kinds) // 3)]:
            name, (sides, languages) = f"{corpus}/{kind}", sides_in(corpus, kind)
            read = read_tfds(name, "train", data_dir=str(tmp_path))
            assert [read["source"], read["target"]] == [[f"in {side}"] for side in sides]
            read = read_tfds(name, "train", reverse=True, data_dir=str(tmp_path))
            assert [read["target"], read["source"]] == [[f"in {side}"] for side in sides]
            corpora = [Corpus(name=name, reverse=x, data_dir=str(tmp_path)) for x in (False, True)]
            reverse = languages and languages[::-1]
            assert [*map(stored_languages, corpora)] == [languages, reverse]


def sides_in(corpus, kind):
    """The keys of source and target that the name of a configuration stands for; languages."""
    if corpus in ("tatoeba", "bucc"):
        return ("source_sentence", "target_sentence"), None
    if corpus == "mtnt":
        return ("src", "dst"), tuple(kind.split("-"))
    if corpus == "opus":
        pair = ("de", "en")
    elif corpus in ("flores", "para_crawl"):
        pair = (kind[:2], kind[2:])
    else:
        pair = tuple(kind.replace("_to_", "-").replace("aztr", "az_tr").split("-"))
    return pair, pair


@pytest.fixture
def prepared(tmp_path):
    """A data_dir with a corpus that TFDS itself wrote and reads from disk."""
    tfds = pytest.importorskip("tensorflow_datasets")

    folder = tmp_path / "tiny_translate" / "1.0.0"
    folder.mkdir(parents=True)
    identity = tfds.core.DatasetIdentity(
        name="tiny_translate", version="1.0.0", data_dir=str(folder), module_name=""
    )
    info = tfds.core.DatasetInfo(
        builder=identity,
        features=tfds.features.Translation(languages=("de", "en")),
        supervised_keys=("de", "en"),
    )
    writer = tfds.core.SequentialWriter(info, max_examples_per_shard=10)
    writer.initialize_splits(["train"])
    rows = zip(GERMAN, ENGLISH, strict=True)
    writer.add_examples({"train": [{"de": german, "en": english} for german, english in rows]})
    writer.close_all()
    return str(tmp_path)


def test_tfds_corpus_and_part_of_it_are_read_from_disk(prepared):
    whole, first, rest = (
        read_tfds("tiny_translate", f"train{part}", data_dir=prepared)
        for part in ("", "[:1]", "[1:]")
    )
    assert whole == pairs_of([GERMAN[0], GERMAN[2]], [ENGLISH[0], ENGLISH[2]], {"empty text": 1})
    assert (first["source"], first["target"]) == ([GERMAN[0]], [ENGLISH[0]])
    assert (rest["source"], rest["target"]) == ([GERMAN[2]], [ENGLISH[2]])


def test_a_tfds_stream_is_read_again_and_has_an_identity(prepared):
    whole, again, first, reverse = (
        stream_tfds("tiny_translate", *options, data_dir=prepared)
        for options in [("train",), ("train",), ("train[:1]",), ("train", True)]
    )
    assert list(whole) == list(whole) == [(GERMAN[0], ENGLISH[0]), (GERMAN[2], ENGLISH[2])]
    assert whole.identity == again.identity
    assert len({whole.identity, first.identity, reverse.identity}) == 3


def test_tfds_split_that_is_unknown(prepared):
    with pytest.raises(InputError) as error:
        read_tfds("tiny_translate", "test", data_dir=prepared)
    start = "data.tfds=tiny_translate: TFDS cannot load split 'test': Unknown split 'test'"
    assert str(error.value).startswith(start)


def test_tfds_corpus_that_is_no_translation(tmp_path):
    tfds = pytest.importorskip("tensorflow_datasets")
    with tfds.testing.mock_data(), pytest.raises(InputError) as error:
        read_tfds("mnist", "train", data_dir=str(tmp_path))
    message = str(error.value)
    assert message.startswith("data.tfds=mnist holds FeaturesDict(")
    assert message.endswith(
        "expected a translation corpus of two languages, like wmt14_translate/de-en."
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_corpus", "Dataset no_such_corpus not found"),
        ("wmt14_translate/xx-yy", "BuilderConfig xx-yy not found"),
        ("not a name", "Parsing builder name string not a name failed"),
    ],
)
def test_tfds_name_that_is_unknown(tmp_path, name, reason):
    with pytest.raises(InputError) as error:
        read_tfds(name, "train", data_dir=str(tmp_path))
    message = str(error.value)
    assert message.startswith(f"data.tfds={name}: TFDS cannot load split 'train': ")
    assert reason in message


def test_translate_folder_gives_what_its_files_give(tmp_path):
    """Oracle: tfds.TranslateFolder itself. Its files may be given as plain files, too."""
    tfds = pytest.importorskip("tensorflow_datasets")
    paths = {language: tmp_path / f"{language}.train.txt" for language in ("de", "en")}
    paths["de"].write_text("ein Haus\nzwei Häuser\n", encoding="utf-8")
    paths["en"].write_text("a house\ntwo houses\n", encoding="utf-8")
    folder = tfds.as_numpy(tfds.TranslateFolder(str(tmp_path)).as_dataset(split="train"))
    expected = [(row["de"].decode(), row["en"].decode()) for row in folder]
    for corpus in (read_files(paths["de"], paths["en"]), read_tfds(str(tmp_path), "train")):
        assert list(zip(corpus["source"], corpus["target"], strict=True)) == expected
    assert read_tfds(str(tmp_path), "train", reverse=True)["source"] == ["a house", "two houses"]


def test_translate_folder_of_unequal_sides(tmp_path):
    (tmp_path / "de.train.txt").write_text("ein Haus\n", encoding="utf-8")
    (tmp_path / "en.train.txt").write_text("a house\ntwo houses\n", encoding="utf-8")
    with pytest.raises(InputError, match="Num examples for split train do not match"):
        read_tfds(str(tmp_path), "train")
