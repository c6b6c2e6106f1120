"""Word alignments of a training text: files, errors, tags, and the pieces of linked words."""

import dataclasses

import numpy as np
import pytest
from conftest import small_config
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.config import AugmentConfig, Config, Corpus, DataConfig, TrainConfig
from tf_transformer.data.augmentation.text_augmentation import TextAugmentation
from tf_transformer.data.corpora import stream
from tf_transformer.data.tokens import IdRows, TokenExamples
from tf_transformer.data.word_links import rows_of_links, with_links
from tf_transformer.errors import InputError
from tf_transformer.run.run import Run
from tf_transformer.tasks.translation import TRANSLATION
from tf_transformer.text.codec import Codec, SourceCodec
from tf_transformer.text.tokenizer import Tokenizer
from tf_transformer.text.word_alignment import LINKS, from_line, to_line
from tf_transformer.training import trainer

FIELDS = ("source", "target")
PAIRS = [("the house .", "das Haus ."), ("", "leer"), ("a big dog", "ein Hund"), ("yes", "ja")]
LINES = ["0-0 1-1 2-2", "", "0-0 2-1", ""]


@pytest.fixture
def write(tmp_path):
    """write(name, lines): a corpus of `PAIRS` with these lines of links."""

    def corpus(name, lines=LINES, **options):
        files = {"source": [s for s, _ in PAIRS], "target": [t for _, t in PAIRS]}
        for side, texts in (files | {"alignments": lines}).items():
            path = tmp_path / f"{name}.{side}"
            path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
            options[side] = str(path)
        return Corpus(**options)

    return corpus


def linked(*corpora):
    data = DataConfig(corpora=corpora)
    return with_links(stream(corpora, FIELDS, data), data)


def tokenizer_of(*texts):
    return Tokenizer.train(list(texts), vocabulary_size=300, symbols=[">>de<<"])


def test_links_stand_beside_their_pairs_also_where_pairs_are_left_out(write):
    text = linked(write("a"))
    assert text.fields == (*FIELDS, LINKS)
    assert list(text) == [(*PAIRS[0], LINES[0]), (*PAIRS[2], LINES[2]), (*PAIRS[3], "")]
    data = DataConfig(corpora=(write("a"),))
    rest, held_out = stream(data.corpora, FIELDS, data).hold_out(1, seed=1)
    of_rest = list(with_links(rest, data))
    assert len(of_rest) == 2
    assert of_rest == [row for row in text if row[0] not in held_out["source"]]


def test_a_tag_is_a_word_before_the_source_and_other_corpora_have_no_links(write):
    plain = dataclasses.replace(write("b"), alignments="")
    text = linked(write("a", tag=">>de<<"), plain)
    pairs = [links for part in text.parts for _, _, links in part.tagged]
    assert pairs == ["1-0 2-1 3-2", "1-0 3-1", "", "", "", ""]
    assert next(iter(text.parts[0].tagged))[0] == ">>de<< the house ."


def test_other_links_are_another_text(write):
    texts = [linked(write("a")), linked(write("b")), linked(write("c", ["0-0", "", "", ""]))]
    assert texts[0].identity == texts[1].identity != texts[2].identity
    plain = dataclasses.replace(write("a"), alignments="")
    assert stream([plain], FIELDS, DataConfig()).identity != texts[0].identity


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0-0", "", "0-0 1:1", ""], r"line 3 of .*a\.alignments: expected links .* got '1:1'\."),
        (["0-0", "", "3-0", ""], r"line 3 of .* has the link 3-0, but the pair has 3 and 2 words"),
        (["0-0", "", "0-2", ""], r"line 3 of .* has the link 0-2, but the pair has 3 and 2 words"),
        (["0-0", "", "-1-0", ""], r"line 3 of .*: expected links such as 0-0 1-2, got '-1-0'"),
        (["0-0", ""], r"a\.alignments ends after line 2, but .*a\.source has more lines"),
        ([*LINES, ""], r"a\.source ends after line 4, but .*a\.alignments has more lines"),
    ],
)
def test_a_wrong_file_is_an_error_with_its_line(write, lines, message):
    with pytest.raises(InputError, match=message):
        list(linked(write("a", lines)))


def test_alignments_are_for_two_files():
    with pytest.raises(InputError, match=r"for a corpus of two files, source and target"):
        Corpus(path="a.tsv", alignments="a.links")
    with pytest.raises(InputError, match=r"train_alignments needs data\.train_source and"):
        DataConfig(train_file="a.txt", train_alignments="a.links")
    short = DataConfig(train_source="a", train_target="b", train_alignments="c")
    assert short.corpora == (Corpus("a", "b", alignments="c"),)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99))))
