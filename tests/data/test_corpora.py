"""Corpora: one text in every format, lists of corpora, and their directions."""

import bz2
import dataclasses
import gzip
import json
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable
from xml.sax.saxutils import escape, quoteattr

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.config import Config, Corpus, DataConfig
from tf_transformer.data.corpora import (
    check,
    check_corpus,
    labels,
    languages,
    languages_of,
    load_examples,
    read_test,
    stream,
    with_languages,
)
from tf_transformer.data.examples import Examples
from tf_transformer.data.readers import FORMATS, format_of, open_corpus, register
from tf_transformer.data.readers.rows import Rows, content
from tf_transformer.errors import InputError
from tf_transformer.files.reading import read_lines
from tf_transformer.tasks.language_modeling import LANGUAGE_MODELING
from tf_transformer.tasks.translation import TRANSLATION

FIELDS = ("source", "target")
Pairs = list[tuple[str, str]]

# --- one text in every format ----------------------------------------------------------------


def as_text(folder, pairs: Pairs, *names: str) -> Corpus:
    source, target = paths = [folder / name for name in names or ("a.en", "a.de")]
    for side, path in enumerate(paths):
        path.write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode())
    return Corpus(source=str(source), target=str(target))


def as_file(name: str, content_of: Callable[[Pairs], str], **options):
    """Writes pairs as one file, compressed as its name says."""
    compress = {"gz": gzip.compress, "bz2": bz2.compress}.get(name.rpartition(".")[2], bytes)

    def write(folder, pairs: Pairs) -> Corpus:
        (folder / name).write_bytes(compress(content_of(pairs).encode()))
        return Corpus(path=str(folder / name), **options)

    return write


def tsv(pairs: Pairs) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def tsv_with_header(pairs: Pairs) -> str:
    return "id\tde\ten\r\n" + "".join(f"{n}\t{t}\t{s}\r\n" for n, (s, t) in enumerate(pairs))


def jsonl(make: Callable[[str, str], dict]) -> Callable[[Pairs], str]:
    return lambda pairs: "\n\n".join(json.dumps(make(*pair)) for pair in pairs)


def tmx(pairs: Pairs) -> str:
    def unit(source: str, target: str) -> str:
        texts = [escape(text, {"\r": "&#13;"}) for text in (source, target)]
        return (
            f'<tu><prop type="x">p</prop><tuv xml:lang="DE-at"><seg>{texts[1]}</seg></tuv>'
            f'<tuv xml:lang="en-US"><note>n</note><seg>{texts[0]}</seg></tuv></tu>\n'
        )

    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
    body = "".join(unit(*pair) for pair in pairs)
    return f'{head}<tmx version="1.4"><header srclang="en"/><body>{body}</body></tmx>\n'


def wmt(pairs: Pairs) -> str:
    def side(tag: str, language: str, number: int) -> str:
        texts = [escape(pair[number], {"\r": "&#13;"}) for pair in pairs]
        segments = "".join(f'<seg id="{n}">{text}</seg>' for n, text in enumerate(texts))
        return f'<{tag} lang="{language}"><p>{segments}</p></{tag}>'

    return f"<dataset><doc>{side('src', 'en', 0)}{side('ref', 'de', 1)}</doc></dataset>"


def as_archive(folder, pairs: Pairs) -> Corpus:
    as_text(folder, pairs, "x.de-en.en", "x.de-en.de")
    with zipfile.ZipFile(folder / "de-en.zip", "w") as archive:
        for ending in ("en", "de"):
            archive.write(folder / f"x.de-en.{ending}", f"x.de-en.{ending}")
    return Corpus(path=str(folder / "de-en.zip"))


def as_parquet(folder, pairs: Pairs) -> Corpus:
    rows = [{"translation": {"en": source, "de": target}} for source, target in pairs]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "a.parquet")
    return Corpus(path=str(folder / "a.parquet"))


WRITERS = {
    "text": as_text,
    "tsv": as_file("a.tsv", tsv),
    "tsv.gz": as_file("b.TSV.gz", tsv),
    "tsv with names": as_file("c.txt.bz2", tsv_with_header, format="tsv", columns=("en", "de")),
    "jsonl": as_file("a.jsonl", jsonl(lambda s, t: {"id": 1, "source": s, "target": t})),
    "languages": as_file("b.ndjson.gz", jsonl(lambda s, t: {"de": t, "en": s})),
    "nested": as_file("c.jsonl", jsonl(lambda s, t: {"id": 0, "translation": {"en": s, "de": t}})),
    "keys": as_file("d.jsonl", jsonl(lambda s, t: {"x": s, "y": t}), columns=("x", "y")),
    "tmx": as_file("a.tmx", tmx),
    "tmx.gz": as_file("b.tmx.gz", tmx, columns=("EN", "de_AT")),
    "wmt": as_file("a.xml", wmt),
    "moses": as_archive,
    "parquet": as_parquet,
}
# Characters that a line and XML can both hold; a carriage return or a mark may start or end a file.
CHARACTERS = st.characters(
    codec="utf-8", exclude_characters="\n\t\r\ufeff\ufffe\uffff", exclude_categories=("Cs", "Cc")
) | st.sampled_from("\x85\u2028\u2029\u00a0 &<>\"'\\]")
TEXTS = st.text(CHARACTERS, max_size=12)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=6).map(lambda pairs: [("one", "eins"), *pairs])


