"""Folders for LiteRT: the same search, run without TensorFlow, and clear errors for the rest."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from tf_transformer.commands import export
from tf_transformer.config import DecodeConfig, ModelConfig
from tf_transformer.errors import InputError
from tf_transformer.export import check_litert, standalone, to_litert
from tf_transformer.inference.translator import Translator
from tf_transformer.models.transformer import Transformer
from tf_transformer.text.codec import Codec
from tf_transformer.text.tokenizer import Tokenizer

LONGEST = 12  # tokens of a source; longer ones are cut
TEXTS = ["", "one", "two hundred and three", "  ", "THREE THREE", "17", "né 日本\tx", "seven " * 30]
TEXTS += ["one {a} <b>three</b> 🙂"]
SIZES = {"num_layers": 1, "d_model": 48, "d_ff": 64, "num_heads": 2}
SEARCHES = {
    "greedy": DecodeConfig(beam_size=1, max_source_length=LONGEST, max_extra_length=9),
    "beam": DecodeConfig(
        **{"beam_size": 3, "num_hypotheses": 3, "max_source_length": LONGEST},
        **{"max_extra_length": 9, "min_length": 2, "early_stopping": "never"},
        keep=("common",),
    ),
}


def untrained(decode):
    """A translator with random weights, whose logits differ enough to avoid ties."""
    tokenizer = Tokenizer.train(["one two three hundred and thousand"] * 3, vocabulary_size=300)
    model = Transformer(tokenizer.vocabulary_size, ModelConfig(**SIZES))
    model.build()
    rng = np.random.default_rng(3)
    for weight in model.weights:
        scale = 0.5 if len(weight.shape) == 1 else 1.2 * weight.shape[-1] ** -0.5
        values = rng.normal(scale=scale, size=weight.shape)
        weight.assign(values + (1 if weight.name == "gamma" else 0))
    options = {"copy_without_letters": True, "lower_capitals": True}
    return Translator(model, Codec(tokenizer), decode, **options)


@pytest.fixture(scope="module", params=SEARCHES)
def exported(request, tmp_path_factory):
    """A translator, and its folder in float32."""
    pytest.importorskip("ai_edge_litert", reason="needs ai-edge-litert")
    translator = untrained(SEARCHES[request.param])
    folder = tmp_path_factory.mktemp("litert") / "model"
    to_litert.write(translator, folder, "float32")
    return translator, folder


@pytest.mark.slow
def test_the_folder_translates_like_the_translator(exported):
    translator, folder = exported
    assert check_litert.check(folder, translator, TEXTS, "float32").startswith("0 of 9 ")
    facts = json.loads((folder / "metadata.json").read_text("utf-8"))
    assert (facts["lengths"], facts["weights"]) == ([LONGEST], "float32")
    assert set(facts["left_out"]) > {"terms", "prefixes"}


@pytest.mark.slow
def test_n_best_are_those_of_the_translator(exported):
    translator, folder = exported
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1] + '/translate.pyz'); "
        "from tf_transformer.export.run_in_litert import Model; "
        "print(json.dumps(Model(sys.argv[1]).n_best(json.loads(sys.argv[2])))); "
        "assert not {'tensorflow', 'keras'} & set(sys.modules)"
    )
    words = [sys.executable, "-P", "-c", program, str(folder), json.dumps(TEXTS)]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    for row, expected in zip(json.loads(printed), translator.n_best(TEXTS), strict=True):
        assert [text for text, _ in row] == [x.text for x in expected]
        np.testing.assert_allclose([x for _, x in row], [x.score for x in expected], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("quantization", ["float16", "int8"])
def test_smaller_weights_give_nearly_the_same_scores(exported, tmp_path, quantization):
    translator, folder = exported
    to_litert.write(translator, tmp_path / "small", quantization)
    check_litert.check(tmp_path / "small", translator, TEXTS, quantization)
    sizes = [(place / "model.tflite").stat().st_size for place in (folder, tmp_path / "small")]
    assert sizes[1] < sizes[0]


@pytest.mark.slow
def test_a_folder_of_another_model_is_refused(exported):
    translator, folder = exported
    translator.model.weights[-1].assign(-translator.model.weights[-1])
    try:
        other = Translator(translator.model, translator.codec, translator.config)
        with pytest.raises(RuntimeError, match="the export differs from the run it came from"):
            check_litert.check(folder, other, TEXTS, "float32")
    finally:
        translator.model.weights[-1].assign(-translator.model.weights[-1])


@pytest.mark.slow
def test_the_program_says_what_is_wrong(exported, tmp_path):
    _, folder = exported
    words = [sys.executable, "-P", str(folder / standalone.ARCHIVE)]
    given = {"capture_output": True, "check": False, "input": b"one\ntwo\n"}
    absent = subprocess.run([*words, "--folder", str(tmp_path)], **given)
    assert absent.returncode == 1
    assert absent.stderr.startswith(f"error: {tmp_path} is not an exported folder".encode())
    (tmp_path / "one_line").write_text("eins\n", "utf-8")
    fewer = subprocess.run([*words, "--translations", str(tmp_path / "one_line")], **given)
    assert fewer.returncode == 1
    assert b"expected as many translations as texts, got 1 translations and 2" in fewer.stderr


def test_without_the_package_the_error_says_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'tf_transformer\[litert\]'"):
        export.main(str(run), str(tmp_path / "1"), format="litert")


@pytest.mark.parametrize(
    ("longest", "lengths"), [(1024, [16, 32, 64, 128, 1024]), (64, [16, 32, 64]), (9, [9])]
)
def test_the_largest_length_has_room_for_each_source(longest, lengths):
    assert to_litert.lengths_up_to(longest) == lengths
