"""Imported Marian models against Transformers; `fixtures/make_marian.py` has stored its results."""

import json
import pathlib
import shutil
from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from tf_transformer.commands import demo, evaluate, export, import_model, translate
from tf_transformer.config import TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.export import run_in_ctranslate2, to_ctranslate2
from tf_transformer.imports import marian_folder
from tf_transformer.imports.options import Options
from tf_transformer.inference.search import LengthPenalty, Search, score_pairs
from tf_transformer.inference.translator import Translator
from tf_transformer.run.run import Run
from tf_transformer.text.graph_tokenizer import as_strings, clean
from tf_transformer.text.sequences import shift_right
from tf_transformer.text.special_ids import EOS_ID
from tf_transformer.text.tokenizer import Tokenizer
from tf_transformer.training import trainer

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "marian"


def folder_of(name, to):
    """A copy of a stored folder. All stored folders have the same SentencePiece models."""
    folder = pathlib.Path(shutil.copytree(FIXTURES / name, to))
    for side in ("source", "target"):
        shutil.copy(FIXTURES / f"{side}.spm", folder)
    return folder


class Case:
    """An imported model, and what Transformers computes with the original."""

    def __init__(self, folder):
        self.imported = marian_folder.read(folder)
        self.codec, self.model = self.imported.codec, self.imported.model
        self.expected = json.loads((folder / "expected.json").read_text("utf-8"))
        self.arrays = np.load(folder / "expected.npz")
        self.early_stopping = json.loads((folder / "early_stopping.json").read_text("utf-8"))
        source, target = self.imported.vocabularies
        self.orders = {"source": source.order, "target": target.order}

    def theirs(self, field, ids):
        """Our ids as ids of Transformers."""
        return self.orders[field][np.asarray(ids, int)].tolist()

    def batch(self, field, texts):
        rows = self.codec.encode_batch(field, texts)
        return tf.ragged.constant(rows, tf.int32).to_tensor()


@pytest.fixture(scope="module", params=["shared", "separate"])
def case(request, tmp_path_factory):
    return Case(folder_of(request.param, tmp_path_factory.mktemp("marian") / request.param))


def test_ids_are_those_of_transformers_in_python_and_in_the_graph(case):
    lines, graph = case.expected["lines"], case.codec.in_graph()
    for key, field, tag in (
        ("source_ids", "source", ""),
        ("target_ids", "target", ""),
        ("tagged_ids", "source", ">>nld<< "),
    ):
        texts = [tag + line for line in lines]
        rows = case.codec.encode_batch(field, texts)
        assert [case.theirs(field, row) for row in rows] == case.expected[key]
        in_graph = graph[field].encode(clean(as_strings(texts))).to_list()
        assert [[*row, EOS_ID] for row in in_graph] == rows


def test_logits_are_those_of_transformers(case):
    source = case.batch("source", case.expected["sentences"])
    target = case.batch("target", case.expected["targets"])
    ours = np.asarray(case.model((source, shift_right(target))))
    order = case.orders["target"][2:]  # without padding and start
    for row, ids in enumerate(target.numpy()):
        length = np.count_nonzero(ids)
        theirs = case.arrays["logits"][row, :length][:, order]
        np.testing.assert_allclose(ours[row, :length, 2:], theirs, atol=1e-4)


def test_scores_of_given_targets_are_those_of_transformers(case):
    source = case.batch("source", case.expected["sentences"])
    target = case.batch("target", case.expected["targets"])
    scores = score_pairs(case.model, source, target, LengthPenalty(1.0, 0.0))
    np.testing.assert_allclose(scores.log_probability, case.arrays["scores"], atol=1e-4)


@pytest.mark.parametrize("name", ["output", "source", "all"])
def test_a_matrix_of_its_own_counts(name, tmp_path):
    """As in Transformers 5.24. Transformers 4.57 ties what the configuration says."""
    folder = folder_of("shared", tmp_path / "model")
    expected = json.loads((folder / "untied.json").read_text("utf-8"))[name]
    own = expected["factors"].items()
    edit_weights(lambda x: x | {n: x["model.shared.weight"] * np.float32(by) for n, by in own})(
        folder
    )
    case = Case(folder)
    source = case.batch("source", case.expected["sentences"])
    target = case.batch("target", case.expected["targets"])
    scores = score_pairs(case.model, source, target, LengthPenalty(1.0, 0.0))
    np.testing.assert_allclose(scores.log_probability, expected["scores"], atol=1e-4)
    assert np.abs(np.array(expected["scores"]) - case.arrays["scores"]).max() > 0.1
    note = "model.safetensors: lm_head.weight differs from the embeddings, so it is not tied"
    assert (note in case.imported.notes) == (name != "source")


