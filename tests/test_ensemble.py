"""Several runs as one: each command takes --run_dir a,b, and the search averages probabilities."""

import dataclasses
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from conftest import small_config

from tf_transformer.commands import evaluate, export, translate
from tf_transformer.config.task import ParsingOptions, TaskOptions
from tf_transformer.data.readers.generated import generate
from tf_transformer.errors import InputError
from tf_transformer.inference.translator import Translator
from tf_transformer.models.names import by_name
from tf_transformer.run.folder import RunFolder
from tf_transformer.run.run import Run
from tf_transformer.run.weights import save_weights
from tf_transformer.tasks.language_modeling import LANGUAGE_MODELING
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import Tokenizer
from tf_transformer.training import trainer

pytestmark = pytest.mark.usefixtures("loaded_once")

TEXTS = ["twenty-one", "June twelfth", "", "one \U0001f44d"]


@pytest.fixture(scope="module")
def other_source(run, made_once):
    """A run with the target vocabulary of the small run, and another source vocabulary."""

    def make(folder):
        source = folder.with_name("source.model")
        Tokenizer.train(generate(200, "en", "de", seed=1).texts["source"], 300).save(source)
        config = small_config(seed=2, steps=2)
        files = f"{source},{run / 'tokenizer.model'}"
        data = dataclasses.replace(config.data, tokenizer=files, vocabularies="separate")
        model = dataclasses.replace(config.model, tie_embeddings="target")
        trainer.train(Run.at(folder, dataclasses.replace(config, data=data, model=model)))

    return made_once("other_source_run", make)


@pytest.fixture(params=["other_run", "other_source"])
def second(request):
    return request.getfixturevalue(request.param)


def n_best(run_dir, **options):
    return Translator.from_run(run_dir, num_hypotheses=2, **options).n_best(TEXTS)


def test_scores_are_those_of_the_mean_of_probabilities(run, second):
    """By the log-probabilities of each run, token by token, in NumPy."""
    runs = [Translator.from_run(path) for path in (run, second)]
    together = Translator.from_run(f"{run},{second}")
    ids = runs[0].codec.encode("target", "zwanzig")
    target = np.int32([[1, *ids[:-1]]])
    log_p = []
    for each in runs:
        source = np.int32([each.codec.encode("source", "twenty")])
        log_p.append(np.asarray(tf.nn.log_softmax(each.model((source, target))), np.float64)[0])
    mean = np.log(sum(map(np.exp, log_p)) / 2)
    expected = sum(mean[place, token] for place, token in enumerate(ids))
    (score,) = together.score(["twenty"], ["zwanzig"])
    assert score.log_probability == pytest.approx(expected, rel=1e-5)


def test_translate_and_evaluate_take_runs_with_commas(run, other_run, tmp_path, capsys):
    both = f"{run},{other_run}"
    (tmp_path / "in.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    translate.main(both, str(tmp_path / "in.txt"), str(tmp_path / "out.txt"))
    texts = (tmp_path / "out.txt").read_text("utf-8").split("\n")[:-1]
    assert texts == [each.text for each in Translator.from_run(both)(TEXTS)]
    evaluate.main(both, str(tmp_path / "in.txt"), str(tmp_path / "in.txt"))
    assert '"sentences": 4' in capsys.readouterr().out


@pytest.mark.slow
def test_an_ensemble_is_exported(run, second, tmp_path):
    both = f"{run},{second}"
    export.main(both, str(tmp_path / "1"))
    saved = Translator.load(tmp_path / "1")
    assert [x.text for x in saved(TEXTS)] == [x.text for x in Translator.from_run(both)(TEXTS)]


def test_in_bfloat16_scores_are_rounded(run, other_source):
    """All models are made anew for another dtype."""
    of_dtype = [
        Translator.from_run(f"{run},{other_source}", dtype).score(["twenty"], ["zwanzig"])[0].score
        for dtype in ("float32", "bfloat16")
    ]
    assert of_dtype[0] != of_dtype[1]
    assert of_dtype[1] == pytest.approx(of_dtype[0], rel=0.02)


def test_a_search_encodes_the_text_for_each_run(run, tmp_path):
    """The second run is the first with another file of the same pieces."""
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    tokenizer = Run.load(run).codec["target"]
    (copy / "tokenizer.model").unlink()
    source = Tokenizer(tokenizer.model + b"\x1a\x00")  # with an empty field at the end
    Codec({"source": source, "target": tokenizer}).save(copy)
    assert n_best(f"{run},{copy}") == n_best(f"{run},{run}")


def test_a_folder_may_have_a_comma_in_its_name(run, tmp_path):
    folder = tmp_path / "a,b"
    shutil.copytree(run, folder)
    assert not Run.load(folder).others
    assert not Run.load(str(folder)).others


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda both, to: export.main(both, to, format="ctranslate2"), "--format saved_model"),
        (lambda both, to: export.main(both, to, jit_compile=True), "without --jit_compile"),
        (lambda both, to: export.main(both, to, format="run"), "--format saved_model"),
        (lambda both, to: Translator.from_run(both).align(["a"], ["b"]), "no attention"),
        (lambda both, to: n_best(both, coverage_penalty=0.2), "attention of one model"),
    ],
)
def test_what_an_ensemble_lacks_is_an_error(run, tmp_path, use, message):
    with pytest.raises(InputError, match=message):
        use(f"{run},{run}", str(tmp_path / "1"))


