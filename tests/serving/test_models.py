"""The three kinds of models: equal to the translator that they stand for."""

import json
import pathlib
import shutil

import numpy as np
import pytest
from rest_server import RestServer

from tf_transformer import kernels, tasks
from tf_transformer.commands import demo, import_model
from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig
from tf_transformer.config.task import ClassificationOptions
from tf_transformer.errors import InputError
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.saved_translator import METADATA
from tf_transformer.inference.translator import Translator
from tf_transformer.parsing.linearization import symbols
from tf_transformer.run.run import Run, direction_of
from tf_transformer.serving import models
from tf_transformer.serving.models import Field, RunModel, SavedModel, ServedModel
from tf_transformer.text.codec import Codec
from tf_transformer.text.kept_spans import spans
from tf_transformer.text.tokenizer import Tokenizer

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "marian"
TEXTS = ["twenty-one", "", "two hundred and two", "June twelfth"]


def texts_of(rows):
    return [[each.text for each in row] for row in rows]


@pytest.mark.parametrize(
    ("data", "direction"),
    [
        (DataConfig(), ("en", "de")),
        (DataConfig(target_language="fr"), ("en", "fr")),
        (DataConfig(train_source="a.de", train_target="a.en"), ("de", "en")),
        (DataConfig(train_source="a.txt", train_target="b.txt"), ()),
        (DataConfig(source_language="", target_language=""), ()),  # of an import
        (DataConfig(source_language="fi", target_language="sv"), ("fi", "sv")),  # of an import
    ],
)
def test_the_page_names_the_direction_of_the_training_text(data, direction):
    assert direction_of(Config(data=data)) == direction


@pytest.mark.slow
def test_texts_of_documents_are_divided_and_keep_their_tags(run, model):
    texts = ["Twenty-one <a>men</a>. Two <b/> hundred.", "June twelfth"]
    best = [row[0].text for row in model.n_best_of_document(texts, (("beam_size", 2),))]
    translator = Translator.from_run(run, split="sentences", keep=["common"], beam_size=2)
    assert best == [prediction.text for prediction in translator(texts)]
    assert sorted(spans(best[0], ("tags",))) == ["</a>", "<a>", "<b/>"]


def test_the_first_limit_of_a_card_is_one_line(tmp_path):
    card = tmp_path / models.CARD
    assert models.first_limit(card) == ""
    card.write_text("# A\n\n- no limit\n", "utf-8")
    assert models.first_limit(card) == ""
    card.write_text("# A\n\n## Limits\n\n- It is\n  small.\n- It is old.\n", "utf-8")
    assert models.first_limit(card) == "It is small."


@pytest.mark.parametrize(
    "options",
    [{"beam_size": 3, "length_penalty": 0.0}, {"temperature": 0.5}],
)
def test_a_run_predicts_as_its_translator_with_the_same_options(run, model, options):
    beam_size = options.get("beam_size", 2)
    temperature = options.get("temperature", 0)
    config = options | {"temperature": temperature or None, "sampling": temperature > 0}
    expected = Translator.from_run(run, num_hypotheses=beam_size, **config).n_best(TEXTS)
    found = model.n_best(TEXTS, tuple(options.items()))
    assert texts_of(found) == texts_of(expected)
    for row, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            [each.score for each in row], [each.score for each in other], atol=1e-4
        )
    assert texts_of(model.n_best(TEXTS[:1], tuple(options.items()))) == texts_of(expected)[:1]


def test_new_values_and_single_texts_need_no_new_graph(model):
    for texts in (TEXTS, ["one"]):
        for length_penalty in (0.0, 0.5, 1.0):
            model.n_best(texts, (("length_penalty", length_penalty),))
        for temperature in (0.5, 1.0):
            model.n_best(texts, (("temperature", temperature),))
    searches = {
        search for sampling in (False, True) for search in model._searching(2, sampling)._searches
    }
    assert sum("concrete" in vars(search) for search in searches) == 2  # traced


def test_a_run_has_controls_at_its_own_values_and_samples(model):
    defaults = {name: control.default for name, control in model.controls.items()}
    assert defaults == {"beam_size": 2, "length_penalty": 0.6, "temperature": 0}
    assert model.can_align
    assert len(model.samples) <= 3


