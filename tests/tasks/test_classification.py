"""Encoder-only models: pre-training, fine-tuning, scores, labels out, exports, bad input."""

import dataclasses
import io
import itertools
import json
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import reference
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_transformer.commands import evaluate, export, train, translate
from tf_transformer.config import Config, Corpus, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.config.task import ClassificationOptions
from tf_transformer.errors import InputError
from tf_transformer.inference.predictor import Prediction, pad
from tf_transformer.losses.cross_entropy import CrossEntropy
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.tasks import TestSet, load_predictor
from tf_transformer.tasks.classification import CLASSIFICATION
from tf_transformer.text.normalization import well_formed
from tf_transformer.training.setup import initialize

MODEL = ModelConfig(num_layers=1, d_model=16, d_ff=32, num_heads=2, dropout_rate=0.0)
SIZES = {"vocabulary_size": 320, "batch_tokens": 500, "max_length": 40}
WORDS = {"animal": ["dog", "cat", "horse", "bird"], "plant": ["oak", "rose", "fern", "grass"]}
SENTENCES = ["a {} and a {} here", "the {} is near the {}", "I see {} with {}"]
TEXTS = [  # (text, label)
    (sentence.format(*words), label)
    for label, names in WORDS.items()
    for words in itertools.product(names, names)
    for sentence in SENTENCES
]
np.random.default_rng(1).shuffle(TEXTS)


def options(steps, **more):
    defaults = {"warmup_steps": 30, "learning_rate": 0.5, "label_smoothing": 0.0, "threads": 2}
    return TrainConfig(steps=steps, validate_every=steps, **defaults | more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("encoder_only")


@pytest.fixture(scope="module")
def pretrained(folder):
    """A masked language model of all texts."""
    (folder / "text").write_text("".join(text + "\n" for text, _ in TEXTS))
    data = DataConfig(train_file=str(folder / "text"), **SIZES)
    run = folder / "pretrained"
    train.main(
        str(run), MODEL, data, options(100), DecodeConfig(average=1), "masked_language_modeling"
    )
    return run


@pytest.fixture(scope="module")
def classifier(folder, pretrained):
    """A classifier of the texts that starts with the encoder of the masked language model."""
    table = folder / "rows.tsv"
    rows = ["text\tlabel", *("\t".join(row) for row in TEXTS)]
    table.write_text("".join(row + "\n" for row in rows))
    data = DataConfig(train_file=str(table), **SIZES)
    tuning = options(60, init_from=str(pretrained))
    decode = DecodeConfig(average=1, num_hypotheses=2)
    train.main(str(folder / "run"), MODEL, data, tuning, decode, "classification")
    return folder / "run"


@pytest.fixture(scope="module")
def of_pairs(folder, pretrained):
    """Pairs of texts with any of three labels: the file, its configuration, an untrained model."""
    table = folder / "pairs.tsv"
    kinds = [{label, other} for (_, label), (_, other) in itertools.pairwise(TEXTS)]
    rows = [
        (one, ", ".join(sorted(kind)), other)
        for ((one, _), (other, _)), kind in zip(itertools.pairwise(TEXTS), kinds, strict=True)
    ]
    rows.append((*("nothing", "", "of the kind"),))
    table.write_text("".join("\t".join(row) + "\n" for row in rows))
    columns = ClassificationOptions(text_columns=("1", "3"), label_column="2", label_separator=",")
    data = DataConfig(train_file=str(table), **SIZES)
    config = CLASSIFICATION.complete(Config(model=MODEL, data=data, task=columns))
    codec = Run.load(pretrained).codec
    model = reference.randomize(CLASSIFICATION.build_model(config, codec, "float32"), seed=1)
    predictor = CLASSIFICATION.predictor(model, codec, DecodeConfig(batch_size=7))
    texts = CLASSIFICATION.load_test(config, "", str(table)).inputs
    p = predictor.probabilities(texts)  # the bias divides the texts in halves, for each label
    model.head.bias.assign(model.head.bias - np.median(np.log(p / (1 - p)), axis=0))
    return table, config, predictor


def test_a_masked_language_model_is_evaluated(pretrained, folder, capsys):
    evaluate.main(str(pretrained), reference=str(folder / "text"), output=str(folder / "restored"))
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert scores.keys() == {"masked_perplexity", "masked_accuracy", "masked", "sentences"}
    assert scores["masked_perplexity"] < 50
    assert 0 < scores["masked_accuracy"] < 1
    restored = (folder / "restored").read_text().splitlines()
    assert len(restored) == len(TEXTS)


def test_a_classifier_is_evaluated(classifier, folder, capsys):
    evaluate.main(str(classifier), reference=str(folder / "rows.tsv"))
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert scores.keys() == {"accuracy", "f1_macro", "f1_micro", "examples"}
    assert scores["accuracy"] > 0.95


def test_translate_gives_a_label_for_each_line_and_its_log_probability(
    classifier, folder, monkeypatch, capsysbinary
):
    lines = [text for text, _ in TEXTS[:20]] + [""]
    text = "".join(line + "\n" for line in lines).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    scores, n_best = folder / "scores", folder / "n_best"
    translate.main(str(classifier), scores_output=str(scores), n_best_output=str(n_best))
    p = load_predictor(Run.load(classifier)).probabilities(lines)
    labels = capsysbinary.readouterr().out.decode().split("\n")[:-1]
    assert labels == [("animal", "plant")[row.argmax()] for row in p]
    found = map(float, scores.read_text().split())
    np.testing.assert_allclose(list(found), np.log(p.max(axis=1)), atol=1e-5)
    listed = [line.split(" ||| ") for line in n_best.read_text().splitlines()]
    assert [number for number, *_ in listed] == [str(i) for i in range(len(lines)) for _ in "12"]
    assert [label for _, label, _ in listed[::2]] == labels
    of_lists = np.exp([float(score) for *_, score in listed]).reshape(-1, 2)
    np.testing.assert_allclose(of_lists, -np.sort(-p, axis=1), atol=1e-5)


def test_any_number_of_labels_have_a_probability_each(of_pairs):
    table, config, predictor = of_pairs
    assert config.task.labels == ("animal", "plant")
    test = CLASSIFICATION.load_test(config, "", str(table))
    found, scores = CLASSIFICATION.evaluate(predictor, test)
    p = predictor.probabilities(test.inputs)
    names = np.array(config.task.labels)
    assert found == [",".join(names[row > 0.5]) for row in p]
    assert len(set(found)) > 2
    right = np.array([[name in label for name in names] for label in test.references])
    hits, wrong = ((p > 0.5) & right).sum(axis=0), ((p > 0.5) != right).sum(axis=0)
    np.testing.assert_allclose(scores["f1_macro"], np.mean(2 * hits / (2 * hits + wrong)), 1e-5)
    np.testing.assert_allclose(
        scores["f1_micro"], 2 * hits.sum() / (2 * hits.sum() + wrong.sum()), 1e-5
    )
    np.testing.assert_allclose(scores["accuracy"], ((p > 0.5) == right).mean(), 1e-5)
    joint = np.log(np.where(right, p, 1 - p)).sum(axis=1)
    given = predictor.score(test.inputs, test.references)
    np.testing.assert_allclose([pair.log_probability for pair in given], joint, atol=1e-4)


LABEL_SETS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "é", "e\u0301", " a", "b "]), max_size=4),
    min_size=1,
    max_size=6,
)