def trained(corpora, data: DataConfig = DataConfig()) -> Examples:
    return stream(corpora, FIELDS, data).read()


@settings(max_examples=40)
@given(PAIRS)
def test_equal_pairs_of_every_format_are_trained_on_and_tested_alike(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("corpora")
    kept = [pair for pair in pairs if all(text.strip() for text in pair)]
    skipped = Counter({"empty text": len(pairs) - len(kept)} if len(kept) < len(pairs) else {})
    expected = Examples(
        {name: list(texts) for name, texts in zip(FIELDS, zip(*kept, strict=True), strict=True)},
        skipped,
    )
    for name, write in WRITERS.items():
        corpus = write(folder, pairs)
        assert trained([corpus]) == expected, name
        assert read_test(corpus, FIELDS, DataConfig()) == [
            list(x) for x in zip(*pairs, strict=True)
        ]


@pytest.mark.parametrize("name", WRITERS)
def test_a_test_set_is_that_of_two_files(tmp_path, name):
    """Blank lines, white space and odd characters included."""
    pairs = [("one", "eins"), ("", "zwei"), (" three\u2028 ", "drei\x85"), ("four", " ")]
    two = as_text(tmp_path, pairs)
    expected = TRANSLATION.load_test(Config(), two.source, two.target)
    assert expected.inputs[1] == "", "blank lines are tested, too"
    assert TRANSLATION.load_corpus(Config(), WRITERS[name](tmp_path, pairs)) == expected


def test_a_byte_that_is_not_utf8_is_skipped_with_its_line(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"en\tde\none\teins\ntw\xff\tzwei\n")
    examples = trained([Corpus(path=str(path), columns=("en", "de"))])
    assert examples["source"] == ["one"]
    assert examples.skipped == {f"not UTF-8, the first in line 3 of {path}": 1}


# --- lists of corpora ------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from([*WRITERS]), PAIRS), min_size=1, max_size=4))
def test_a_list_of_corpora_is_their_concatenation(tmp_path_factory, parts):
    folder = tmp_path_factory.mktemp("corpora")
    corpora = []
    for number, (name, pairs) in enumerate(parts):
        (folder / str(number)).mkdir()
        corpora.append(WRITERS[name](folder / str(number), pairs))
    whole = as_text(folder, [pair for _, pairs in parts for pair in pairs])
    assert trained(corpora) == trained([whole])
    assert trained([*corpora, whole])["source"] == trained([whole, *corpora])["source"]
    many = [("distinct", "x"), ("texts", "y")]
    corpora.append(as_file("z.tsv", tsv)(folder, many))
    whole = as_text(folder, [pair for _, pairs in parts for pair in pairs] + many)
    split, of_whole = (stream(x, FIELDS, DataConfig()).hold_out(3, 1) for x in (corpora, [whole]))
    assert split[0].read() == of_whole[0].read()
    assert split[1] == of_whole[1]


def test_every_corpus_and_their_order_count_in_the_identity(tmp_path):
    one = as_text(tmp_path, [("one", "eins")])
    two = as_file("a.tsv", tsv)(tmp_path, [("two", "zwei")])
    lists = [[one], [two], [one, two], [two, one], [one, one]]
    identities = {stream(corpora, FIELDS, DataConfig()).identity for corpora in lists}
    assert len(identities) == len(lists)
    assert (
        stream([one], FIELDS, DataConfig()).identity == f"files {content(one.source, one.target)}"
    )


def test_a_corpus_without_examples_is_an_error_that_names_it(tmp_path):
    one = as_text(tmp_path, [("one", "eins")])
    empty = as_file("a.tsv", tsv)(tmp_path, [("", "")])
    with pytest.raises(InputError, match=r"no example in .*a\.tsv can be used: 1 empty text"):
        trained([one, empty])


def test_validation_text_is_a_list_or_held_out_from_all(tmp_path):
    parts = [[(f"{part} {n}", f"{n}") for n in range(20)] for part in "abc"]
    corpora = tuple(
        as_file(f"{number}.tsv", tsv)(tmp_path, pairs) for number, pairs in enumerate(parts)
    )
    data = DataConfig(corpora=corpora[:2], valid_corpora=corpora[2:])
    train, valid = load_examples(Config(data=data), FIELDS)
    assert list(train) == parts[0] + parts[1]
    assert valid["source"] == [source for source, _ in parts[2]]
    train, valid = load_examples(Config(data=DataConfig(corpora=corpora, held_out=6)), FIELDS)
    assert sorted(train.read()["source"] + valid["source"]) == sorted(
        s for x in parts for s, _ in x
    )
    assert len(valid) == 6


def test_short_forms_are_lists_of_one_corpus(tmp_path):
    pairs = [(f"{n} x", f"{n} y") for n in range(30)]
    two = as_text(tmp_path, pairs)
    short = DataConfig(train_source=two.source, train_target=two.target)
    for one, other in [
        (short, DataConfig(corpora=(two,))),
        (DataConfig(generated_pairs=20, held_out=3), None),
    ]:
        other = other or DataConfig(
            corpora=(Corpus(format="generated"),), generated_pairs=20, held_out=3
        )
        split, of_other = (load_examples(Config(data=data), FIELDS) for data in (one, other))
        assert split[0].identity == of_other[0].identity
        assert split[1] == of_other[1]


def test_a_generated_corpus_can_be_one_of_several(tmp_path):
    two = as_text(tmp_path, [(f"{n} x", f"{n} y") for n in range(30)])
    data = DataConfig(corpora=(Corpus(format="generated"), two), generated_pairs=20)
    train, valid = load_examples(Config(data=data), FIELDS)
    assert len(train.read()) + len(valid) == 50


def test_a_language_model_reads_lists_of_texts(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.jsonl").write_text('{"text": "three\\r\\nfour"}\n{"text": ""}\n')
    (tmp_path / "c.tsv").write_text("5\tfive\n")
    paths = {name: str(tmp_path / name) for name in ("a.txt", "b.jsonl", "c.tsv")}
    corpora = (
        *(Corpus(path=paths[name]) for name in ("a.txt", "b.jsonl")),
        Corpus(path=paths["c.tsv"], columns=("2",)),
    )
    data = DataConfig(corpora=corpora, valid_corpora=corpora[:1])
    train, valid = LANGUAGE_MODELING.load_splits(Config(data=data))
    assert [text for (text,) in train] == ["one", "two", "three four", "five"]
    assert valid["text"] == ["one", "two"]
    test = LANGUAGE_MODELING.load_corpus(Config(), corpora[1])
    assert test.references == ["three four", ""]


# --- formats ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("corpus", "expected"),
    [
        (Corpus("a.tsv", "b.tsv"), "text"),
        (Corpus(path="a/b.c.tmx"), "tmx"),
        (Corpus(path="A.TSV.xz"), "tsv"),
        (Corpus(path="a.tsv", format="jsonl"), "jsonl"),
    ],
)
def test_the_format_is_named_or_is_that_of_the_ending(corpus, expected):
    assert format_of(corpus) == expected


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (Corpus(path="a.ods"), r"a\.ods has no ending of a known format \(\.txt, \.tsv, .*Give"),
        (Corpus(path="a.gz"), r"a\.gz has no ending"),
        (Corpus(path="a.tsv", format="ods"), "unknown format 'ods' of a corpus; expected text, "),
        (Corpus(path="a.txt"), "with source and target needs source and target, two files"),
        (Corpus(path="a.tsv", split="test"), "tsv takes path, columns; got path, split"),
        (Corpus(path="a.tmx", reverse=True), "tmx takes path, columns; got path, reverse"),
        (
            Corpus("a", "b", columns=("1", "2")),
            "text takes source, target, path, alignments; got columns, so",
        ),
        (Corpus(name="x"), "has no ending of"),
        (Corpus(format="tfds"), "tfds takes name, split, reverse, data_dir; got none"),
        (Corpus(path="a.tsv", columns=("1",)), r"expected 2 columns of a\.tsv, for source and"),
        (Corpus(format="generated", split="x"), "has no split 'x'; expected one of train, valid"),
    ],
)
def test_a_corpus_that_no_reader_can_open(corpus, message):
    with pytest.raises(InputError, match=message):
        open_corpus(corpus, FIELDS, DataConfig())


