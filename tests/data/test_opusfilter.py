"""Filters of a configuration of OpusFilter, as rules of `data.clean`."""

import importlib.util
import pathlib
import sys
import types

import pytest
import yaml

from tf_transformer.config import Config, Corpus, DataConfig
from tf_transformer.data import corpora, opusfilter, rules
from tf_transformer.data.inspection import inspect
from tf_transformer.errors import InputError

FIELDS = ("source", "target")
INPUTS, OUTPUTS = ["a.en", "a.de"], ["b.en", "b.de"]
SOUND = [
    ("Two men are outside .", "Zwei Männer sind draußen ."),
    ("A dog in 1998", "Ein Hund, 1998"),
]
# Pairs with a fault that a filter of `FILTERS` finds, and pairs that resemble them.
PAIRS = [
    *(*SOUND, *SOUND[:1], ("one", "ein Satz , der viel zu lang für dieses Wort ist")),
    *(("one two three four", "eins"), ("<b>bold</b> text", "fetter Text"), ("a < b", "a > b")),
    *(
        ("ein Wort " + "x" * 50, "a word here"),
        ("мир и труд", "peace and work"),
        ("1 2 3", "4 5 6"),
    ),
    *(("Why? Who? What? Where? When?", "Warum"), ("no no no no no no", "nein"), ("...", "!!!")),
    *(("same words on both", "same words on both"), ("see http://x.y", "siehe http://x.y")),
    *(("  spaces at the ends  ", "Leerzeichen am Rand \t"), ("日本語の文", "ein Satz")),
    *(("e\u0301te\u0301", "Sommer"), ("in 2019", "im Jahr 2020"), ("a b c d e f", "a b c d e g")),
]
FILTERS = [
    {"LengthFilter": {"min_length": 1, "max_length": 9}},
    {"LengthFilter": {"unit": "char", "max_length": [40, 45]}},
    {"LengthRatioFilter": {"threshold": 2.5}},
    {"LengthRatioFilter": {"threshold": 2, "unit": "char"}},
    {"LongWordFilter": {"threshold": 20}},
    {"AverageWordLengthFilter": {"min_length": 1.5}},
    {"HtmlTagFilter": {}},
    {"AlphabetRatioFilter": {"threshold": 0.6}},
    {"CharacterScoreFilter": {"scripts": ["Latin", "Latin"], "thresholds": [0.9, 0.9]}},
    {"TerminalPunctuationFilter": {"threshold": -1.5}},
    {"NonZeroNumeralsFilter": {"threshold": 0.6}},
    {"RegExpFilter": {"regexps": "https?://"}},
    {"RepetitionFilter": {"threshold": 3, "min_length": 2}},
    {"SimilarityFilter": {"threshold": 0.85}},
]


def step(kind="filter", inputs=INPUTS, outputs=OUTPUTS, **parameters):
    return {"type": kind, "parameters": {"inputs": inputs, "outputs": outputs} | parameters}


@pytest.fixture
def write(tmp_path):
    """A function that writes the steps of a configuration and returns its path."""

    def write(*steps, **more):
        path = tmp_path / "filters.yaml"
        path.write_text(yaml.safe_dump({"steps": list(steps)} | more), "utf-8")
        return str(path)

    return write


@pytest.fixture
def corpus(tmp_path):
    for name, side in zip(INPUTS, zip(*PAIRS, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in side), "utf-8")
    return Corpus(*(str(tmp_path / name) for name in INPUTS))


@pytest.fixture
def package(monkeypatch):
    """A module of the form of OpusFilter's, with two filters."""

    class Filter:
        def __init__(self, threshold=1, workdir="", **kwargs):
            if not isinstance(threshold, int):
                raise TypeError("no number")
            self.threshold, self.kwargs = threshold, kwargs

        def score(self, pairs):
            yield from ([len(text) for text in pair] for pair in pairs)

    class Short(Filter):
        def accept(self, score):
            return max(score) < self.threshold

    class Long(Filter):
        def accept(self, score):
            return min(score) >= self.threshold

    class FilterPipeline:
        @classmethod
        def from_config(cls, config, workdir):
            classes = {"Short": Short, "Long": Long}
            made = [
                classes[name](**own, workdir=workdir) for x in config for name, own in x.items()
            ]
            return types.SimpleNamespace(filters=made)

    module = types.ModuleType("opusfilter.pipeline")
    module.FilterPipeline = FilterPipeline
    parent = types.ModuleType("opusfilter")
    parent.__spec__ = importlib.util.spec_from_loader("opusfilter", None)
    monkeypatch.setitem(sys.modules, "opusfilter", parent)
    monkeypatch.setitem(sys.modules, "opusfilter.pipeline", module)
    monkeypatch.setattr("tf_transformer.data.opusfilter.version", lambda: "9")


def kept(clean, corpus):
    """The pairs that training reads, and the number of pairs that it leaves out by rule."""
    data = DataConfig(corpora=(corpus,), valid_corpora=(corpus,), clean=clean)
    read = corpora.load_examples(Config(data=data), FIELDS)[0].read()
    return list(zip(*read.texts.values(), strict=True)), read.skipped