def test_equal_copies_of_a_matrix_are_tied(tmp_path):
    folder = folder_of("shared", tmp_path / "model")
    edit_weights(lambda x: x | dict.fromkeys(marian_folder.EMBEDDINGS, x["model.shared.weight"]))(
        folder
    )
    imported = marian_folder.read(folder)
    stored = marian_folder.read(folder_of("shared", tmp_path / "stored"))
    assert imported.config == stored.config
    edit_weights(lambda x: x | {"lm_head.weight": x["lm_head.weight"][1:].copy()})(folder)
    with pytest.raises(InputError, match=r"lm_head.weight must have the shape \(\d+, 16\), got"):
        marian_folder.read(folder)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_translations_are_those_of_transformers(case, beam_size):
    config = replace(case.imported.config.decode, beam_size=beam_size)
    signature = [tf.TensorSpec((None, None), tf.int32)]
    search = tf.function(Search(case.model, config), signature, autograph=False)
    found = search(case.batch("source", case.expected["sentences"]))
    expected = case.expected["greedy" if beam_size == 1 else "beam"]
    compared = 0
    for i, (row, theirs) in enumerate(zip(found.ids[:, 0].numpy(), expected, strict=True)):
        if len(theirs) == config.max_length:  # Transformers forces the end token at its limit
            continue
        compared += 1
        ids = row[: len(theirs)]
        assert case.theirs("target", ids) == theirs
        if beam_size > 1:
            assert found.scores[i, 0].numpy() == pytest.approx(
                case.arrays["beam_scores"][i], abs=1e-4
            )
            assert case.codec.decode("target", ids) == case.expected["beam_texts"][i]
    assert compared >= 3


@pytest.mark.parametrize("rule", [True, False, "never"])
def test_each_rule_of_early_stopping_gives_the_beams_of_transformers(case, rule):
    config = replace(case.imported.config.decode, length_penalty=2.0, early_stopping=rule)
    found = Search(case.model, config)(case.batch("source", case.expected["sentences"]))
    expected = case.early_stopping[str(rule)]
    np.testing.assert_allclose(found.scores[:, 0], expected["scores"], atol=1e-4)
    for row, theirs in zip(found.ids[:, 0].numpy(), expected["ids"], strict=True):
        assert case.theirs("target", row[row != 0]) == theirs
    assert expected != case.early_stopping[str(rule is not True)]  # the rules differ


def test_the_command_writes_a_run_that_translates_as_the_model(tmp_path, capsys):
    folder = folder_of("shared", tmp_path / "model")
    import_model.main(marian=str(folder), run_dir=str(tmp_path / "run"))
    assert "en to de" in capsys.readouterr().out
    translator = Translator.from_run(tmp_path / "run")
    untagged = replace(translator.config, target_tag="")  # as the program that wrote the answers
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    translations = translator.like(translator.model, untagged)(expected["sentences"])
    for each, text in zip(translations, expected["beam_texts"], strict=True):
        assert each.at_limit or each.text == text
    assert sum(each.at_limit for each in translations) < 2


def edit_json(name, **changes):
    """A function that changes keys of a JSON file in a folder; None removes a key."""

    def edit(folder):
        content = json.loads((folder / name).read_text("utf-8")) | changes
        kept = {key: value for key, value in content.items() if value is not None}
        (folder / name).write_text(json.dumps(kept), "utf-8")

    return edit


def edit_weights(change):
    """A function that changes the arrays of a folder by `change`, from arrays to arrays."""

    def edit(folder):
        path = folder / "model.safetensors"
        save_file(change(load_file(path)), path)

    return edit


def remove(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def cut_short(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:200])