def test_pairs_are_no_text_of_a_language_model():
    with pytest.raises(InputError, match=r"format tmx has 2 texts .* needs 1 \(text\)"):
        open_corpus(Corpus(path="a.tmx"), ["text"], DataConfig())


def test_a_program_registers_a_format(tmp_path, monkeypatch):
    monkeypatch.setattr("tf_transformer.data.readers.FORMATS", dict(FORMATS))

    def read(corpus, fields, data):
        def start(skipped):
            for number, line in enumerate(read_lines(corpus.path), 1):
                yield number, tuple(line.split(b" ||| "))

        return Rows((corpus.path,) * len(fields), start, lambda: f"bars {content(corpus.path)}")

    def languages(corpus):
        return tuple(corpus.path.split("/")[-1].split(".")[:2])

    register("bars", read, [".bars"], languages=languages)
    corpus = as_file("en.de.bars.gz", lambda pairs: "".join(f"{s} ||| {t}\n" for s, t in pairs))(
        tmp_path, [("one", "eins"), ("two", "zwei")]
    )
    assert trained([corpus])["target"] == ["eins", "zwei"]
    assert TRANSLATION.load_corpus(Config(), corpus).references == ["eins", "zwei"]
    assert languages_of(corpus, DataConfig()) == ("en", "de")