@pytest.mark.parametrize("filters", [*([each] for each in FILTERS), FILTERS])
def test_training_keeps_the_lines_that_opusfilter_keeps(filters, write, corpus, tmp_path):
    """Oracle: the files that OpusFilter itself writes."""
    program = pytest.importorskip("opusfilter.opusfilter")
    between = ["between.en", "between.de"]
    steps = [
        step("remove_duplicates", outputs=between),
        step(inputs=between, filters=filters),
    ]
    path = write(*steps, common={"output_directory": str(tmp_path)})
    pairs, _ = kept(path, corpus)
    program.OpusFilter(yaml.safe_load(pathlib.Path(path).read_text())).execute_steps()
    columns = [(tmp_path / name).read_text("utf-8").split("\n")[:-1] for name in OUTPUTS]
    expected = list(zip(*columns, strict=True))
    assert [tuple(map(str.rstrip, pair)) for pair in pairs] == expected
    assert 0 < len(expected) < len(PAIRS)


def test_its_filters_stand_beside_other_rules_and_are_counted(package, write, corpus):
    filters = [{"Short": {"threshold": 40}}, {"Long": {"threshold": 4}}]
    path = write(step("remove_duplicates"), step(inputs=OUTPUTS, filters=filters))
    pairs, skipped = kept([path, "identical"], corpus)
    assert skipped == {
        "duplicate": 1,
        "identical": 1,
        "Short threshold 40": 2,
        "Long threshold 4": 1,
    }
    assert len(pairs) == len(PAIRS) - 5
    data = DataConfig(corpora=(corpus,), clean=path)
    (report,) = inspect({"training": [corpus]}, data, compares_near=False).corpora
    assert report.findings["Short threshold 40"].count == 2


def test_parameters_and_the_version_are_part_of_the_identity(package, write, monkeypatch):
    def identity(threshold):
        chosen = rules.chosen([write(step(filters=[{"Long": {"threshold": threshold}}]))])
        return rules.identity(chosen, ("en", "de"))

    assert identity(4) == identity(4) == f"{rules.VERSION} Long threshold 4 9"
    assert identity(4) != identity(5)
    assert rules.identity(rules.chosen(["tags"]), ("en", "de")) == f"{rules.VERSION} tags"


def test_a_path_is_relative_to_the_data_folder(tmp_path, monkeypatch):
    data = DataConfig(folder=str(tmp_path), clean=["tags", "f.yaml"])
    assert corpora.in_folder(data).clean == ("tags", str(tmp_path / "f.yaml"))
    monkeypatch.setenv("HOME", str(tmp_path))
    located = corpora.in_folder(DataConfig(corpora=(Corpus("a", "b", clean="~/f.yml"),)))
    assert located.corpora[0].clean == (str(tmp_path / "f.yml"),)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([step("opus_read")], "step 1 is of the type opus_read"),
        ([step(filters=[], filterfalse=True)], "step 1 has the parameter filterfalse"),
        ([step("remove_duplicates", lowercase=True)], "has the parameter lowercase"),
        ([step(inputs=["a.en"], filters=[])], r"two inputs.*Got \['a.en'\]"),
        ([step(filters=[]), step(filters=[])], "step 2 must have two inputs"),
        ([{"type": "filter"}], "each step has a type and parameters"),
        ([step(filters=None)], "each step has a type and parameters"),
        ([step(filters=["Short"])], "each step has a type and parameters"),
        ([step(filters=[{"Short": {}, "Long": {}}])], "each step has a type and parameters"),
        (["filter"], "each step has a type and parameters"),
        ([step(filters=[{"Other": {}}])], "OpusFilter cannot use Other: 'Other'"),
        (
            [step(filters=[{"Short": {"threshold": "x"}}])],
            "cannot use Short threshold x: no number",
        ),
        ([step(filters=[{"Short": {"most": 3}}])], "Short most 3 has no parameter most"),
    ],
)
def test_what_it_cannot_do_is_an_error_that_names_it(steps, message, package, write, corpus):
    path = write(*steps)
    with pytest.raises(InputError, match=message) as error:
        corpora.check(DataConfig(corpora=(corpus,), clean=path))
    assert str(error.value).startswith(path)
    assert str(error.value).count(path) == 1


@pytest.mark.parametrize("text", ["", "a: [", "steps: 3", "steps: [!var x]", "- a"])
def test_a_file_of_another_form_is_an_error(text, tmp_path):
    path = tmp_path / "filters.yml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"filters\.yml: expected a configuration of OpusFilter"):
        opusfilter.read(str(path))


def test_a_missing_file_or_package_is_an_error(write, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"none\.yaml"):
        rules.chosen([str(tmp_path / "none.yaml")])
    (rule,) = rules.chosen([write(step(filters=[{"HtmlTagFilter": {}}]))]).values()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'tf_transformer\[opusfilter\]'"):
        rule.start(("en", "de"))