FC1 = "model.encoder.layers.0.fc1.weight"
BROKEN = {
    "no folder": (shutil.rmtree, "is not a folder"),
    "no configuration": (remove("config.json"), "config.json cannot be read as JSON"),
    "a list": (lambda x: (x / "config.json").write_text("[]"), "must hold a JSON object"),
    "an unknown key": (edit_json("config.json", moe=2), "has the key 'moe'"),
    "another kind": (edit_json("config.json", model_type="t5"), "'marian' or 'bart', got 't5'"),
    "pre-norm": (edit_json("config.json", normalize_before=True), "normalize_before must be False"),
    "unscaled": (edit_json("config.json", scale_embedding=False), "scale_embedding must be True"),
    "activation": (edit_json("config.json", activation_function="mish"), "got 'mish'"),
    "no size": (edit_json("config.json", d_model=None), "embeddings must have the shape"),
    "another size": (edit_json("config.json", d_model=8), "embeddings must have the shape"),
    "another layer": (edit_json("config.json", encoder_layers=3), "have no model.encoder.layers.2"),
    "fewer layers": (edit_json("config.json", encoder_layers=1), "does not understand: model"),
    "another start": (
        edit_json("generation_config.json", decoder_start_token_id=0),
        "must be pad_token_id",
    ),
    "an unknown key of the search": (
        edit_json("generation_config.json", no_repeat_ngram_size=3),
        "generation_config.json has the key 'no_repeat_ngram_size'",
    ),
    "a forced first token": (
        edit_json("config.json", forced_bos_token_id=4),
        "forced_bos_token_id must be None, got 4",
    ),
    "forbidden words": (
        edit_json("config.json", bad_words_ids=[[40], [7]]),
        r"bad_words_ids must be \[\[40\]\]",
    ),
    "another end": (edit_json("generation_config.json", eos_token_id=3), "eos_token_id must be 0"),
    "another rule of early stopping": (
        edit_json("generation_config.json", early_stopping="sometimes"),
        "early_stopping must be true, false or 'never', got 'sometimes'",
    ),
    "a beam of words": (
        edit_json("generation_config.json", num_beams="wide"),
        "num_beams must be a number of at least 1, got 'wide'",
    ),
    "a negative penalty": (
        edit_json("generation_config.json", length_penalty=-1),
        "length_penalty must be a number of at least 0, got -1",
    ),
    "a dropout of words": (edit_json("config.json", dropout="some"), "dropout must be a number"),
    "no weights": (remove("model.safetensors"), "has no weights"),
    "weights cut short": (cut_short("model.safetensors"), "cut short or no safetensors file"),
    "another shape": (
        edit_weights(lambda arrays: arrays | {FC1: arrays[FC1][:, :-1].copy()}),
        r"fc1.weight has the shape \(24, 15\), and the configuration needs \(24, 16\)",
    ),
    "NaN": (
        edit_weights(lambda arrays: arrays | {FC1: arrays[FC1] * np.float32(np.nan)}),
        "fc1.weight has values that are not finite",
    ),
    "a foreign weight": (
        edit_weights(lambda arrays: arrays | {"rnn": np.zeros(2, np.float32)}),
        "does not understand: rnn",
    ),
    "no vocabulary": (remove("vocab.json"), "vocab.json cannot be read as JSON"),
    "an id too large": (edit_json("vocab.json", zz=999), "the id of 'zz' must be from 0 to"),
    "an id twice": (edit_json("vocab.json", zz=5), "have the same id 5"),
    "no end": (edit_json("vocab.json", **{"</s>": None}), "has no </s>"),
    "no pieces": (remove("source.spm"), "source.spm cannot be read"),
    "pieces cut short": (cut_short("target.spm"), "target.spm: the file is not a SentencePiece"),
    "subword-nmt": (lambda x: (x / "source.bpe").touch(), "subword-nmt are not supported"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_folder_that_cannot_be_imported_is_an_error_and_leaves_nothing(fault, tmp_path):
    folder = folder_of("shared", tmp_path / "model")
    make_fault, message = BROKEN[fault]
    make_fault(folder)
    with pytest.raises(InputError, match=message):
        import_model.main(marian=str(folder), run_dir=str(tmp_path / "runs" / "x"))
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


@pytest.mark.parametrize(
    ("stored", "rule"), [(None, False), (False, False), (True, True), ("never", "never")]
)
def test_early_stopping_is_that_of_the_folder(stored, rule, tmp_path):
    folder = folder_of("shared", tmp_path / "model")
    path = folder / "generation_config.json"
    options = json.loads(path.read_text("utf-8")) | {"early_stopping": stored}
    path.write_text(json.dumps(options), "utf-8")
    assert marian_folder.read(folder).config.decode.early_stopping == rule


@pytest.mark.parametrize("version", ["4.57.6", "5.24.0"])
def test_each_key_at_the_default_of_transformers_changes_nothing(version, tmp_path):
    """But for the keys that describe the model, which have no default here."""
    folder = folder_of("shared", tmp_path / "model")
    before = marian_folder.read(folder)
    defaults = json.loads((FIXTURES / "defaults.json").read_text("utf-8"))[version]
    read = {*marian_folder.READ, *marian_folder.FIXED}
    unread = {}
    for name, options in defaults.items():
        added = {key: value for key, value in options.items() if key not in read}
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | added), "utf-8")
        unread[name] = sorted(added.keys() - {*marian_folder.IGNORED})
    after = marian_folder.read(folder)
    assert after.config == before.config
    assert after.notes == [
        f"{name}: not read, because their values change nothing: {', '.join(keys)}"
        for name, keys in unread.items()
        if keys
    ]
    assert "repetition_penalty" in unread["generation_config.json"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("extra_pos_embeddings", 41), ("num_beams", None), ("decoder_start_token_id", None)),
        *(("force_bos_token_to_be_generated", False), ("repetition_penalty", 1.0)),
        *(("torchscript", False), ("pruned_heads", {}), ("top_k", 50), ("temperature", 0.7)),
        *(("no_repeat_ngram_size", 0), ("max_new_tokens", None), ("a_later_option", [])),
        ("normalize_before", None),
    ],
)
def test_a_key_that_changes_nothing_is_ignored(key, value, tmp_path):
    folder = folder_of("shared", tmp_path / "model")
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {key: value}), "utf-8")
    found, stored = (
        marian_folder.read(folder),
        marian_folder.read(folder_of("shared", tmp_path / "x")),
    )
    assert found.config == stored.config
    is_read = key in {*marian_folder.READ, *marian_folder.FIXED}
    assert any(key in note for note in found.notes) != is_read