def test_a_newline_inside_a_text_of_any_reader_becomes_a_space():
    """Also in formats of a user's own, and in TensorFlow Datasets."""
    texts = (b"one\ntwo\r\n three\n", "ü\r\u2028".encode())
    rows = Rows(("a", "b"), lambda _: [(1, texts)], lambda: "1")
    expected = ("one two  three ", "ü\r\u2028")
    assert list(rows.stream(FIELDS)) == [expected]
    assert rows.texts() == [[text] for text in expected]


def test_a_row_with_another_number_of_texts_is_an_error():
    rows = Rows(("a.csv", "a.csv"), lambda _: [(1, (b"one", b"eins")), (2, (b"two",))], lambda: "1")
    for read in (rows.texts, lambda: list(rows.stream(FIELDS))):
        with pytest.raises(InputError, match=r"row 2 of a\.csv has 1 texts; expected 2\."):
            read()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON in UTF-8: "),
        ("[" * 100_000, "is not JSON in UTF-8: "),
        ("[1]", r"must be a JSON object, got \[1\]"),
        ('"a b"', "must be a JSON object, got 'a b'"),
        ('{"fr": "a", "de": "b"}', "has the keys 'fr', 'de'; expected 'source' and 'target', or"),
        (
            '{"source": "a"}',
            "has the keys 'source'; expected 'source' and 'target', or 'en' and 'de'. Give the",
        ),
        ('{"source": "a", "target": null}', "'target' must be text, got None"),
        ('{"translation": {"en": "a", "de": 3}}', "'de' must be text, got 3"),
        ('{"translation": "a"}', "has the keys 'translation'; expected"),
        (
            '{"source": "en", "target": "de", "translation": {"en": "a", "de": "b"}}',
            "has two pairs of texts: in 'source' and 'target', and in 'en' and 'de' of "
            "'translation'. Give the keys of one pair as columns",
        ),
        ('{"en": "a", "de": "b", "en": "c"}', "is not JSON .*: the key 'en' has two values"),
    ],
)
def test_a_line_of_json_that_is_no_example(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"source": "one", "target": "eins"}}\n{line}\n')
    with pytest.raises(InputError, match=f"^line 2 of {path}:? {message}"):
        trained([Corpus(path=str(path))])


@pytest.mark.parametrize(
    ("columns", "expected"),
    [(("en", "de"), ["ein Haus"]), (("source", "target"), ["de"])],
)
def test_columns_say_which_of_two_pairs_counts(tmp_path, columns, expected):
    record = {"source": "en", "target": "de", "translation": {"en": "a house", "de": "ein Haus"}}
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    corpus = Corpus(path=str(tmp_path / "a.jsonl"), columns=columns)
    assert list(trained([corpus])["target"]) == expected


@pytest.mark.parametrize(
    ("outer", "nested"),
    [
        (("one", "eins"), ("one", "eins")),
        (("one", "eins"), (None, 3)),
        ((None, 3), ("one", "eins")),
    ],
)
def test_one_pair_of_texts_in_a_line_of_json_is_no_doubt(tmp_path, outer, nested):
    record = dict(zip(FIELDS, outer, strict=True))
    record["translation"] = dict(zip(("en", "de"), nested, strict=True))
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    assert list(trained([Corpus(path=str(tmp_path / "a.jsonl"))])["target"]) == ["eins"]


def test_a_key_of_json_may_be_repeated_with_its_value(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"en": "one", "id": 1, "de": "eins", "id": 1}\n')
    assert list(trained([Corpus(path=str(tmp_path / "a.jsonl"))])["target"]) == ["eins"]


def test_half_of_a_surrogate_pair_in_json_is_skipped(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"en": "one", "de": "eins"}\n\n{"en": "\\ud800", "de": "zwei"}\n')
    assert trained([Corpus(path=str(path))]).skipped == {
        f"not UTF-8, the first in line 3 of {path}": 1
    }


# --- TMX -------------------------------------------------------------------------------------


def unit(*segments: tuple[str, str], attribute: str = "xml:lang") -> str:
    tuvs = [f"<tuv {attribute}={quoteattr(tag)}><seg>{seg}</seg></tuv>" for tag, seg in segments]
    return f"<tu>{''.join(tuvs)}</tu>\n"


@pytest.fixture
def memory(tmp_path):
    """Writes a translation memory and gives its corpus."""

    def write(*units: str, head: str = "", encoding: str = "UTF-8", **options) -> Corpus:
        declared = f'<?xml version="1.0" encoding="{encoding}"?>\n'
        text = f'{declared}{head}<tmx version="1.4"><body>\n{"".join(units)}</body></tmx>'
        (tmp_path / "a.tmx").write_text(text, "utf-8")
        return Corpus(path=str(tmp_path / "a.tmx"), **options)

    return write