def test_lines_are_read_as_written(links):
    assert from_line(to_line(links)) == links


WORDS = st.text("abcß日🙂.-", min_size=1, max_size=6)


@given(st.lists(WORDS, min_size=1, max_size=5), st.lists(WORDS, min_size=1, max_size=5), st.data())
def test_a_link_has_all_pieces_of_its_words(source, target, data):
    codec = Codec(tokenizer_of("ab abc ca", "ba. a-b"))
    word = st.tuples(st.integers(0, len(source) - 1), st.integers(0, len(target) - 1))
    links = data.draw(st.lists(word, max_size=9))
    texts = " ".join(source), " ".join(target)
    (row,) = rows_of_links([to_line(links)], [texts[0]], [texts[1]], codec)
    assert len(row) % 32 == 0 < len(row)
    ranges = np.reshape(row, (-1, 2, 2)).tolist()
    for link, sides in zip(links, ranges, strict=False):
        for words, number, (first, end), side in zip(
            (source, target), link, sides, FIELDS, strict=True
        ):
            ids = codec.encode(side, " ".join(words))
            before = codec.decode(side, ids[:first]).split()
            assert codec.decode(side, ids[first:end]).split() == [words[number]]
            assert before == words[:number]
    assert not any(row[4 * len(links) :])


def test_the_tag_that_each_source_gets_is_no_word():
    codec = SourceCodec(Codec(tokenizer_of("the house")), "source", target_tag=">>de<<")
    (row,) = rows_of_links(["0-0"], ["the house"], ["x"], codec)
    ids = codec.encode("source", "the house")
    assert row[0] == 1
    assert codec.decode("source", ids[1 : row[1]]) == "the"


def test_links_do_not_count_for_the_size_of_a_batch():
    rows = {"source": [[5, 6, 2]], "target": [[7, 2]], LINKS: [[0] * 32]}
    examples = TokenExamples({name: IdRows.from_lists(ids) for name, ids in rows.items()})
    assert list(examples.counted) == list(FIELDS)
    assert set(examples.batch(np.array([0]))) == {*FIELDS, LINKS}


def test_changed_texts_lose_their_links():
    codec = Codec(tokenizer_of("THE HOUSE the house"))
    texts = {"source": ["the house"] * 4, "target": ["the house"] * 4, LINKS: ["0-0 1-1"] * 4}
    rows = TRANSLATION.encode(texts, codec)
    examples = TokenExamples({name: IdRows.from_lists(ids) for name, ids in rows.items()})
    change = TextAugmentation(AugmentConfig(upper=0.5), codec, max_length=50, seed=1)
    changed = change(0, examples)
    links = [bool(row.any()) for row in changed[LINKS].split()]
    is_upper = [codec.decode("source", row).isupper() for row in changed["source"].split()]
    assert links == [not upper for upper in is_upper]
    assert 0 < sum(is_upper) < 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"guided_alignment_weight needs data\.train_alignments, or alignments of a corpus"),
        ({"bpe_dropout": 0.1}, "needs fixed pieces of words: set data.bpe_dropout to 0"),
        ({"prepared": "folder"}, r"reads the text itself: leave out data\.prepared"),
        ({"remat": True}, "needs the gradient of the attention: set model.remat to false"),
        ({"alignment_layer": 1}, "needs a decode.alignment_layer below 1, got 1"),
        ({"alignment_layer": -2}, "needs a decode.alignment_layer below 1, got -2"),
        ({"alignment_head": 2}, "needs a decode.alignment_head below 2, got 2"),
    ],
)
def test_a_head_that_cannot_learn_alignments_is_an_error(options, message):
    config = small_config()
    corpora = (Corpus("a", "b", alignments="c"),) if options else (Corpus("a", "b"),)
    values = {"data.corpora": corpora, "train.guided_alignment_weight": 0.05}
    for name, value in options.items():
        group = "decode" if name.startswith("alignment") else "model" if name == "remat" else "data"
        values[f"{group}.{name}"] = value
    with pytest.raises(InputError, match=message):
        config.with_options(values)


def test_other_tasks_have_no_alignments(tmp_path):
    options = {"guided_alignment_weight": 0.05}
    data = DataConfig(corpora=(Corpus("a", "b", alignments="c"),))
    config = Config(task="parsing", data=data, train=TrainConfig(**options))
    with pytest.raises(InputError, match=r"data\.corpora: alignments is for translation\. Leave"):
        trainer.train(Run.at(tmp_path, config))