@settings(max_examples=150)
@given(st.data())
def test_scores_of_sets_are_those_of_the_definitions(data):
    """Oracle: counts of Python sets in exact fractions, with the labels in any order and form."""
    predicted = data.draw(LABEL_SETS)
    right = data.draw(st.lists(st.permutations(["a", "b", "c", "\u00e9"]), min_size=len(predicted)))
    right = [row[: data.draw(st.integers(0, 4))] for row in right[: len(predicted)]]
    scoring = CLASSIFICATION.with_options(ClassificationOptions(label_separator=","))
    labels, given = ([",".join(row) for row in rows] for rows in (predicted, right))
    scores = scoring.score([], labels, [given])
    predicted = [{name.strip().replace("e\u0301", "\u00e9") for name in row} for row in predicted]
    right = list(map(set, right))
    names = set().union(*predicted, *right)
    pairs = list(zip(predicted, right, strict=True))
    hits = {name: sum(name in one and name in two for one, two in pairs) for name in names}
    both = {name: sum((name in one) + (name in two) for one, two in pairs) for name in names}
    f1 = [Fraction(2 * hits[name], both[name]) for name in names]
    micro = Fraction(2 * sum(hits.values()), sum(both.values())) if names else 1
    wrong = sum(len(one ^ two) for one, two in pairs)
    decisions = len(names) * len(pairs)
    assert scores == {
        "accuracy": pytest.approx(1 - wrong / decisions if names else 1, abs=1e-15),
        "f1_macro": pytest.approx(float(sum(f1) / len(f1)) if names else 1, abs=1e-15),
        "f1_micro": pytest.approx(float(micro), abs=1e-15),
        "examples": len(pairs),
    }
    turned = [",".join(sorted(row, reverse=True)) for row in right]
    assert list(scoring.score([], [",".join(sorted(row)) for row in right], [turned]).values()) == [
        1.0,
        1.0,
        1.0,
        len(right),
    ]


