"""Folders that translate without TensorFlow: their archive, and errors of their programs."""

import json
import subprocess
import sys
import zipfile

import pytest

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.export import check_standalone, standalone
from tf_transformer.export.standalone_model import Hypotheses, StandaloneModel
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import Tokenizer

PROGRAMS = {
    "tf_transformer.export.run_in_ctranslate2": ("model.bin", "ctranslate2", "ctranslate2"),
    "tf_transformer.export.run_in_litert": ("model.tflite", "ai_edge_litert", "ai-edge-litert"),
    "tf_transformer.export.run_in_onnx": ("model.onnx", "onnxruntime", "onnxruntime"),
}


@pytest.fixture(scope="module", params=PROGRAMS)
def archive(request, tmp_path_factory):
    """A program, and a folder with its archive alone."""
    folder = tmp_path_factory.mktemp("folder")
    standalone.write_archive(folder / standalone.ARCHIVE, request.param)
    return request.param, folder / standalone.ARCHIVE


def started(archive, *words, path=""):
    command = [sys.executable, *([] if path else ["-P"]), str(archive), *words]
    environment = {"PYTHONPATH": path} if path else None
    return subprocess.run(command, capture_output=True, check=False, env=environment)


def test_an_archive_runs_without_tensorflow(archive):
    with zipfile.ZipFile(archive[1]) as content:
        names = content.namelist()
    assert {"__main__.py", "tf_transformer/text/plain_texts.py"} <= set(names)
    assert not [name for name in names if "inference" in name or "models" in name]
    program = "import runpy, sys; sys.modules['tensorflow'] = None; runpy.run_path(sys.argv.pop(1))"
    words = [sys.executable, "-P", "-c", program, str(archive[1]), "--help"]
    done = subprocess.run(words, capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode()


class Known(StandaloneModel):
    """A folder with tokenizers alone, whose search gives `hypotheses`."""

    file, format = "tokenizer.model", "known"
    hypotheses: Hypotheses

    def search(self, sources):
        return [self.hypotheses] * len(sources)


@pytest.fixture
def known(tmp_path):
    Codec(Tokenizer.train(["one two three"] * 3, vocabulary_size=300)).save(tmp_path)
    options = {"max_source_length": 9, "distinct": True, "num_hypotheses": 4}
    (tmp_path / "metadata.json").write_text(json.dumps({"decoding": options}))
    return Known(tmp_path)


@pytest.mark.parametrize(("distinct", "expected"), [(True, "one three"), (False, "one three one")])
def test_of_equal_texts_the_best_is_kept_in_its_place(known, distinct, expected):
    known.options["distinct"], tokenizer = distinct, known.texts.codec["target"]
    *one, end = tokenizer.encode("one")
    of_half_a_character = [*one, tokenizer.piece_to_id("<0xC3>"), end]
    ids = [[*one, end], tokenizer.encode("three"), of_half_a_character]
    known.hypotheses = Hypotheses(ids, [-1.0, -2.0, -3.0], [])
    (row,) = known.n_best(["two"])
    assert " ".join(x.text for x in row) == expected
    assert [x.score for x in row] == [-1.0, -2.0, -3.0][: len(row)]


@pytest.mark.parametrize("has_model", [False, True])
def test_a_folder_without_its_files_is_an_error(archive, tmp_path, has_model):
    """The model alone is no export: its options are not known."""
    if has_model:
        (tmp_path / PROGRAMS[archive[0]][0]).touch()
    done = started(archive[1], "--folder", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path} is not an exported folder".encode())


def test_a_missing_package_is_named(archive, tmp_path):
    """Its stand-in raises the error of a missing package."""
    program, path = archive
    file, module, package = PROGRAMS[program]
    (tmp_path / file).touch()
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError(name={module!r})")
    (tmp_path / "metadata.json").write_text(json.dumps({"decoding": {"max_source_length": 9}}))
    Codec(Tokenizer.train(["one two three"] * 3, vocabulary_size=300)).save(tmp_path)
    done = started(path, "--folder", str(tmp_path), path=str(tmp_path))
    assert done.returncode == 1
    expected = f"error: {module} is not installed: pip install {package} sentencepiece"
    assert done.stderr.decode().startswith(expected)


def test_a_form_that_scores_no_translations_says_so(known):
    with pytest.raises(InputError, match="--format known does not score translations"):
        known.score(["one"], ["two"])


@pytest.mark.parametrize("texts", ["abc", b"abc", None, 3, {"one": 1}, ["one", None], [["one"]]])
def test_what_is_not_a_list_of_texts_is_an_error(known, texts):
    with pytest.raises(InputError, match="expected a list of texts, got"):
        known(texts)
    with pytest.raises(InputError, match="expected a list of translations, got"):
        known.score(["one"], texts)


def test_a_folder_that_does_not_run_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="the export does not run without TensorFlow:"):
        check_standalone.run(tmp_path, ["one"])


@pytest.mark.parametrize("format", ["litert", "onnx"])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"sampling": True}, r"decode.sampling=True.*give --sampling false"),
        ({"second_search": True}, r"decode.second_search=True.*give --second_search false"),
    ],
)
def test_options_that_the_folders_lack_are_errors(format, options, named):
    with pytest.raises(InputError, match=f"--format {format} does not support {named}"):
        standalone.require_supported(DecodeConfig(**options), format)


def test_a_translation_without_a_kept_span_is_an_error():
    keep, sentences = DecodeConfig(keep=("placeholders",)), ["Hi {a}", "Two {a} {a} <b>"]
    check_standalone.require_spans(keep, sentences, ["Hallo {a}", "{a} zwei {a}"])
    with pytest.raises(RuntimeError, match=r"loses spans .*'Two {a} {a} <b>'.*'zwei {a}'"):
        check_standalone.require_spans(keep, sentences, ["Hallo {a}", "zwei {a}"])
    check_standalone.require_spans(DecodeConfig(), sentences, ["Hallo", "zwei"])
