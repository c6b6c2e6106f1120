"""Language modelling: windows of lines, perplexities by hand, and a run with all commands."""

import dataclasses
import json
import math

import numpy as np
import pytest

from tf_transformer import tasks
from tf_transformer.commands import evaluate, export, train, translate
from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig
from tf_transformer.errors import InputError
from tf_transformer.export import check
from tf_transformer.inference.text_generator import TextGenerator, TextScore
from tf_transformer.losses.cross_entropy import CrossEntropy
from tf_transformer.models.language_model import LanguageModel
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.tasks import TestSet
from tf_transformer.tasks.language_modeling import LANGUAGE_MODELING, perplexities
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import BYTES, Tokenizer
from tf_transformer.training import trainer

NAMES = ("tom", "mary", "ann", "the old man", "a dog")
LINES = [f"{name} {verb} {place}" for name in NAMES for verb in ("is", "was") for place in
         ("here", "at home", "in the garden")] * 6  # fmt: skip


@pytest.fixture(scope="module")
def codec():
    return Codec(Tokenizer.train([], BYTES))


def test_windows_of_long_lines_hold_every_token_once(codec):
    found = LANGUAGE_MODELING.encode_examples({"text": ["abcdefg", "", "abc"]}, codec, 4)
    whole = LANGUAGE_MODELING.encode({"text": ["abcdefg", "", "abc"]}, codec)["text"]
    assert found["text"] == [whole[0][:4], whole[0][4:], whole[1], whole[2]]
    assert found["before"] == [[1], [whole[0][3]], [1], [1]]


def test_the_loss_is_that_of_each_token_after_those_before_it(codec):
    config = Config(model=ModelConfig(num_layers=1, d_model=8, d_ff=9, num_heads=2))
    model = LANGUAGE_MODELING.build_model(config, codec, "float32")
    batch = {"before": np.int32([[1], [7]]), "text": np.int32([[5, 6, 2], [9, 2, 0]])}
    found = LANGUAGE_MODELING.losses(model, batch, CrossEntropy(), training=False)
    logits = np.asarray(model(np.int32([[1, 5, 6], [7, 9, 2]])), np.float64)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -sum(log_p[b, t, batch["text"][b, t]] for b, t in zip("00011", "01201", strict=True)
                    for b, t in [(int(b), int(t))])  # fmt: skip
    assert float(found.nll) == pytest.approx(expected, rel=1e-5)
    assert float(found.tokens) == 5


def test_perplexities_by_hand():
    """ln p = -12 ln 2: of 4 tokens; of 2 + 1 and 1 + 1 words; of 4 + 1 and 2 + 1 bytes."""
    scores = [TextScore(-8 * math.log(2), 3), TextScore(0.0, 0), TextScore(-4 * math.log(2), 1)]
    found = perplexities(["a bc", "é"], scores)
    assert (found["tokens"], found["words"], found["bytes"]) == (4, 5, 8)
    assert found["perplexity"] == pytest.approx(2**3)
    assert found["word_perplexity"] == pytest.approx(2 ** (12 / 5))
    assert found["byte_perplexity"] == pytest.approx(2 ** (12 / 8))
    assert found["bits_per_byte"] == pytest.approx(12 / 8)
    assert (found["lines"], found["blank_lines"]) == (2, 1)


def test_bad_input_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"learns from lines of text\. Give data\.train_file"):
        LANGUAGE_MODELING.load_splits(Config())
    with pytest.raises(InputError, match="give --reference, the text for the test"):
        LANGUAGE_MODELING.load_test(Config(), "source.txt", "reference.txt")
    with pytest.raises(InputError, match="at least one line with text to score, got none"):
        perplexities([], [TextScore(0.0, 0)])
    with pytest.raises(InputError, match=r"needs the probabilities of a model\. Give --run_dir"):
        LANGUAGE_MODELING.score([], ["a"], [["a"]])
    (tmp_path / "empty").write_text("\n \n", "utf-8")
    config = Config(data=DataConfig(train_file=str(tmp_path / "empty")))
    with pytest.raises(InputError, match=r"no example in .*empty can be used: 2 empty text"):
        list(LANGUAGE_MODELING.load_splits(config).train)


@pytest.mark.parametrize("size", [300, BYTES])
def test_counted_words_and_bytes_are_those_that_the_model_reads(size):
    """By hand: SentencePiece folds spaces, a vocabulary of bytes keeps them."""
    tokenizer = Tokenizer.train(LINES, vocabulary_size=size)
    model = LanguageModel(
        tokenizer.vocabulary_size, ModelConfig(num_layers=1, d_model=8, d_ff=8, num_heads=2)
    )
    model.build()
    generator = TextGenerator(model, Codec(tokenizer), DecodeConfig(max_source_length=8))

    def scores(*lines):
        return LANGUAGE_MODELING.evaluate(generator, TestSet(list(lines), list(lines))).scores

    plain = scores("tom is here", "", "über")
    assert (plain["bytes"], plain["words"], plain["blank_lines"]) == (12 + 6, 4 + 2, 1)
    spaced = scores("  tom     is   here ", "   ", " über")
    if size == BYTES:
        assert spaced["bytes"] == 21 + 7
        assert spaced["tokens"] == spaced["bytes"]
    else:
        assert spaced == plain


