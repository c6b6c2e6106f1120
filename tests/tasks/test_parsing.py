"""The task parsing from bracket files to an export, with two hundred trees made here."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
from parsing.plain_restore import normalize

from tf_transformer import kernels
from tf_transformer.commands import evaluate, translate
from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.config.task import ParsingOptions
from tf_transformer.data.examples import Examples
from tf_transformer.errors import InputError
from tf_transformer.export import manifest
from tf_transformer.inference.parser import Parser
from tf_transformer.parsing.linearization import WORD, Actions
from tf_transformer.parsing.restore import restore
from tf_transformer.parsing.trees import parse
from tf_transformer.run.run import Run
from tf_transformer.tasks.parsing import PARSING
from tf_transformer.text.special_ids import UNK_ID
from tf_transformer.training import trainer

SENTENCES = ["an old dog (saw) a cat .", "", " a\tcat  saw\u00a0the dog", "日本 ▁words", "."]
WORDS = ["an old dog -LRB-saw-RRB- a cat .", "", "a cat saw the dog", "日本 _words", "."]


def random_tree(draw) -> str:
    def phrase(label):
        adjective = "(ADJP (JJ old)) " * draw.integers(0, 2)
        determiner, noun = draw.choice(["the", "a"]), draw.choice(["dog", "cat"])
        return f"({label} (DT {determiner}) {adjective}(NN {noun}))"

    return f"( (S {phrase('NP-SBJ')} (VP (VBD saw) {phrase('NP')}) (. .)))\n"


def config_of(folder, linearization="lexical_in_order") -> Config:
    return Config(
        task=ParsingOptions(linearization=linearization),
        model=ModelConfig(num_layers=1, d_model=16, d_ff=32, num_heads=2),
        data=DataConfig(
            train_file=f"{folder}/train_*.mrg",
            held_out=5,
            vocabulary_size=320,
            batch_tokens=600,
        ),
        train=TrainConfig(steps=4, warmup_steps=5, valid_score_examples=0, threads=1),
        decode=DecodeConfig(beam_size=3, max_extra_length=30),
    )


@pytest.mark.parametrize(
    ("linearization", "expected"),
    [
        ("brackets", "<(S> <(NP> <word> <word> <)NP> <(VP> <word> <)VP> <)S>"),
        ("in_order", "<word> <(NP> <word> <)> <(S> <word> <(VP> <)> <)>"),
        ("lexical_brackets", "<(S> <(NP> ▁the ▁d <)NP> <(VP> ▁s <)VP> <)S>"),
        ("lexical_in_order", "▁the <(NP> ▁d <)> <(S> ▁s <(VP> <)> <)>"),
    ],
)
def test_actions_of_the_linearizations(folder, linearization, expected):
    config = config_of(folder, linearization)
    codec = PARSING.train_codec(PARSING.load_splits(config).train, config)
    tree = "(S (NP (DT the) (NN ducks)) (VP (VBZ sing)))"
    (ids,) = PARSING.encode({"sentence": ["the ducks sing"], "tree": [tree]}, codec)["tree"]
    assert " ".join(map(codec["tree"].piece, ids)) == f"{expected} </s>"


@pytest.mark.parametrize("linearization", ["brackets", "lexical_in_order"])
def test_a_word_that_looks_like_an_action_is_a_word(linearization):
    """Also where the words of trees look so: these are words of text, and no action."""
    tree = "(S (NP (NN <word>)) (VP (VB <unk>) (XX </s>)))"
    stream = Examples({"sentence": ["<word> <unk> </s>"] * 99, "tree": [tree] * 99}).stream()
    codec = PARSING.train_codec(stream, config_of("", linearization))
    tokenizer = codec["tree"]
    texts = {"sentence": ["<word> <unk> </s>", "a<word>"], "tree": [tree, tree]}
    encoded = PARSING.encode(texts, codec)
    in_text = {i for row in encoded["sentence"] for i in row[:-1]}
    assert min(in_text) > UNK_ID
    assert not any(map(tokenizer.is_symbol, in_text))
    actions = Actions.of(tokenizer)
    assert np.equal(actions.kinds[encoded["tree"][0]], WORD).sum() == 3
    ids = encoded["tree"][0]
    words = tf.constant([["<word>", "<unk>", "</s>"]])
    (restored,) = restore(tf.constant([ids]), words, actions).numpy()
    assert parse(restored.decode(), "here").leaves() == ["<word>", "<unk>", "</s>"]


@pytest.fixture(scope="module", autouse=True)
def _small_graphs():
    """Plain kernels have one search graph; tuned ones have another one for single sentences."""
    with kernels.use(kernels.PLAIN):
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Bracket files, and a run that was trained on them."""
    folder, draw = tmp_path_factory.mktemp("parsing"), np.random.default_rng(1)
    for name, count in (("train_1", 100), ("train_2", 100), ("test", 5)):
        (folder / f"{name}.mrg").write_text("".join(random_tree(draw) for _ in range(count)))
    trainer.train(Run.at(folder / "run", config_of(folder)))
    return folder


@pytest.fixture(scope="module")
def parser(folder):
    return Parser.from_run(folder / "run")


