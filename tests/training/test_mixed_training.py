"""A training on several corpora: weights, tags, their exposure in the log, and resuming."""

import contextlib
import dataclasses
import io
import json

import numpy as np
import pytest
import tensorflow as tf
from conftest import small_config, weights_of
from training.test_trainer import set_scores

from tf_transformer import tasks
from tf_transformer.commands import evaluate, export
from tf_transformer.config import AugmentConfig, Corpus
from tf_transformer.config.train import Stage
from tf_transformer.data.readers.generated import generate
from tf_transformer.errors import InputError
from tf_transformer.export import to_marian
from tf_transformer.export.run_in_ctranslate2 import Model
from tf_transformer.inference.translator import Translator
from tf_transformer.run.directions import Direction, directions_of
from tf_transformer.run.earlier import present_options
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.training import preparation, trainer

NAMES = ("numbers.en-de", "numbers.en-fr")
WEIGHTS = (1.0, 2.5)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """English to German and English to French, each with the tag of its language."""
    folder, listed = tmp_path_factory.mktemp("corpora"), []
    for language, weight in zip(("de", "fr"), WEIGHTS, strict=True):
        paths = []
        for side, ending in (("source", "en"), ("target", language)):
            name = f"{language}/numbers.{ending}"
            paths.append(folder / name)
            paths[-1].parent.mkdir(exist_ok=True)
            lines = generate(60, "en", language, seed=1)[side]
            paths[-1].write_text("".join(f"{line}\n" for line in lines))
        listed.append(Corpus(*map(str, paths), weight=weight, tag="language"))
    return tuple(listed)


@pytest.fixture(scope="module")
def config_of(corpora):
    """A function of options of the data and of the training."""

    def config_of(data=(), **train):
        config = small_config(valid_score_examples=8, **train)
        options = {"corpora": corpora, "held_out": 10, "vocabulary_size": 450} | dict(data)
        data = dataclasses.replace(config.data, **options, generated_pairs=40_000)
        config = dataclasses.replace(config, data=data)
        return tasks.for_run(config).complete(config)

    return config_of


@pytest.fixture(scope="module")
def trained(config_of, tmp_path_factory):
    """The folder of a run, with what it printed in the file printed.txt."""
    run_dir = tmp_path_factory.mktemp("run")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        trainer.train(Run.at(run_dir, config_of(steps=6)))
    (run_dir / "printed.txt").write_text(printed.getvalue())
    return run_dir