KNOWN = {*marian_folder.READ, *marian_folder.FIXED, *marian_folder.IGNORED, *marian_folder.IDLE}


@given(
    key=st.sampled_from([*marian_folder.OFF, "no_repeat_ngram_size", "do_sample", "new"])
    | st.text().filter(lambda key: key not in KNOWN),
    value=st.sampled_from([2, 0.5, -1, "x", [0], {"a": 0}, [[]]]),
)
def test_a_key_that_may_change_translations_is_an_error(key, value):
    with pytest.raises(InputError, match=r"c\.json has the key .* with the value .*remove it"):
        Options({key: value}, pathlib.Path("c.json")).without_effect(KNOWN, marian_folder.OFF)


def test_zero_and_one_do_not_turn_off_each_option():
    values = {"repetition_penalty": 0, "max_new_tokens": 0, "min_new_tokens": 1, "do_sample": True}
    for key, value in values.items():
        with pytest.raises(InputError, match=f"has the key '{key}' with the value {value}"):
            Options({key: value}, pathlib.Path("c.json")).without_effect(KNOWN, marian_folder.OFF)


def test_a_length_penalty_of_0_is_kept(tmp_path):
    folder = folder_of("shared", tmp_path / "model")
    edit_json("generation_config.json", length_penalty=0.0)(folder)
    assert marian_folder.read(folder).config.decode.length_penalty == 0


def test_pieces_of_another_model_are_an_error(tmp_path):
    folder = folder_of("shared", tmp_path / "model")
    tokenizer = Tokenizer.train(["quite other words", "xyz qqq vvv"], 300, normalization="nmt_nfkc")
    tokenizer.save(folder / "source.spm")
    with pytest.raises(InputError, match="belong to different models"):
        marian_folder.read(folder)