@pytest.mark.parametrize(
    ("tags", "columns", "expected"),
    [
        (("EN", "De"), (), (0, 1)),
        (("de-CH", "en-GB"), (), (1, 0)),
        (("en-GB", "en", "de"), (), (1, 2)),  # the language itself before a variety
        (("en-GB", "en-US", "de"), (), (0, 2)),  # else the first variety
        (("eng", "en", "den", "de"), (), (1, 3)),
        (("pt-BR", "pt-PT", "zh-Hant-TW", "zh"), ("pt-PT", "zh-Hant"), (1, 2)),
        (("pt_BR", "de"), ("pt-br", "de"), (0, 1)),
        (("de", "en"), ("de", "en"), (0, 1)),
    ],
)
def test_languages_are_matched_by_their_subtags(memory, tags, columns, expected):
    """RFC 4647, section 3.3.1."""
    segments = [(tag, f"text {number}") for number, tag in enumerate(tags)]
    for attribute in ("xml:lang", "lang"):
        corpus = memory(unit(*segments, attribute=attribute), columns=columns)
        texts = open_corpus(corpus, FIELDS, DataConfig()).texts()
        assert texts == [[f"text {number}"] for number in expected]


def test_units_without_a_language_are_skipped_and_counted(memory, capsys):
    corpus = memory(
        unit(("en", "one"), ("de", "eins")),
        unit(("en", "two"), ("fr", "deux")),
        unit(("en", "three"), ("de", " ")),
    )
    examples = trained([corpus])
    assert examples["source"] == ["one"]
    assert examples.skipped == {"without en or de": 1, "empty text": 1}
    assert read_test(corpus, FIELDS, DataConfig()) == [["one", "three"], ["eins", " "]]
    assert capsys.readouterr().err == f"warning: {corpus.path}: left out 1 without en or de\n"
    french = DataConfig(source_language="fr", target_language="en")
    assert trained([corpus], french)["source"] == ["deux"]


def test_a_memory_without_the_languages_names_those_that_it_has(memory):
    corpus = memory(unit(("en", "one"), ("fr-FR", "un")))
    with pytest.raises(
        InputError, match="no translation unit in en and de; its languages are en, fr-"
    ):
        trained([corpus])


@pytest.mark.parametrize(
    ("segments", "used", "more"),
    [
        (["en", "de", "de"], (0, 1), 1),
        (["en", "de-AT", "de", "de-CH", "fr"], (0, 2), 2),
        (["en", "en", "de", "de"], (0, 2), 2),
        (["en", "de", "fr", "fr"], (0, 1), 0),
        (["en", "en"], None, 0),
    ],
)
def test_further_segments_in_a_language_are_counted(memory, capsys, segments, used, more):
    """Also segments with the same text."""
    other = unit(("en", "x"), ("de", "y"))
    corpus = memory(unit(*((tag, f"{tag} text") for tag in segments)), other)
    texts = [f"{segments[place]} text" for place in used or ()]
    examples = trained([corpus])
    assert [*zip(*examples.texts.values(), strict=True)] == [
        *[tuple(texts)] * bool(used),
        ("x", "y"),
    ]
    missing = {} if used else {"without en or de": 1}
    assert examples.skipped == missing | ({"further segments in en or de": more} if more else {})
    read_test(corpus, FIELDS, DataConfig())
    assert (f"left out {more} further segments in en or de" in capsys.readouterr().err) == bool(
        more
    )


def test_the_first_segment_with_text_counts(memory, capsys):
    corpus = memory(
        unit(("en", "one"), ("de", ""), ("de", "eins"), ("de", "ein")),
        unit(("en-GB", "two"), ("en", " "), ("de", "zwei")),
        unit(("en", ""), ("en", " "), ("de", "drei")),
    )
    assert read_test(corpus, FIELDS, DataConfig()) == [["one", "two", ""], ["eins", "zwei", "drei"]]
    assert "left out 4 further segments in en or de" in capsys.readouterr().err


def test_a_unit_inside_a_unit_is_read_once_and_the_other_counts(memory):
    inner = unit(("en", "one"), ("de", "eins"))
    examples = trained([memory(f'<tu><tuv lang="en"><seg>x</seg></tuv>{inner}</tu>')])
    assert examples.texts == {"source": ["one"], "target": ["eins"]}
    assert examples.skipped == {"without en or de": 1}


def test_a_segment_without_a_language_is_named(memory):
    corpus = memory('<tu><tuv><seg>one</seg></tuv><tuv lang="de"><seg>eins</seg></tuv></tu>')
    with pytest.raises(InputError, match="its languages are unnamed, de"):
        trained([corpus])


def test_languages_of_which_one_is_a_variety_of_the_other(memory):
    corpus = memory(unit(("en", "color"), ("en-GB", "colour")), columns=("en", "en-GB"))
    examples = trained([corpus])
    assert examples.texts == {"source": ["color"], "target": ["colour"]}
    assert not examples.skipped