@settings(max_examples=100)
@given(st.lists(st.tuples(*[st.sampled_from(["a", "b", "c d", "é", ""])] * 2), min_size=1))
def test_scores_of_single_labels_are_those_of_the_definitions(pairs):
    predicted, right = map(list, zip(*pairs, strict=True))
    scores = CLASSIFICATION.score([], [f" {label}\t" for label in predicted], [right])
    assert scores["accuracy"] == pytest.approx(
        sum(a == b for a, b in pairs) / len(pairs), abs=1e-15
    )
    names = {*predicted, *right} - {""}
    f1 = [
        2 * pairs.count((name, name)) / (predicted.count(name) + right.count(name))
        for name in names
    ]
    assert scores["f1_macro"] == pytest.approx(np.mean(f1) if names else 1, abs=1e-15)
    assert list(CLASSIFICATION.score([], right, [right]).values()) == [1.0, 1.0, 1.0, len(right)]


@pytest.mark.parametrize("labels", [["a,b", "", "b"], ["", ""], ["a"]])
def test_labels_of_the_model_that_nothing_has_do_not_count(labels):
    class Perfect:
        model = SimpleNamespace(labels=("a", "b", "c"), separator=",")

        def __call__(self, texts, progress):
            return [Prediction(",".join(reversed(label.split(","))), 0.0) for label in labels]

    test = TestSet(labels, labels)
    scores = CLASSIFICATION.evaluate(Perfect(), test).scores
    assert list(scores.values()) == [1.0, 1.0, 1.0, len(labels)]


def test_given_labels_are_scored_as_sets_by_the_command(tmp_path, capsys):
    (tmp_path / "found").write_text("b, a\n\na,a\n")
    (tmp_path / "right").write_text("a,b\n\na\n")
    files = {"hypotheses": str(tmp_path / "found"), "reference": str(tmp_path / "right")}
    separator = {"task_options": {"label_separator": ","}}
    evaluate.main(**files, task="classification", **separator)
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert scores == {"accuracy": 1.0, "f1_macro": 1.0, "f1_micro": 1.0, "examples": 3}
    with pytest.raises(InputError, match="unknown metric 'ter'; expected f1_macro, f1_micro, acc"):
        evaluate.main(**files, task="classification", metric="ter")
    with pytest.raises(InputError, match="unknown option 'label_separator' of the task transl"):
        evaluate.main(**files, **separator)


def test_labels_that_look_equal_are_an_error(of_pairs):
    _, config, _ = of_pairs
    options = dataclasses.replace(config.task, labels=("\u00e9", "e\u0301"))
    with pytest.raises(InputError, match=r"task.labels must be different, got"):
        CLASSIFICATION.complete(dataclasses.replace(config, task=options))


def test_losses_of_any_number_of_labels_equal_numpy(of_pairs):
    _, config, predictor = of_pairs
    examples = CLASSIFICATION.load_splits(config).valid
    rows = CLASSIFICATION.encode(examples.texts, predictor.codec)
    batch = {name: pad(rows) for name, rows in rows.items()}
    losses = CLASSIFICATION.losses(predictor.model, batch, CrossEntropy(0.1), training=False)
    p = predictor.probabilities(examples["text"]).astype("float64")
    right = np.array(
        [[name in label for name in config.task.labels] for label in examples["label"]]
    )
    smooth = 0.9 * right + 0.05
    expected = [
        -(smooth * np.log(p) + (1 - smooth) * np.log(1 - p)).sum(),
        -np.log(np.where(right, p, 1 - p)).sum(),
        ((p > 0.5) == right).sum(),
        right.size,
    ]
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def test_an_export_gives_labels_and_probabilities(classifier, folder):
    """The command compares the export with the run in a fresh process."""
    export.main(str(classifier), str(folder / "served" / "1"))
    facts = (folder / "served" / "1" / "assets.extra" / "metadata.json").read_text()
    expected = {"labels": ["animal", "plant"], "separator": "", "texts": 1}
    assert json.loads(facts)["classification"] == expected