def test_an_existing_run_is_kept(tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(InputError, match="exists"):
        import_model.main(
            marian=str(folder_of("shared", tmp_path / "model")), run_dir=str(tmp_path / "run")
        )


def test_what_the_import_assumes_is_said(tmp_path, capsys):
    folder = folder_of("shared", tmp_path / "model")
    edit_json("config.json", activation_function=None)(folder)
    without = edit_weights(lambda arrays: {n: x for n, x in arrays.items() if "logits" not in n})
    without(folder)
    import_model.main(marian=str(folder), run_dir=str(tmp_path / "run"))
    printed = capsys.readouterr().out
    assert "has no activation_function: swish" in printed
    assert "the bias of the logits is 0" in printed
    assert Run.load(tmp_path / "run").config.model.activation == "swish"


@pytest.mark.slow
def test_an_imported_model_goes_through_every_command(tmp_path, capsys):
    """Translate with all outputs, evaluate, exports, demo page, ensemble, `.keras`, fine-tune."""
    import_model.main(
        marian=str(folder_of("shared", tmp_path / "model")), run_dir=str(tmp_path / "run")
    )
    run_dir = str(tmp_path / "run")
    texts = [">>deu<< a small house", "", ">>deu<< who is there?", ">>deu<< 日本"]
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("\n".join(texts) + "\n", "utf-8")
    outputs = {
        "n_best_output": str(tmp_path / "n_best.txt"),
        "scores_output": str(tmp_path / "scores.txt"),
        "alignments_output": str(tmp_path / "links.txt"),
        "attention_output": str(tmp_path / "attention.html"),
    }
    translate.main(run_dir, str(source), str(target), **outputs, num_hypotheses=2)
    expected = target.read_text("utf-8").split("\n")[:-1]
    assert expected[0] == "ein kleines Haus"
    assert len((tmp_path / "links.txt").read_text("utf-8").split("\n")) == len(texts) + 1
    evaluate.main(run_dir, str(source), str(target))
    assert '"bleu": 100.0' in capsys.readouterr().out
    export.main(run_dir, str(tmp_path / "1"), target_tag=">>nld<<")  # of texts without a tag
    assert [each.text for each in Translator.load(tmp_path / "1")(texts)] == expected
    for form in ("ctranslate2", "marian"):
        export.main(run_dir, str(tmp_path / form), format=form)
    (of_page,) = demo.load(run_dir, "", "", "", "", "float32")
    assert [row[0].text for row in of_page.n_best(texts, ())] == expected
    assert len(of_page.align([(texts[0], expected[0])])[0]) == len(expected[0].split())
    together = Translator.from_run(f"{run_dir},{run_dir}")
    assert [each.text for each in together(texts)] == expected
    translator = Translator.from_run(run_dir)
    translator.model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    inputs = (tf.constant([[5, 6, 2]]), tf.constant([[1, 7]]))
    np.testing.assert_array_equal(loaded(inputs), translator.model(inputs))

    config = Run.load(run_dir).config
    data = {"train_source": str(source), "train_target": str(target)}
    trained = replace(
        config,
        data=replace(config.data, **data, valid_source=str(source), valid_target=str(target)),
        train=TrainConfig(steps=2, validate_every=2, init_from=run_dir, warmup_steps=100),
    )
    result = trainer.train(Run.at(tmp_path / "tuned", trained))
    assert result.updates == 2
    assert result.metrics["val_loss"] < 5


@pytest.mark.parametrize(
    "text", ["a small house", "日本 is 日本語 h", ">>nld<< who öä is", ">>deu<<a"]
)
def test_every_id_belongs_to_a_word(case, text):
    for field in ("source", "target"):
        tokenizer = case.codec[field]
        words = tokenizer.word_of_pieces(text)
        assert len(words) == len(tokenizer.encode(text)) - 1
        assert words == sorted(words)
        assert words[-1] == len(text.split()) - 1


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The run of a model with target tags."""
    folder = tmp_path_factory.mktemp("imported")
    import_model.main(
        marian=str(folder_of("shared", folder / "model")), run_dir=str(folder / "run")
    )
    return folder / "run"


@pytest.fixture(scope="module")
def tagged(imported):
    return Translator.from_run(imported, target_tag=">>nld<<")


def test_the_tag_of_the_target_language_is_an_option_or_stands_in_the_text(imported, tagged):
    plain = Translator.from_run(imported)
    texts = ["a small house", "two dogs run", ""]
    in_text = plain([f">>nld<< {text}" if text else "" for text in texts])
    assert tagged(texts) == in_text
    assert in_text[0].score != plain([">>deu<< a small house"])[0].score
    assert Translator.from_run(imported, target_tag="nld").config == tagged.config
    for use in (plain, lambda texts: plain.score(texts, texts)):
        with pytest.raises(
            InputError, match="several target languages, >>deu<<, >>nld<<, and 'two dogs run' has"
        ):
            use([">>nld<< one", "", "two dogs run"])
    assert tagged([">>deu<< two dogs run"]) == plain([">>deu<< two dogs run"])
    assert tagged.align(["a small house"], ["ein Haus"])[0].source.words[0] == "a"
    for use in (
        lambda: plain([">>eng<< a house"]),
        lambda: plain.score([">>eng<< a house"], ["Haus"]),
        lambda: Translator.from_run(imported, target_tag=">>eng<<"),
    ):
        with pytest.raises(
            InputError, match="unknown target tag '>>eng<<'; this model has >>deu<<"
        ):
            use()


@pytest.mark.slow
def test_tags_of_the_target_languages_are_an_input(imported, tagged, tmp_path):
    """For each text, and in an export together with prefixes."""
    plain = Translator.from_run(imported)
    texts = ["a small house", "two dogs run", ">>deu<< a house", ""]
    tags = [">>nld<<", ">>deu<<", "", ">>nld<<"]
    in_text = [">>nld<< a small house", ">>deu<< two dogs run", ">>deu<< a house", ""]
    assert plain(texts, languages=tags) == plain(in_text)
    tags = ["nld", "deu", ">>nld<<", "nld"]  # the name in a tag is enough
    assert plain(texts, languages=tags) == plain(in_text)
    assert plain.joined(texts, languages=tags)[:3] == in_text[:3]
    other = [each.text for each in tagged(texts, languages=[">>deu<<", "", "", ""])]
    in_other = plain([">>deu<< a small house", ">>nld<< two dogs run"])
    assert other[:2] == [each.text for each in in_other]
    with pytest.raises(InputError, match=r"languages, >>deu<<, >>nld<<\. Give target_tag"):
        plain.save(tmp_path / "1")
    tagged.save(tmp_path / "1")
    saved, prefixes = Translator.load(tmp_path / "1"), ["", "a", "", ""]
    for more in ({}, {"prefixes": prefixes}):
        expected = plain(in_text, **more)
        found = saved(texts, languages=tags, **more)
        assert [each.text for each in found] == [each.text for each in expected]
        np.testing.assert_allclose(
            [each.score for each in found], [each.score for each in expected], atol=1e-4
        )
    for translator in (plain, saved):
        with pytest.raises(InputError, match=r"unknown language.*this model has >>deu<<, >>nld<<"):
            translator(["a house"], languages=["eng"])


@pytest.mark.slow
def test_translate_reads_the_tags_of_lines_from_a_file(imported, tmp_path):
    """Alignments and scores are those of the lines with their tags."""
    files = {"in": "a house\n>>deu<< two dogs\n", "tags": "nld\n\n", "prefixes": "\nb\n"}
    files["tagged"] = ">>nld<< a house\n>>deu<< two dogs\n"
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    outputs = {}
    for name, more in {"in": {"languages": str(tmp_path / "tags")}, "tagged": {}}.items():
        paths = [str(tmp_path / f"{name}.{kind}") for kind in ("out", "scores", "links")]
        out, scores, links = paths
        translate.main(
            *(str(imported), str(tmp_path / name), out),
            prefixes=str(tmp_path / "prefixes"),
            scores_output=scores,
            alignments_output=links,
            **more,
        )
        outputs[name] = [pathlib.Path(path).read_text("utf-8") for path in paths]
    assert outputs["in"] == outputs["tagged"]


def test_the_demo_starts_with_a_model_whose_texts_need_a_tag(imported):
    (model,) = demo.load(str(imported), "", "", "", "", "float32")
    text, options = "a small house", [("language", "nld")]
    ((best, *_),) = model.n_best([text], options)
    (matrix,) = model.align([(text, best.text)], options)
    assert [len(matrix), len(matrix[0])] == [len(best.text.split()), 3]


@pytest.mark.slow
def test_a_tag_after_blanks_is_one_tag_in_python_and_in_exports(imported, tmp_path):
    plain = Translator.from_run(imported, target_tag=">>deu<<")
    plain.save(tmp_path / "1")
    texts = [f"{start}>>nld<< two dogs\nrun" for start in ("", " ", "\n", "\ufeff", "\u00a0\0")]
    of_one = [">>nld<< two dogs run"], ["zwei"]
    (expected,) = plain(of_one[0])
    assert {each.text for each in plain(texts)} == {expected.text}
    assert {each.text for each in Translator.load(tmp_path / "1")(texts)} == {expected.text}
    scores = [each.score for each in (*plain.score(texts, ["zwei"] * 5), *plain.score(*of_one))]
    assert scores == pytest.approx(scores[-1:] * 6, abs=1e-5)
    assert plain([" >>nld<<\n", "\u00a0"])[0].text == ""
    with pytest.raises(InputError, match="unknown target tag '>>nld two dogs'"):
        plain(["\n>>nld two dogs"])


@pytest.fixture(scope="module")
def with_rules(imported):
    """Translators with all rules for texts, without and with a tag."""
    rules = {"copy_without_letters": True, "lower_capitals": True}
    return [
        Translator.from_run(imported, task_options=rules, punctuation="opus", target_tag=tag)
        for tag in ("", ">>nld<<")
    ]


@pytest.mark.parametrize("text", ["17", "TWO DOGS RUN", "Two Dogs Run To The Sea", " a – house"])
def test_a_tag_in_the_text_is_the_same_as_the_option(with_rules, text):
    """Copies, capitals and punctuation see the text without its tag."""
    plain, tagged = with_rules
    in_text = f">>nld<< {text}"
    assert plain([in_text]) == tagged([text]) == tagged([in_text])
    assert plain.score([in_text], ["HAUS"]) == tagged.score([text], ["HAUS"])
    sides = (plain.align([in_text], ["HAUS"])[0].source, tagged.align([text], ["HAUS"])[0].source)
    assert sides[0].pieces == sides[1].pieces
    assert sides[0].words == [">>nld<<", *sides[1].words]


def test_ctranslate2_reads_tags_as_this_project(imported, tmp_path):
    pytest.importorskip("ctranslate2")
    rules = {"copy_without_letters": True, "lower_capitals": True}
    translator = Translator.from_run(imported, task_options=rules, target_tag=">>deu<<")
    to_ctranslate2.write(translator, tmp_path / "ct2", "float32")
    model = run_in_ctranslate2.Model(str(tmp_path / "ct2"))
    texts = ["\n>>nld<< two dogs\nrun", "two dogs run", "\ufeff>>nld<< TWO DOGS RUN", ">>nld<<\n17"]
    texts += [" >>nld<< ", ">>> a"]
    sources, rows = map(model.texts.read, texts), translator.graph().read(as_strings(texts))
    found = {text: source for text, source in zip(texts, sources, strict=True) if source.ids}
    assert list(found) == [*texts[:3], texts[5]]  # the others are copied
    for text, row in zip(texts, rows.ids.to_list(), strict=True):
        assert text not in found or found[text].ids == row
    assert found[texts[2]].form is str.upper
    assert [each.text for each in model(texts)][3:5] == ["17", ""]
    with pytest.raises(ValueError, match="unknown target tag '>>eng<<'; this model has >>deu<<"):
        model([">>eng<< a"])


@pytest.mark.slow
def test_punctuation_of_the_training_texts_is_an_option(imported, tagged, tmp_path):
    """The SavedModel has the option and the tag."""
    plain, opus = tagged, Translator.from_run(imported, target_tag=">>nld<<", punctuation="opus")
    texts = ["a – small “house”…", ">>deu<< two\u00a0» dogs", ""]
    ascii_texts = ['a - small "house"...', '>>deu<< two" dogs', ""]
    expected = plain(ascii_texts)
    assert opus(texts) == expected
    assert opus.score(texts, ["Haus"] * 3) == plain.score(ascii_texts, ["Haus"] * 3)
    assert (
        opus.align(texts[:1], ["Haus"])[0].source
        == plain.align(ascii_texts[:1], ["Haus"])[0].source
    )
    opus.save(tmp_path / "1")
    assert [each.text for each in Translator.load(tmp_path / "1")(texts)] == [
        each.text for each in expected
    ]
