"""Training text without the pairs that rules find, and held-out text that shares no side."""

import pathlib
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.config import Config, Corpus, DataConfig
from tf_transformer.data import detected_languages
from tf_transformer.data.corpora import check, load_examples, training_size
from tf_transformer.data.examples import Examples
from tf_transformer.errors import InputError
from tf_transformer.run.folder import RunFolder

FIELDS = ("source", "target")
SOUND = [(f"sentence number {n}", f"Satz Nummer {n}") for n in range(12)]
COPY = ("the same words here", "the same words here")
LONG = ("a", "ein viel zu langer Satz für dieses Wort")


@pytest.fixture
def corpus(tmp_path):
    def write(name, pairs):
        path = tmp_path / f"{name}.tsv"
        path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), "utf-8")
        return Corpus(path=str(path))

    return write


def train_of(clean, *corpora, **options):
    data = DataConfig(corpora=corpora, clean=clean, **options)
    return load_examples(Config(data=data), FIELDS)[0]


def test_pairs_are_left_out_and_counted_by_rule_and_corpus(corpus):
    parts = corpus("a", [*SOUND, COPY, LONG]), corpus("b", [SOUND[0], COPY, LONG])
    valid = {"valid_corpora": (parts[1],)}
    one = train_of("recommended", parts[0], **valid).read()
    assert one.skipped == {"identical": 1, "length_ratio": 1}
    both = train_of(["identical", "duplicate"], *parts, **valid).read()
    place = {"a": " in a.tsv", "b": " in b.tsv"}
    # A pair with several faults counts once, under the first rule.
    assert both.skipped == {f"identical{place['a']}": 1, f"identical{place['b']}": 1}
    kept = list(zip(*both.texts.values(), strict=True))
    assert kept == [*SOUND, LONG, SOUND[0], LONG]  # a copy in another corpus stays


def test_validation_text_is_not_cleaned(corpus):
    data = DataConfig(
        corpora=(corpus("a", SOUND),), valid_corpora=(corpus("b", [COPY]),), clean="recommended"
    )
    assert load_examples(Config(data=data), FIELDS)[1]["source"] == [COPY[0]]


def test_each_pass_leaves_out_the_same_pairs(corpus):
    train = train_of("recommended", corpus("a", [*SOUND, SOUND[0], COPY]), held_out=1)
    assert list(train) == list(train)
    assert len(list(train)) == len(SOUND) - 1


def test_rules_are_part_of_the_identity_of_a_text(corpus):
    part = corpus("a", SOUND)
    rules = [(), "recommended", ["identical"]]
    assert len({train_of(clean, part, held_out=1).identity for clean in rules}) == 3
    given = ["tags", "numbers"]
    identities = {train_of(x, part, held_out=1).identity for x in (given, given[::-1])}
    assert len(identities) == 1


def test_the_size_of_a_text_is_that_of_the_clean_text(corpus):
    data = DataConfig(corpora=(corpus("a", [*SOUND, COPY]),), clean=("identical",))
    assert training_size(data, FIELDS).pairs == len(SOUND)


def test_unknown_rules_and_rules_that_leave_nothing_are_errors(corpus):
    part = corpus("a", [COPY])
    with pytest.raises(InputError, match="no rule 'x'"):
        check(DataConfig(corpora=(part,), clean="x"))
    with pytest.raises(InputError, match=r"data\.clean leaves no pair: 1 identical"):
        train_of("identical", part).read()


def test_pairs_in_other_languages_are_left_out_if_they_are_detected(tmp_path):
    pytest.importorskip("py3langid")
    german, french = "Wo ist der nächste Bahnhof?", "Où est la prochaine gare ?"
    english = "Where is the next train station?"
    pairs = [(english, german), (german, english), (english, french), ("Roma", "Paris")]
    paths = {ending: str(tmp_path / f"a.{ending}") for ending in ("en", "de", "fr", "xx")}
    for path, side in zip(paths.values(), (0, 1, 0, 1), strict=True):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        pathlib.Path(path).write_text(lines, "utf-8")
    english_to_german, french_to_german = (Corpus(paths[x], paths["de"]) for x in ("en", "fr"))
    train = train_of("language", english_to_german, valid_corpora=(english_to_german,))
    assert train.read().skipped == {"language": 2}
    other = train_of("language", french_to_german, valid_corpora=(french_to_german,))
    assert other.read().skipped == {"language": 3}
    assert other.identity != train.identity
    with pytest.raises(InputError, match="that py3langid detects, got an unknown one and"):
        check(DataConfig(corpora=(Corpus(paths["xx"], paths["xx"]),), clean="language"))


def test_languages_need_a_package(corpus, monkeypatch):
    monkeypatch.setattr(detected_languages, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"py3langid, which is not installed: pip install 'tf_t"):
        check(DataConfig(corpora=(corpus("a", SOUND),), clean=("identical", "language")))


# --- held-out text ---------------------------------------------------------------------------

WORD = st.sampled_from("abcdefgh")


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 60).map(str), st.integers(0, 60).map(str)), min_size=20),
    st.integers(0, 9),
)
def test_held_out_text_shares_neither_side_with_training(pairs, seed):
    """Oracle: sets. Nothing is lost. Where no source has targets of its own, sources differ."""
    if len({source for source, _ in pairs}) < 2:
        return
    columns = dict(zip(FIELDS, map(list, zip(*pairs, strict=True)), strict=True))
    train, valid = Examples(columns).stream().hold_out(5, seed, by_target=True)
    train_pairs, valid_pairs = (
        list(zip(part["source"], part["target"], strict=True)) for part in (train.read(), valid)
    )
    assert Counter(train_pairs + valid_pairs) == Counter(pairs)
    targets = {target for _, target in train_pairs}
    sources_of = {target: {s for s, t in pairs if t == target} for _, target in pairs}
    own = {s for s, _ in pairs if all(sources_of[t] == {s} for source, t in pairs if source == s)}
    assert not {s for s, _ in train_pairs} & {s for s, _ in valid_pairs}
    if own:
        assert {source for source, _ in valid_pairs} <= own
        assert not targets & {target for _, target in valid_pairs}


def test_earlier_versions_held_out_by_sources_and_their_runs_still_do(corpus):
    same = [(str(n), str(n % 30)) for n in range(40)]  # ten targets have two sources
    by_side = {
        side: train_of((), corpus("a", same), held_out=4, held_out_by=side).identity
        for side in ("both", "source")
    }
    assert by_side["both"] != by_side["source"]
    unique = corpus("b", [(str(n), str(n)) for n in range(40)])
    by_side = {
        side: train_of((), unique, held_out=4, held_out_by=side).identity
        for side in ("both", "source")
    }
    assert by_side["both"] == by_side["source"]  # the choice and its hash stay


def test_a_stored_configuration_of_an_earlier_version_holds_out_by_sources(tmp_path):
    folder = RunFolder(tmp_path)
    folder.save_config(Config(data=DataConfig(held_out=7)))
    assert folder.load_config().data.held_out_by == "both"
    lines = folder.config.read_text().splitlines(keepends=True)
    folder.config.write_text("".join(line for line in lines if "held_out_by" not in line))
    data = folder.load_config().data
    assert (data.held_out, data.held_out_by) == (7, "source")


def test_targets_that_all_have_several_sources_give_a_warning(capsys, corpus):
    pairs = [(str(n), "yes" if n % 2 else "no") for n in range(40)]
    train_of((), corpus("a", pairs), held_out=4)
    assert "warning: each target that is held out for validation" in capsys.readouterr().err