@pytest.mark.parametrize("kind", ["pairs", "vectors"])
def test_exports_of_pairs_and_of_vectors_equal_the_predictor(kind, of_pairs, pretrained, folder):
    predictor = (
        of_pairs[2] if kind == "pairs" else load_predictor(Run.load(pretrained, batch_size=7))
    )
    texts = ["", "a dog", "word " * 3000, "a dog\tthe oak", "\t", "a\tb\tc", "\ud800"] * 3
    predictor.save(folder / kind)
    ((name, case),) = predictor.signatures(texts).items()
    graph = tf.saved_model.load(folder / kind).signatures[name]
    inputs = {name: [well_formed(text) for text in texts] for name, texts in case.inputs.items()}
    found = graph(**{name: tf.constant(texts) for name, texts in inputs.items()})
    assert found.keys() == case.outputs.keys()
    for name, values in case.outputs.items():
        if name == "label":
            assert [label.decode() for label in found[name].numpy()] == values
        else:
            np.testing.assert_allclose(found[name], values, atol=1e-5)
    assert sum(case.outputs["truncated"]) == 3


# --- bad input ---------------------------------------------------------------------------------

BAD = {
    "no rows": ("text\tlabel\n", "bad.tsv holds no rows after its first line"),
    "an empty file": ("", r"bad.tsv has no column 'label'"),
    "no such column": (
        "text\tkind\na\tx\n",
        r"no column 'label'; its first line names 'text', 'kind'",
    ),
    "too few columns": (
        "text\tlabel\na\tx\nb\n",
        "line 3 of .*bad.tsv has too few columns: .* got 1",
    ),
    "an empty text": (
        "text\tlabel\na\tx\n \ty\n",
        "line 3 of .*bad.tsv: column 'text' has no text",
    ),
    "an empty label": (
        "text\tlabel\na\tx\nb\t\nc\ty\n",
        "line 3 of .*: column 'label' has no label",
    ),
    "one label": ("text\tlabel\na\tx\nb\tx\n", "bad.tsv has 1 label in column 'label'.* two"),
    "not UTF-8": (b"text\tlabel\na\tx\nb\xff\ty\n", "line 3 of .*bad.tsv is not UTF-8"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_rows_are_errors_that_name_file_and_line(content, message, tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def read():
        data = DataConfig(train_file=str(path))
        config = CLASSIFICATION.complete(Config(data=data, task="classification"))
        return CLASSIFICATION.load_splits(config).train.read()

    with pytest.raises(InputError, match=message):
        read()


def test_a_label_that_training_has_not_seen_is_an_error(classifier, tmp_path):
    config = RunFolder(classifier).load_config()
    assert config.task.labels == ("animal", "plant")
    (tmp_path / "test.tsv").write_text("text\tlabel\na dog\tanimal\na stone\tmineral\n")
    message = "line 3 of .*test.tsv: the label 'mineral' is not in the training file"
    with pytest.raises(InputError, match=message):
        CLASSIFICATION.load_test(config, "", str(tmp_path / "test.tsv"))


def test_a_pair_without_a_tab_is_an_error(of_pairs):
    with pytest.raises(InputError, match="expected two texts with a tab between them, got 'a dog"):
        of_pairs[2](["a dog"])


def test_a_model_with_only_the_encoder_of_its_start_is_not_compared_with_it(classifier):
    assert [row["step"] for row in RunFolder(classifier).load_metrics()] == [60]


def test_a_classifier_with_other_labels_has_a_new_head(classifier):
    """Also if they are as many, or the same ones in another order."""
    origin = Run.load(classifier)
    trained = origin.model(CLASSIFICATION.build_model)
    for labels in (origin.config.task.labels, ("plant", "animal"), ("animal", "plant", "stone")):
        task = dataclasses.replace(origin.config.task, labels=labels)
        config = dataclasses.replace(origin.config, task=task)
        model = CLASSIFICATION.build_model(config, origin.codec, "float32")
        before = np.asarray(model.head.kernel)
        initialize(model, config, origin)
        for ours, theirs in zip(model.encoder.weights, trained.encoder.weights, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        is_new = np.array_equal(before, model.head.kernel)
        assert is_new == (labels != origin.config.task.labels)


def test_an_encoder_of_another_model_is_an_error(run, folder, classifier, tmp_path):
    """The run is a translator, whose encoder does not hold the embeddings."""
    config = RunFolder(run).load_config()
    rows = Corpus(path=str(folder / "rows.tsv"), format="text")
    data = dataclasses.replace(config.data, corpora=(rows,))
    tuning = options(1, init_from=str(run))
    message = r"its model \(Transformer\) has the layers .*encoder .*Both need an encoder"
    with pytest.raises(InputError, match=message):
        train.main(str(tmp_path / "run"), config.model, data, tuning, task="classification")
    assert not (tmp_path / "run").exists()