def test_a_newline_in_a_segment_becomes_a_space(memory):
    corpus = memory(
        unit(("en", "one\ntwo \r\n ü"), ("de", "&#10;eins&amp;\t")),
        head='<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n',
    )
    assert read_test(corpus, FIELDS, DataConfig()) == [["one two   ü"], [" eins&\t"]]


BOMB = (
    '<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa">\n'
    + "".join(f'<!ENTITY a{n} "{f"&a{n - 1 or str()};" * 10}">\n' for n in range(1, 9))
    + "]>\n"
)


@pytest.mark.parametrize(
    ("head", "segment", "message"),
    [
        (BOMB, "&a8;", "line 2 of .* declares or uses an entity"),
        ('<!DOCTYPE tmx [<!ENTITY x SYSTEM "/etc/passwd">]>', "&x;", "line 2 of .*an entity"),
        ('<!DOCTYPE tmx [<!ENTITY % x SYSTEM "/etc/x"> %x;]>', "a", "line 2 of .*an entity"),
        ('<!DOCTYPE tmx SYSTEM "tmx14.dtd">', "a&nbsp;b", "line 3 of .*an entity"),
        ("", "a&nbsp;b", r"line 3 of .* XML: undefined entity in <seg> of line 3\.$"),
        ("", "a & b", r"line 3 of .* XML: not well-formed .* in <seg> of line 3\. If .* encoding"),
        (
            "",
            "\n</tu>",
            r"line 4 of .* is not well-formed XML: mismatched tag in <seg> of line 3\.$",
        ),
        (
            "",
            "</seg></tuv>\n</tu><tuv><seg>",
            r"line 4 of .* mismatched tag in <body> of line 2\.$",
        ),
    ],
)
def test_entities_and_broken_xml_are_errors_with_their_line(memory, head, segment, message):
    corpus = memory(unit(("en", segment), ("de", "eins")), head=head)
    with pytest.raises(InputError, match=message):
        trained([corpus])


def test_a_memory_that_is_cut_short_is_an_error(memory, tmp_path):
    corpus = memory(unit(("en", "one"), ("de", "eins")))
    (tmp_path / "a.tmx").write_bytes((tmp_path / "a.tmx").read_bytes()[:-9])
    with pytest.raises(
        InputError, match=r"line 4 of .* XML: unclosed token in <body> of line 2\.$"
    ):
        trained([corpus])


