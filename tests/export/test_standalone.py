"""Folders that translate without TensorFlow: their archive, and errors of their programs."""

import json
import subprocess
import sys
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.config import DecodeConfig
from tf_transformer.errors import InputError
from tf_transformer.export import standalone
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


class StandIn(StandaloneModel):
    """It finds what a test gives."""

    file, format = "model", "stand_in"

    def search(self, sources):
        return [self.found for _ in sources]


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stand_in")
    (folder / "model").touch()
    decoding = {"max_source_length": 9, "num_hypotheses": 9, "distinct": True}
    (folder / "metadata.json").write_text(json.dumps({"decoding": decoding}))
    Codec(Tokenizer.train(["one two three"] * 3, vocabulary_size=300)).save(folder)
    return StandIn(folder)


@given(st.lists(st.sampled_from(["one", "two", "three"]), min_size=1, max_size=9))
def test_of_equal_texts_the_best_stays_at_its_place(stand_in, texts):
    ids, scores = (
        stand_in.texts.codec.encode_batch("target", texts),
        [-x for x in range(len(texts))],
    )
    stand_in.found = Hypotheses(ids, scores, [])
    (row,) = stand_in.n_best(["one"])
    assert row == [(text, -texts.index(text)) for text in dict.fromkeys(texts)]


def test_a_form_that_scores_no_translations_says_so(stand_in):
    with pytest.raises(InputError, match="--format stand_in does not score translations"):
        stand_in.score(["one"], ["two"])


@pytest.mark.parametrize("texts", ["abc", b"abc", None, 3, {"one": 1}, ["one", None], [["one"]]])
def test_what_is_not_a_list_of_texts_is_an_error(stand_in, texts):
    with pytest.raises(InputError, match="expected a list of texts, got"):
        stand_in(texts)
    with pytest.raises(InputError, match="expected a list of translations, got"):
        stand_in.score(["one"], texts)


def test_a_folder_that_does_not_run_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="the export does not run without TensorFlow:"):
        standalone.run(tmp_path, ["one"])


@pytest.mark.parametrize("format", ["litert", "onnx"])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"keep": ("common",)}, r"decode.keep=.*give --keep \[\]"),
        ({"sampling": True}, r"decode.sampling=True.*give --sampling false"),
        ({"second_search": True}, r"decode.second_search=True.*give --second_search false"),
    ],
)
def test_options_that_the_folders_lack_are_errors(format, options, named):
    with pytest.raises(InputError, match=f"--format {format} does not support {named}"):
        standalone.require_supported(DecodeConfig(**options), format)