def test_a_run_that_another_one_starts_has_its_labels_and_linearization(folder, tmp_path):
    def start(linearization="lexical_in_order", **data):
        config = config_of(folder, linearization)
        data = dataclasses.replace(config.data, **data)
        training = dataclasses.replace(config.train, steps=1, init_from=str(folder / "run"))
        trainer.train(
            Run.at(tmp_path / "run", dataclasses.replace(config, data=data, train=training))
        )

    message = r"task\.linearization is 'lexical_in_order' there, 'in_order' here"
    with pytest.raises(InputError, match=message):
        start(linearization="in_order")
    trees = (f"( (S (NEWS (DT the) (NN {i})) (ODD (VBD saw))) )" for i in range(20))
    (tmp_path / "new.mrg").write_text("".join(trees))
    with pytest.raises(InputError, match="labels of the training trees: NEWS ODD"):
        start(corpora=(), train_file=str(tmp_path / "new.mrg"))
    assert not (tmp_path / "run" / "tokenizer.model").exists()
    start()


def test_each_text_gives_a_line_with_a_tree_over_its_words(parser):
    trees = [found.text for found in parser(SENTENCES)]
    assert "\n" not in "".join(trees)
    assert [" ".join(parse(t, "here").leaves()) if t else "" for t in trees] == WORDS


def test_cut_lines_are_those_whose_sentence_the_model_did_not_read_whole(
    parser, folder, tmp_path, capsys
):
    """A bracket becomes five characters before the sentence is divided into pieces."""
    lengths = [len(parser.tokenizer.encode(normalize(text))) for text in SENTENCES]
    longest = sorted(lengths)[2]
    lines = [str(n) for n, length in enumerate(lengths, 1) if length > longest]
    assert len(parser.tokenizer.encode(SENTENCES[0])) < lengths[0]
    (tmp_path / "in").write_text("".join(text + "\n" for text in SENTENCES), "utf-8")
    translate.main(
        *(str(folder / "run"), str(tmp_path / "in"), str(tmp_path / "out")),
        max_source_length=longest,
    )
    report = capsys.readouterr().err
    expected = f"cut to {longest} tokens (--max_source_length): {len(lines)} lines "
    assert f"{expected}({', '.join(lines)})" in report


def test_the_export_gives_the_same_trees_on_the_oldest_server(parser, tmp_path):
    import tensorflow_text  # noqa: F401  registers the ops of the tokenizer

    parser.save(tmp_path / "1")
    assert manifest.check(tmp_path / "1", jit_compile=False).lowest_server == "2.12"
    signatures = tf.saved_model.load(str(tmp_path / "1")).signatures
    assert set(signatures) == {"serving_default", "n_best"}
    found = signatures["n_best"](text=tf.constant(SENTENCES))["trees"].numpy()
    assert [[tree.decode() for tree in row if tree] or [""] for row in found] == [
        [each.text for each in row] for row in parser.n_best(SENTENCES)
    ]


def test_a_run_and_its_trees_in_a_file_have_the_same_scores(parser, folder, capsys):
    path = str(folder / "test.mrg")
    test = PARSING.load_test(Config(), "", path)
    predictions, scores = PARSING.evaluate(parser, test)
    assert {"f1", "precision", "recall", "complete_match"} < set(scores)
    assert (scores["sentences"], scores["errors"]) == (5, 0)
    (folder / "predicted").write_text("\n".join(predictions))
    evaluate.main(hypotheses=str(folder / "predicted"), reference=path, task="parsing")
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == scores
    evaluate.main(hypotheses=path, reference=path, task="parsing")
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["complete_match"] == 100


def test_an_unrestricted_search_gives_trees_too_and_given_trees_are_scored(folder):
    """With the other linearization, and a reference with a label that no training tree has."""
    config = config_of(folder, "brackets")
    codec = PARSING.train_codec(PARSING.load_splits(config).train, config)
    model = PARSING.build_model(config, codec, "float32")
    parser = Parser(model, codec, DecodeConfig(beam_size=2), grammar=False)
    found = parser(SENTENCES[:1])[0].text
    assert " ".join(parse(found, "here").leaves()) == WORDS[0]
    new = "(S (NEW (NN dog)) (VP (VBD saw)))"
    assert PARSING.score([], [new], [[new]])["f1"] == 100
    texts = PARSING.test_set(Examples({"sentence": ["dog saw"], "tree": [new]}))
    ids = PARSING.encode({"sentence": texts.inputs, "tree": texts.references}, codec)
    assert [codec["tree"].piece(i) for i in ids["tree"][0]] == [
        *("<(S>", "<unk>", "<word>", "<unk>", "<(VP>", "<word>", "<)VP>", "<)S>", "</s>")
    ]
    assert parser.score(["dog saw"], [new])[0].log_probability < 0


def test_options_that_do_not_fit_are_errors(parser, folder):
    with pytest.raises(InputError, match="Leave out --prefixes"):
        parser.n_best(["a"], ["(S"])
    with pytest.raises(InputError, match="give --reference, bracket files"):
        PARSING.load_test(Config(), "", "")
    with pytest.raises(InputError, match=r"Give data\.train_file"):
        PARSING.load_splits(Config())