def copy_of(run, to, **groups):
    """A copy of a run, with other options by group."""
    folder = RunFolder(shutil.copytree(run, to))
    config = folder.load_config()
    changed = {name: dataclasses.replace(getattr(config, name), **x) for name, x in groups.items()}
    folder.save_config(dataclasses.replace(config, **changed))
    return to


OTHER_WAY = {"source_language": "de", "target_language": "en"}
IN_FILES = {"train_source": "a.en", "train_target": "a.fr"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (OTHER_WAY, r"small_run translates from en to de, and .*copy from de to en"),
        (IN_FILES, r"small_run translates from en to de, and .*copy from en to fr"),
        ({"target_language": "de-AT"}, ""),
        ({"source_language": "", "target_language": ""}, "the languages of .*copy are unknown"),
    ],
)
def test_runs_need_one_direction(run, tmp_path, data, message, capsys):
    """All commands load an ensemble by `Run.load`."""
    copy = copy_of(run, tmp_path / "copy", data=data)
    both = f"{run},{copy}"
    if "translates" in message:
        for use in (
            lambda: translate.main(both),
            lambda: evaluate.main(both, "in", "out"),
            lambda: export.main(both, str(tmp_path / "1")),
            lambda: Translator.from_run(both),
        ):
            with pytest.raises(InputError, match=f"need one direction, but .*{message}"):
                use()
        return
    assert len(Run.load(both).others) == 1
    error = capsys.readouterr().err
    assert bool(re.search(message, error)) if message else not error


def test_each_two_of_several_runs_need_one_direction(run, tmp_path):
    unknown = copy_of(run, tmp_path / "first", data={"source_language": "", "target_language": ""})
    third = copy_of(run, tmp_path / "third", data=OTHER_WAY)
    with pytest.raises(
        InputError, match=r"small_run translates from en to de, and .*third from de"
    ):
        Run.load(f"{unknown},{run},{third}")


def test_runs_need_one_target_tag_unless_it_is_given(run, tmp_path):
    first = copy_of(run, tmp_path / "first", decode={"target_tag": ">>deu<<"})
    second = copy_of(run, tmp_path / "second", decode={"target_tag": ">>nld<<"}, data=IN_FILES)
    message = r"need one decode\.target_tag, but it is '>>deu<<' in .*first and '>>nld<<' in .*sec"
    with pytest.raises(InputError, match=message):
        Run.load(f"{first},{second}")
    together = Run.load(f"{first},{second}", target_tag=">>nld<<")
    assert together.config.decode.target_tag == ">>nld<<"


def test_parsers_need_one_linearization(run, tmp_path):
    for name, linearization in (("a", "brackets"), ("b", "in_order")):
        task = ParsingOptions(linearization=linearization)
        config = dataclasses.replace(small_config(), task=task)
        (tmp_path / name).mkdir()
        RunFolder(tmp_path / name).save_config(config)
    message = r"need one task\.linearization, but it is 'brackets' in .*a and 'in_order' in .*b"
    with pytest.raises(InputError, match=message):
        Run.load(f"{tmp_path / 'a'},{tmp_path / 'b'}")


def test_runs_with_another_target_vocabulary_are_an_error(run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(run, other)
    Tokenizer.train(["a house"] * 9, 300).save(other / "tokenizer.model")
    with pytest.raises(InputError, match="need the same target vocabulary"):
        Translator.from_run(f"{run},{other}")


def test_language_models_need_the_same_rules_of_the_tokenizer(tmp_path):
    """They continue ids of the search, which no run can read in its own pieces."""
    tokenizer = Tokenizer.train(["a house"] * 9, 300)
    config = dataclasses.replace(small_config(), task=TaskOptions("language_modeling"))
    for name, end in (("a", b""), ("b", b"\x1a\x00")):
        codec = Codec(Tokenizer(tokenizer.model + end))
        model = LANGUAGE_MODELING.build_model(config, codec, "float32")
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir()
        folder.save_config(config)
        codec.save(folder.path)
        save_weights(folder, by_name(model), "float32", update=1)
    with pytest.raises(InputError, match=r"for language_modeling need the same tokenizer"):
        Run.load(f"{tmp_path / 'a'},{tmp_path / 'b'}").model(LANGUAGE_MODELING.build_model)