def test_attention_is_between_the_words_without_the_end(run, model):
    """The oracle adds the pieces of each pair of words by itself."""
    pairs = [("twenty-one two", "eins zwei drei"), ("one", "x"), ("", "x"), ("one", "")]
    expected = []
    for source, target, weights in Translator.from_run(run).align(*zip(*pairs, strict=True)):
        rows, columns = (
            [
                [n for n, word in enumerate(tokens.word_of) if word == each]
                for each in range(len(tokens.words) - 1)
            ]
            for tokens in (target, source)
        )
        expected.append(
            [
                [np.mean([sum(weights[t, columns]) for t in row]) for columns in columns]
                for row in rows
            ]
        )
    found = model.align(pairs)
    assert [(len(rows), len(rows[0]) if rows else 0) for rows in found] == [
        (3, 2),
        (1, 1),
        (1, 0),
        (0, 0),
    ]
    for rows, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(rows, other, atol=6e-4)


def test_a_saved_model_predicts_as_the_run(readers_folder, model):
    saved = SavedModel(readers_folder / "served" / "mine" / "1")
    assert texts_of(saved.n_best(TEXTS, ())) == texts_of(model.n_best(TEXTS, ()))
    assert not saved.controls
    assert not saved.can_align
    assert saved.languages == ()  # without metadata
    assert not saved.keeps_tags
    assert not model.keeps_tags


@pytest.mark.parametrize(
    ("languages", "expected"),
    [({"source": "en", "target": "de"}, ("en", "de")), ({"source": None, "target": None}, ())],
)
def test_the_metadata_of_an_export_names_its_languages(
    readers_folder, tmp_path, languages, expected
):
    shutil.copytree(readers_folder / "served" / "mine" / "1", tmp_path / "1")
    metadata = tmp_path / "1" / METADATA
    metadata.parent.mkdir(exist_ok=True)
    facts = {"languages": languages, "decoding": {"keep": ["addresses", "tags"]}}
    metadata.write_text(json.dumps(facts), "utf-8")
    saved = SavedModel(tmp_path / "1")
    assert saved.languages == expected
    assert saved.keeps_tags


def test_the_demo_divides_texts_on_request_as_the_translator(run):
    texts = ["Seven! Twenty-one.", "One.\nTwo."]
    (model,) = demo.load(str(run), "", "", "", "", "float32", split="sentences")
    translator = Translator.from_run(run, split="sentences", num_hypotheses=2)
    assert texts_of(model.n_best(texts, ())) == texts_of(translator.n_best(texts))
    assert [row[0].parts for row in model.n_best(texts, ())] == [2, 2]
    with pytest.raises(InputError, match=r"--split is for runs"):
        demo.load("", "", "served/1", "", "", "float32", split="sentences")


def test_the_demo_keeps_spans_on_request(run):
    (model,) = demo.load(str(run), "", "", "", "", "float32", split="", keep="common")
    ((best, *_),) = model.n_best(["seven {a}"], ())
    assert best.text.count("{a}") == 1


@pytest.mark.slow
def test_an_input_of_a_run_and_of_its_export_is_that_of_the_translator(run, readers_folder, model):
    assert model.fields["prefix"] == Field("Start of each translation", "prefixes", ())
    assert model.fields["terms"].has_lines
    saved, options = SavedModel(readers_folder / "served" / "mine" / "1"), (("prefix", "zw"),)
    assert saved.fields == model.fields
    expected = Translator.from_run(run, num_hypotheses=2).n_best(TEXTS, ["zw"] * len(TEXTS))
    assert texts_of(expected) != texts_of(model.n_best(TEXTS, ()))
    assert texts_of(model.n_best(TEXTS, options)) == texts_of(expected)
    assert texts_of(saved.n_best(TEXTS, options)) == texts_of(expected)
    without = model.align([("one", "x")], ())
    assert model.align([("one", "x")], options) == without