def test_the_log_has_the_exposure_and_the_scores_of_each_corpus(trained):
    rows = RunFolder(trained).load_metrics(6)
    assert [row["step"] for row in rows] == [2, 4, 6]
    for row in rows:
        per_pair = [row[f"seen_per_distinct_pair/{name}"] for name in NAMES]
        assert per_pair[1] == pytest.approx(2.5 * per_pair[0])
        losses = [row[f"val_loss/{name}"] for name in NAMES]
        assert min(losses) < row["val_loss"] < max(losses)
        assert all(0 <= row[f"val_chrf/{name}"] <= 100 for name in NAMES)
    seen = [row[f"seen/{NAMES[1]}"] for row in rows]
    assert seen == sorted(set(seen))
    tags = {
        value.tag
        for events in (trained / "logs").glob("events*")
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    assert {f"seen/{name}" for name in NAMES} | {f"val_loss/{name}" for name in NAMES} <= tags


def test_the_terminal_has_a_table_for_the_whole_training_and_for_each_validation(trained):
    lines = [line.split() for line in (trained / "printed.txt").read_text().split("\n")]
    plan = ["corpus", "weight", "pairs", "distinct", "will", "see", "per", "distinct", "pair"]
    table = lines[lines.index(plan) : lines.index(plan) + 3]
    assert [row[:2] for row in table[1:]] == [[NAMES[0], "1"], [NAMES[1], "2.5"]]
    start = next(n for n, row in enumerate(lines) if row[:2] == ["corpus", "seen"])
    assert [row[0] for row in lines[start + 1 : start + 3]] == [*NAMES]


def test_one_corpus_has_no_columns_of_its_own(run):
    assert not any("/" in name for row in RunFolder(run).load_metrics(4) for name in row)


def test_the_model_takes_the_tags_of_its_corpora(trained):
    assert set(Run.load(trained).codec["source"].tags) == {">>de<<", ">>fr<<"}
    config = Run.load(trained).config
    assert [corpus.tag for corpus in config.data.corpora] == [">>de<<", ">>fr<<"]
    translator = Translator.from_run(trained, beam_size=1)
    tagged = translator([">>fr<< one"])
    for language in (">>fr<<", "fr"):
        assert translator(["one"], languages=[language]) == tagged
    assert Translator.from_run(trained, beam_size=1, target_tag="fr")(["one"]) == tagged
    with pytest.raises(InputError, match="several target languages, >>de<<, >>fr<<, and 'one' has"):
        translator(["one"])
    assert directions_of(Run.load(trained)) == [
        Direction("en", "de", ">>de<<"),
        Direction("en", "fr", ">>fr<<"),
    ]
    with pytest.raises(InputError, match=">>it<<"):
        translator([">>it<< one"])


def test_exports_refuse_a_text_without_a_language_or_say_that_they_do_not(trained, tmp_path):
    """Oracle: the translator of the run, which refuses such a text."""
    pytest.importorskip("ctranslate2")
    export.main(str(trained), str(tmp_path / "ct2"), format="ctranslate2", beam_size=1)
    model = Model(str(tmp_path / "ct2"), threads=1)
    translator = Translator.from_run(trained, beam_size=1)
    texts = [">>fr<< one", ">>de<< two", "", "  "]
    assert [row.text for row in model(texts)] == [row.text for row in translator(texts)]
    message = ">>de<<, >>fr<<.* 'one'"
    for predict in (translator, model, lambda x: model.score(x, x)):
        with pytest.raises(ValueError, match=message):
            predict([">>fr<< one", "one"])
    summary = to_marian.write(translator, tmp_path / "marian")
    assert "does not refuse a text that starts with none of the tags >>de<<, >>fr<<" in summary
    assert "required" not in summary
    with_default = Translator.from_run(trained, beam_size=1, target_tag="fr")
    assert "target_tag >>fr<<" in to_marian.write(with_default, tmp_path / "marian_fr")


def test_an_evaluation_has_a_table_of_directions(trained, corpora, capsys):
    tests = tuple(dataclasses.replace(corpus, weight=1.0, limit=5) for corpus in corpora)
    evaluate.main(str(trained), corpora=tests, beam_size=1)
    *table, one, two, last = capsys.readouterr().out.splitlines()
    scores = json.loads(last)
    assert [row.split()[0] for row in table[-3:]] == ["corpus", *NAMES]
    for name, line in zip(NAMES, (one, two), strict=True):
        assert line == f"{name}: seen in training: 5 sources, 5 targets, 5 pairs of 5"
    for name in ("bleu", "chrf"):
        assert scores[name] == np.mean([scores["corpora"][corpus][name] for corpus in NAMES])
    assert scores["signature"] == scores["corpora"][NAMES[0]]["signature"]
    evaluate.main(str(trained), corpus=tests[1], beam_size=1)
    one = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert one == scores["corpora"][NAMES[1]]
    assert one["seen"]["pairs"] == 5


def test_a_test_set_without_tags_is_an_error(trained, corpora):
    plain = dataclasses.replace(corpora[0], tag="", limit=3)
    with pytest.raises(InputError, match=r"texts with tags \(>>de<<, >>fr<<\), but the test set"):
        evaluate.main(str(trained), plain.source, plain.target)
    with pytest.raises(InputError, match=r"texts with tags \(>>de<<, >>fr<<\), but the test set"):
        evaluate.main(str(trained), corpus=plain)
    evaluate.main(str(trained), corpus=plain, target_tag=">>fr<<", beam_size=1)


@pytest.mark.slow
def test_an_interrupted_run_ends_bit_for_bit_as_an_uninterrupted_one(trained, config_of, tmp_path):
    for steps in (3, 6):
        trainer.train(Run.at(tmp_path, config_of(steps=steps)))
    for whole, parts in zip(weights_of(trained), weights_of(tmp_path), strict=True):
        np.testing.assert_array_equal(whole, parts)
    assert (
        RunFolder(tmp_path).load_metrics(6)[-1].keys()
        == RunFolder(trained).load_metrics(6)[-1].keys()
    )


@pytest.mark.parametrize("change", [{"weight": 2.0}, {"tag": ">>it<<"}, {"limit": 50}])
def test_a_run_does_not_resume_with_another_mixture(trained, config_of, corpora, change):
    config = config_of({"corpora": (corpora[0], dataclasses.replace(corpora[1], **change))})
    with pytest.raises(InputError, match=r"the training.* text of .* has changed"):
        preparation.prepare(Run.at(trained, config), tasks.for_run(config))


def test_a_tag_outside_the_vocabulary_of_the_origin_is_an_error(
    trained, config_of, corpora, tmp_path
):
    other = dataclasses.replace(corpora[0], tag=">>it<<")
    config = config_of({"corpora": (other, corpora[1])}, init_from=str(trained))
    with pytest.raises(InputError, match=r">>it<< .* is not in .*, which has >>de<<, >>fr<<"):
        preparation.prepare(Run.at(tmp_path / "new", config), tasks.for_run(config))


def test_a_vocabulary_of_bytes_has_no_tags(config_of, tmp_path):
    config = config_of({"vocabulary_size": 261})
    with pytest.raises(InputError, match="is not in a vocabulary of bytes, which has no tags"):
        preparation.prepare(Run.at(tmp_path / "new", config), tasks.for_run(config))


def test_augmented_texts_keep_their_tags(config_of, tmp_path):
    augment = AugmentConfig(join=0.5, upper=1.0)
    config = config_of({"augment": augment, "bpe_dropout": 0.1})
    data = preparation.prepare(Run.at(tmp_path, config), tasks.for_run(config))
    tags = set(data.codec["source"].tags.values())
    batches = data.train.batches()
    rows = [row for _ in range(20) for row in next(batches)["source"]]
    assert {row[0] for row in rows} == tags
    assert not any(set(row[1:]) & tags for row in rows)
    texts = [data.codec.decode("source", row) for row in rows]
    assert all(text == text.upper() for text in texts)
    assert max(len(text.split()) for text in texts) > 6, "some are joined"


@pytest.mark.slow
def test_patience_waits_for_a_whole_pass(config_of, corpora, tmp_path, monkeypatch):
    """Each epoch has two fifths of one corpus, so three epochs have all of it."""
    set_scores(monkeypatch, 2, *[1] * 100)
    weighted = corpora[0], dataclasses.replace(corpora[1], weight=0.4)
    options = {"metric": "chrf", "patience": 1, "validate_every": 4}
    config = config_of({"corpora": weighted}, steps=1000, **options)
    result = trainer.train(Run.at(tmp_path, config))
    text = preparation.prepare(Run.at(tmp_path, config), tasks.for_run(config)).train
    assert result.stopped_early
    assert 3 * len(text) <= result.updates < 3 * len(text) + 4


IN_STAGES = (Stage(updates=3), Stage(corpora=NAMES[1:], updates=4))


def seen_of(run_dir, updates):
    """How often each corpus was seen, at each validation."""
    rows = RunFolder(run_dir).load_metrics(updates)
    return {row["step"]: [row[f"seen/{name}"] for name in NAMES] for row in rows}


@pytest.fixture(scope="module")
def staged(config_of, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("staged")
    trainer.train(Run.at(run_dir, config_of(stages=IN_STAGES, metric="chrf")))
    return run_dir


def test_a_stage_has_its_corpora_and_updates(staged):
    seen = seen_of(staged, 7)
    assert list(seen) == [2, 3, 5, 7]  # intervals of two updates in each stage
    assert [of_both[0] for of_both in seen.values()] == [seen[2][0], *[seen[3][0]] * 3]
    assert 0 < seen[2][1] < seen[3][1] < seen[5][1] < seen[7][1]


@pytest.mark.parametrize("stop", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_a_training_in_stages_resumes_bit_for_bit(staged, config_of, tmp_path, monkeypatch, stop):
    """After an interruption at the end of a stage, and within the next one."""

    def interrupt(update):
        if update == stop:
            raise KeyboardInterrupt

    run = Run.at(tmp_path, config_of(stages=IN_STAGES, metric="chrf"))
    with monkeypatch.context() as patch:
        set_scores(patch, *range(10))
        with pytest.raises(KeyboardInterrupt):
            trainer.train(run, interrupt)
    result = trainer.train(run)
    assert result.updates == 7
    assert not result.stopped_early
    for whole, parts in zip(weights_of(staged), weights_of(tmp_path), strict=True):
        np.testing.assert_array_equal(whole, parts)
    assert seen_of(tmp_path, 7) == seen_of(staged, 7)


def test_patience_ends_a_stage_after_a_whole_pass(config_of, tmp_path, monkeypatch):
    """The next stage has new patience, and both keep the best score."""
    set_scores(monkeypatch, 2, *[1] * 100)
    stages = (Stage(patience=1), Stage(corpora=NAMES[:1], updates=100, patience=2))
    options = {"metric": "chrf", "validate_every": 4, "stages": stages}
    result = trainer.train(Run.at(tmp_path, config_of(**options)))
    run = Run.at(tmp_path, config_of(**options))
    passes = [len(text) for text in preparation.prepare(run, tasks.for_run(run.config)).texts]
    first = max(8, -(-passes[0] // 4) * 4)  # the second score is the first one without improvement
    second = max(8, -(-passes[1] // 4) * 4)
    assert result.updates == first + second
    assert result.stopped_early
    assert result.best_update == 4


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ((Stage(corpora=("web",)),), "no corpus 'web'; the corpora are numbers.en-de, numbers.en"),
        ((Stage(corpora=NAMES[:1]),), "no stage of train.stages has the corpus 'numbers.en-fr'"),
    ],
)
def test_stages_name_all_corpora(config_of, tmp_path, stages, message):
    config = config_of(stages=stages)
    with pytest.raises(InputError, match=message):
        preparation.prepare(Run.at(tmp_path, config), tasks.for_run(config))


def test_earlier_options_of_stages_say_what_to_write():
    corpus = {"source": "a.en", "target": "a.de", "until_epoch": 0}
    options = {"data": {"corpora": [corpus]}}
    assert "until_epoch" not in present_options(options, "translation")["data"]["corpora"][0]
    with pytest.raises(InputError, match=r"no until_epoch\. Write its epochs as stages"):
        present_options({"data": {"corpora": [corpus | {"until_epoch": 8}]}}, "translation")