def test_memory_holds_a_unit_of_a_file_of_any_size(tmp_path):
    path = tmp_path / "a.tmx"
    units = unit(("en", "word " * 20), ("de", "Wort " * 20)) * 20_000  # 6 MB
    path.write_text(f"<tmx><body>{units}</body></tmx>")
    tracemalloc.start()
    count = sum(1 for _ in stream([Corpus(path=str(path))], FIELDS, DataConfig()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 500_000


# --- directions ------------------------------------------------------------------------------


EN_FR = ("en", "fr")


@pytest.mark.parametrize(
    ("corpora", "languages", "message"),
    [
        (
            [Corpus("a.en", "a.de"), Corpus("b.de.gz", "b.en")],
            (),
            "a.en goes from en to de, but b.de.gz",
        ),
        ([Corpus("a.de", "a.en"), Corpus(path="b.tmx")], (), "a.de goes from de to en, but b.tmx"),
        ([Corpus("a.de", "a.en"), Corpus(path="b.tmx")], ("de", "en"), ""),
        ([Corpus("a.de", "a.en"), Corpus(path="b.jsonl")], (), "but b.jsonl from en to de"),
        ([Corpus("a.de", "a.en"), Corpus(path="b.jsonl", columns=("x", "y"))], (), ""),
        (
            [Corpus("a.de", "a.en"), Corpus(path="b.tsv", columns=("en", "de"))],
            (),
            "but b.tsv from en",
        ),
        ([Corpus("a.de", "a.en"), Corpus(path="b.tsv", columns=("1", "2"))], (), ""),
        ([Corpus("a.de", "a.en"), Corpus(path="b.tsv")], (), ""),
        (
            [Corpus("a.de", "a.en"), Corpus(format="generated")],
            (),
            "but the generated corpus from en",
        ),
        ([Corpus("a.en", "a.en"), Corpus("b.en", "b.en")], (), ""),
        ([Corpus("a.en", "a.de"), Corpus("a.en", "a.fr")], (), "a.de goes from en to de, but a.fr"),
        ([Corpus("a.en", "a.de"), Corpus("b.fr", "b.de")], (), ""),
        ([Corpus("a.en", "a.de"), Corpus("b.en_GB", "b.de-AT")], (), ""),
        ([Corpus("a.en", "a.pt"), Corpus("b.en", "b.pt_BR"), Corpus("c.tok", "d.tok")], (), ""),
        ([Corpus("a.en", "a.pt"), Corpus("b.ab", "b.ab")], (), ""),
        (
            [Corpus(path="a.tmx", columns=("en", "de-DE")), Corpus(path="b.tmx", columns=EN_FR)],
            (),
            "a.tmx goes from en to de, but b.tmx from en to fr. A run has one target language",
        ),
        ([Corpus(path="a.tmx", columns=("eng", "deu")), Corpus(path="b.tmx")], (), ""),
        ([Corpus("a.en", "a.fr"), Corpus(path="b.tmx")], (), "but b.tmx from en to de"),
        ([Corpus("a.en", "a.fr"), Corpus(path="b.tmx")], EN_FR, ""),
        ([Corpus("a.en", "a.fr"), Corpus(path="b.jsonl")], (), ""),  # its keys are not known
        ([Corpus("a.en", "a.fr"), Corpus(path="b.jsonl", columns=("en", "de"))], (), "but b.jsonl"),
        ([Corpus("a.en", "a.de"), Corpus("a.en", "a.fr")], ("en", "mul"), ""),
    ],
)
def test_corpora_with_different_target_languages_are_an_error(corpora, languages, message):
    names = dict(zip(("source_language", "target_language"), languages, strict=False))
    data = DataConfig(corpora=tuple(corpora), **names)
    if not message:
        assert with_languages(data) == data
        return
    with pytest.raises(InputError, match=message):
        with_languages(data)


def test_validation_and_test_text_go_in_the_direction_of_the_training_text(memory):
    pair = {"train_source": "a.de", "train_target": "a.en"}
    with pytest.raises(InputError, match=r"a.de goes from de to en, but v.en from en to de"):
        with_languages(DataConfig(**pair, valid_source="v.en", valid_target="v.de"))
    with pytest.raises(InputError, match=r"a.de goes from de to en, but v.tmx from en to de"):
        with_languages(DataConfig(**pair, valid_corpora=(Corpus(path="v.tmx"),)))
    with pytest.raises(InputError, match=r"a.de goes from de to en, but t.en from en to de"):
        read_test(Corpus("t.en", "t.de"), FIELDS, DataConfig(**pair))
    with pytest.raises(InputError, match=r"a.en goes from de to en, but v.fr from de to fr"):
        with_languages(DataConfig(**pair, valid_source="a.de", valid_target="v.fr"))
    with pytest.raises(InputError, match=r"a.de goes from de to en, but t.de from de to fr"):
        read_test(Corpus("t.de", "t.fr"), FIELDS, DataConfig(**pair))
    corpus = memory(unit(("en", "one"), ("de", "eins")))
    assert read_test(corpus, FIELDS, DataConfig(**pair)) == [["eins"], ["one"]]


@pytest.mark.parametrize(
    ("corpora", "expected"),
    [
        ([Corpus(path="a.tsv"), Corpus("a.fr", "a.it.gz")], ("fr", "it")),
        ([Corpus(path="a.tmx")], ("en", "de")),
        ([Corpus(path="a.jsonl")], (None, None)),
        ([Corpus(path="a.jsonl", columns=("fr", "it"))], ("fr", "it")),
        ([Corpus(name="x/fr-it", format="tfds", reverse=True)], ("it", "fr")),
    ],
)
def test_the_metadata_have_the_languages_that_the_corpora_name(corpora, expected):
    assert languages(DataConfig(corpora=tuple(corpora))) == expected


# --- tags, limits and weights ----------------------------------------------------------------


def numbered(folder, name, count=20):
    pairs = [(f"{n} x", f"{n} {name}") for n in range(count)]
    return as_text(folder, pairs, f"{name}.en", f"{name}.{name}")


def test_a_tag_stands_before_the_sources_that_a_model_reads(tmp_path):
    corpus = dataclasses.replace(numbered(tmp_path, "de", count=2), tag=">>de<<")
    text = stream([corpus], FIELDS, DataConfig())
    assert list(text) == [("0 x", "0 de"), ("1 x", "1 de")], "a vocabulary learns no tags"
    assert text.tags == [">>de<<"]
    tagged = [(">>de<< 0 x", "0 de"), (">>de<< 1 x", "1 de")]
    assert list(text.tagged) == tagged
    assert list(zip(*text.read().texts.values(), strict=True)) == tagged
    blank = as_text(tmp_path, [("one", "eins"), (" \u00a0", "zwei")], "b.en", "b.de")
    blank = dataclasses.replace(blank, tag=">>de<<")
    assert read_test(blank, FIELDS, DataConfig())[0] == [">>de<< one", " \u00a0"]


def test_held_out_sources_are_in_no_direction_of_the_training_text(tmp_path):
    data = DataConfig(
        corpora=tuple(
            dataclasses.replace(numbered(tmp_path, name), tag=f">>{name}<<")
            for name in ("de", "fr")
        ),
        held_out=2,
    )
    train, valid = load_examples(Config(data=data), FIELDS)
    assert valid.parts == {"de.en-de": 2, "fr.en-fr": 2}
    own = {source.split(" ", 1)[1] for source in valid["source"]}
    assert len(own) == 2
    assert not own & {source for source, _ in train}
    assert [len(part) for part in valid.by_corpus().values()] == [2, 2]
    for name, part in valid.by_corpus().items():
        assert all(source.startswith(f">>{name[-2:]}<<") for source in part["source"])


def test_a_limit_reads_the_first_pairs(tmp_path):
    pairs = [("one", "eins"), ("", "zwei"), ("three", "drei"), ("four", "vier")]
    for write in WRITERS.values():
        corpus = dataclasses.replace(write(tmp_path, pairs), limit=3)
        assert trained([corpus]).texts == {"source": ["one", "three"], "target": ["eins", "drei"]}
        assert read_test(corpus, FIELDS, DataConfig())[0] == ["one", "", "three"]


def test_tags_limits_and_weights_count_in_the_identity(tmp_path):
    one, two = numbered(tmp_path, "de"), numbered(tmp_path, "fr")
    changes = [{}, {"tag": ">>de<<"}, {"tag": ">>fr<<"}, {"limit": 3}, {"limit": 4}, {"weight": 2}]
    identities = {
        stream([dataclasses.replace(one, **change), two], FIELDS, DataConfig()).identity
        for change in changes
    }
    assert len(identities) == len(changes)


@pytest.mark.parametrize(
    ("corpora", "expected"),
    [
        ([Corpus("x/train.en", "x/train.de.gz")], ["train.en-de"]),
        ([Corpus("a.en", "b.de")], ["a.en-b.de"]),
        ([Corpus("source", "target")], ["source-target"]),
        ([Corpus("a/t.en", "a/t.de"), Corpus("b/t.en", "b/t.de")], ["t.en-de", "t.en-de #2"]),
        ([Corpus(path="x/a.tmx"), Corpus(format="generated")], ["a.tmx", "generated"]),
    ],
)
def test_corpora_have_short_names_that_differ(corpora, expected):
    assert labels(corpora) == expected


def tagged(*tags):
    return [Corpus("a.en", "a.de", tag=tags[0]), Corpus("a.en", "a.fr", tag=tags[1])]


@pytest.mark.parametrize(
    ("corpora", "valid", "message"),
    [
        (tagged("language", "language"), tagged("language", "language"), ""),
        (tagged("language", ">>fr<<"), tagged(">>de<<", "language"), ""),
        (tagged("language", ""), [], ""),
        (tagged(">>x<<", ">>x<<"), [], "a.de goes from en to de, but a.fr.*give each corpus tag:"),
        ([Corpus("a.en", "a.de", tag="language"), Corpus("a.de", "a.en", tag="language")], [], ""),
        ([Corpus("a", "b", tag="language")], [], "the target language of a is not known"),
        (tagged("language", "language"), [Corpus("v.en", "v.de")], "v.en has no tag, but the"),
        (tagged("", "language"), [Corpus("v.en", "v.de")], ""),
    ],
)
def test_directions_are_several_if_their_tags_differ(corpora, valid, message):
    data = DataConfig(corpora=tuple(corpora), valid_corpora=tuple(valid))
    if message:
        with pytest.raises(InputError, match=message):
            with_languages(data)
        return
    completed = with_languages(data)
    assert completed == with_languages(completed)
    for corpus in (*completed.corpora, *completed.valid_corpora):
        assert corpus.tag in ("", f">>{corpus.target[-2:]}<<")


def test_a_side_with_several_languages_is_unknown():
    data = with_languages(DataConfig(corpora=tuple(tagged("language", "language"))))
    assert languages(data) == ("en", None)


def test_a_tag_of_another_form_is_an_error(tmp_path):
    corpus = dataclasses.replace(numbered(tmp_path, "de"), tag="<bt>")
    with pytest.raises(InputError, match=r"must be like >>de<<, .* got '<bt>'"):
        check_corpus(corpus)


@pytest.mark.parametrize("side", ["corpora", "valid_corpora"])
def test_a_weight_needs_several_training_corpora(side):
    one = Corpus("a.en", "a.de")
    lists = {"corpora": (one,), side: (dataclasses.replace(one, weight=2),)}
    with pytest.raises(InputError, match="is for one of several training corpora"):
        DataConfig(**lists)


def test_a_corpus_has_rules_of_its_own(tmp_path):
    """In place of those of all corpora; the log names rule and corpus."""
    pairs = [("one two three", "one two three"), ("one", "eins")]
    one, two, three = (
        as_text(tmp_path, pairs, f"{name}.en", f"{name}.de") for name in ("one", "two", "three")
    )
    two = dataclasses.replace(two, clean="none")
    three = dataclasses.replace(three, clean=("identical", "duplicate"))
    text = stream((one, two, three), FIELDS, DataConfig(), ("identical",))
    skipped = Counter()
    assert len(list(text.start(skipped))) == 1 + 2 + 1
    assert skipped == {"identical in one.en-de": 1, "identical in three.en-de": 1}
    with pytest.raises(InputError, match=r"no rule 'x'; expected recommended, none, or some of"):
        check(DataConfig(corpora=(one, dataclasses.replace(two, clean="x"))))
    with pytest.raises(InputError, match="validation text stays as it is"):
        DataConfig(corpora=(one,), valid_corpora=(three,))