@pytest.mark.parametrize("log_probability", [-math.inf, math.nan, -1e6])
def test_scores_that_are_not_finite_are_null_in_json(
    log_probability, tmp_path, monkeypatch, capsys
):
    scores = perplexities(["a b"], [TextScore(log_probability, 3)])
    monkeypatch.setattr(LANGUAGE_MODELING, "score", lambda *texts: scores, raising=False)
    (tmp_path / "a").write_text("a\n")
    evaluate.main(
        hypotheses=str(tmp_path / "a"), reference=str(tmp_path / "a"), task="language_modeling"
    )

    def refuse(constant):
        raise AssertionError(constant)

    found = json.loads(capsys.readouterr().out.splitlines()[-1], parse_constant=refuse)
    assert (found["bits_per_byte"] is None) == (not math.isfinite(log_probability))
    assert found["tokens"] == 3


# --- a run with the commands that everyone uses --------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("language_model")
    (folder / "train").write_text("\n".join(LINES) + "\n", "utf-8")
    train.main(
        str(folder / "run"),
        ModelConfig(num_layers=1, d_model=16, d_ff=32, num_heads=2, dropout_rate=0.0),
        DataConfig(
            train_file=str(folder / "train"), vocabulary_size=BYTES, max_length=12, batch_tokens=600
        ),
        TrainConfig(
            **{"steps": 60, "validate_every": 30, "warmup_steps": 20, "label_smoothing": 0.0},
            **{"learning_rate": 2.0, "threads": 1, "valid_score_examples": 3},
        ),
        DecodeConfig(beam_size=1, max_extra_length=4, average="best"),
        task="language_modeling",
    )
    return folder / "run"


def test_options_that_the_task_changes_are_printed(run, capsys):
    """The run was made with the default, 1,024; then it resumes with its own options."""
    config = RunFolder(run).load_config()
    trainer.train(Run.at(run, config))
    assert " sets " not in capsys.readouterr().out
    given = dataclasses.replace(config, decode=DecodeConfig(beam_size=1))
    trainer.train(Run.at(run, given))
    printed = capsys.readouterr().out
    assert "language_modeling sets decode.max_source_length to 12, not 1024\n" in printed


def test_training_lowers_the_loss_and_chooses_by_it(run):
    assert tasks.get("language_modeling") is LANGUAGE_MODELING
    config = RunFolder(run).load_config()
    assert config.decode.max_source_length == 12
    rows = RunFolder(run).load_metrics(60)
    assert all(row["val_word_perplexity"] > 1 for row in rows)  # of valid_score_examples texts
    assert rows[1]["val_loss"] < 2.9 < math.log(BYTES)
    assert rows[1]["val_perplexity"] == pytest.approx(math.exp(rows[1]["val_loss"]))
    (best,) = RunFolder(run).best.glob("*.index")
    losses = {f"step-{row['step']}.index": row["val_loss"] for row in rows}
    assert best.name == min(losses, key=losses.__getitem__)


def test_perplexity_does_not_depend_on_the_batch_size(run, tmp_path, capsys):
    text = ["tom is here", "", "ann was in the garden of the old man", "\U0001f44d שלום"]
    (tmp_path / "text").write_text("\n".join(text) + "\n", "utf-8")
    found = []
    for size in (1, 8):
        files = {"reference": str(tmp_path / "text"), "output": str(tmp_path / "scores")}
        evaluate.main(str(run), **files, overwrite=True, batch_size=size)
        found.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    for name, value in found[0].items():
        assert found[1][name] == pytest.approx(value, rel=1e-6)
    rows = [line.split("\t") for line in (tmp_path / "scores").read_text().splitlines()]
    nats, tokens = -sum(float(row[0]) for row in rows), sum(int(row[1]) for row in rows)
    assert found[0]["perplexity"] == pytest.approx(math.exp(nats / tokens), rel=1e-5)
    assert rows[1] == ["0.000000", "0"]
    assert found[0]["bytes"] == len(("\n".join([text[0], *text[2:]]) + "\n").encode())


def test_one_continuation_for_each_prompt(run, tmp_path):
    (tmp_path / "in").write_text("tom is\n\nthe old m\n", "utf-8")
    (tmp_path / "prefixes").write_text(" at\n\nan\n", "utf-8")
    arguments = (str(run), str(tmp_path / "in"), str(tmp_path / "out"))
    translate.main(*arguments, prefixes=str(tmp_path / "prefixes"))
    lines = (tmp_path / "out").read_text("utf-8").split("\n")[:-1]
    assert [line.startswith(start) for line, start in zip(lines, (" at", "", "an"), strict=True)]
    scores = str(tmp_path / "scores")
    translate.main(*arguments[:2], scores, score_target=str(tmp_path / "prefixes"))
    assert len((tmp_path / "scores").read_text("utf-8").split("\n")) == 4


def test_prompts_are_cut_for_predictions_and_not_for_scores(run, tmp_path, capsys):
    (tmp_path / "in").write_text("tom is at home in the garden\n\n", "utf-8")
    arguments = (str(run), str(tmp_path / "in"))
    translate.main(*arguments, str(tmp_path / "out"))
    assert "cut to 12 tokens (--max_source_length): 1 line (1)\n" in capsys.readouterr().err
    translate.main(*arguments, str(tmp_path / "scores"), score_target=str(tmp_path / "in"))
    assert "cut" not in capsys.readouterr().err


@pytest.mark.slow
def test_the_export_answers_in_a_session_as_the_run(run, tmp_path, monkeypatch):
    """The command compares all signatures in a fresh process."""
    monkeypatch.setattr(check, "ODD_SENTENCES", ["", "  ", "\U0001f44d שלום", "tom is " * 4])
    export.main(str(run), str(tmp_path / "1"))
    metadata = json.loads((tmp_path / "1" / "assets.extra" / "metadata.json").read_text())
    assert metadata["task"] == "language_modeling"


def test_a_language_model_does_not_go_on_as_another_task(run):
    config = dataclasses.replace(RunFolder(run).load_config(), task="translation")
    assert RunFolder(run).load_config().differences(config).keys() == {"task"}