def test_the_target_language_is_a_choice_and_no_word_of_the_text(tmp_path):
    shutil.copytree(FIXTURES / "shared", tmp_path / "model")
    for side in ("source", "target"):
        shutil.copy(FIXTURES / f"{side}.spm", tmp_path / "model")
    import_model.main(marian=str(tmp_path / "model"), run_dir=str(tmp_path / "run"))
    model = RunModel(Run.load(tmp_path / "run"))
    assert model.fields["target_tag"].choices == [">>deu<<", ">>nld<<"]
    options = (("target_tag", ">>nld<<"),)
    text, in_text = "a small house", ">>nld<< a small house"
    assert model.n_best([text], options) == model.n_best([in_text], ())
    assert model.n_best([text], options) != model.n_best([text], ())
    (weights,), (of_both,) = model.align([(text, "b")], options), model.align([(in_text, "b")], ())
    assert weights == [row[1:] for row in of_both]
    assert len(weights[0]) == 3


def test_a_server_takes_the_inputs_of_its_signature():
    with RestServer("prefix", "target_tag") as server:
        served = ServedModel(server.address, "translator")
        assert list(served.fields) == ["prefix", "target_tag"]
        assert not served.fields["target_tag"].choices  # only the model knows them
        (row,) = served.n_best(["a"], (("prefix", "b"),))
        assert [best.text for best in row] == ["BA", "ba"]
        assert served.n_best(["a"], ())[0][0].text == "A"
    with RestServer() as server:
        assert not ServedModel(server.address, "translator").fields


def test_a_server_predicts_without_the_texts_that_fill_short_lists():
    with RestServer() as server:
        served = ServedModel(server.address, "translator")
        rows = served.n_best(["é", ""], ())
        assert [[(best.text, best.score) for best in row] for row in rows] == [
            [("É", -0.5), ("é", -1.5)],
            [("", -0.5), ("", -1.5)],
        ]
        assert served.n_best(["a" * 101], ())[0][0].truncated
        (row,) = served.n_best(["One.\nTwo."], ())
        loop, copy = Notice.LOOP, Notice.UNTRANSLATED
        assert [each.notices for each in row] == [(loop, copy), (Notice.SCRIPT,)]
        with RestServer(divides=True) as dividing:
            (row,) = ServedModel(dividing.address, "translator").n_best(["One.\nTwo."], ())
            assert [each.parts for each in row] == [2, 2]
        with pytest.raises(InputError, match=r'answered 404: { "error": "Servable not found" }'):
            ServedModel(server.address, "other")
    with pytest.raises(InputError, match=r"no answer from http.*Check that the server runs"):
        served.n_best(["one"], ())


TASKS = {
    "language_modeling": "language_modeling",
    "parsing": "parsing",
    "masked_language_modeling": "masked_language_modeling",
    "classification": ClassificationOptions(labels=("a", "b")),
    "classification of pairs": ClassificationOptions(
        labels=("a", "b"), text_columns=("one", "two")
    ),
}


@pytest.mark.parametrize("name", TASKS)
def test_the_demo_starts_for_every_task(name, readers_folder, monkeypatch):
    monkeypatch.chdir(readers_folder)
    task = tasks.get(name.partition(" ")[0])
    config = Config(
        model=ModelConfig(num_layers=1, d_model=8, d_ff=8, num_heads=2),
        task=TASKS[name],
        decode=DecodeConfig(beam_size=2, max_extra_length=2),
    )
    actions = symbols(["S"], "in_order") if name == "parsing" else ()
    codec = Codec(Tokenizer.train(["a house", "ein Haus"], 300, symbols=actions))
    model = task.build_model(config, codec, "float32")
    predictor = task.predictor(model, codec, config.decode)
    monkeypatch.setattr(models, "load_predictor", lambda *options: predictor)
    with kernels.use(kernels.PLAIN):  # one search graph
        (loaded,) = demo.load("runs/demo", "", "", "", "", "float32")
        assert len(loaded.n_best([loaded.example], ())[0]) >= 1
    assert bool(loaded.controls) == (name in ("language_modeling", "parsing"))
    assert list(loaded.fields) == (["prefix"] if name == "language_modeling" else [])
