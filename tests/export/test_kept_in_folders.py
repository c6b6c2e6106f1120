"""Folders keep spans in processes without TensorFlow, those for LiteRT and ONNX as the run does."""

import collections
import json
import pathlib

import pytest

from tests.text.test_kept_spans import SPANS
from tf_transformer.export import check_standalone, to_ctranslate2, to_litert, to_onnx
from tf_transformer.inference.translator import Translator
from tf_transformer.text.kept_spans import spans

PRETRAINED = pathlib.Path(__file__).parents[2] / "pretrained" / "tatoeba-en-de"
START = ["I know that", "Please look at", "Did you see", "We paid for", "This is", "They sent us"]
END = ["now.", "before you leave, Tom!", "in the house?", "and the other one.", "today. Thank you."]
TEXTS = [
    *(
        f"{START[number % len(START)]} {span} {END[number % len(END)]}"
        for number, span in enumerate(span for kind in SPANS.values() for span in kind)
    ),
    *("The <b>red house</b> is <i>very old</i>.", "<ul><li>One dog.</li><li>Two cats.</li></ul>"),
    *("I am <b>here. You are</b> there. <br/> Goodbye!", "{a}", "CLICK {button} NOW, PLEASE!"),
    *("<p>It is 5 km to <b>https://a.org</b>.</p>", "He Said {name} Is Not <i>Here</i> Today"),
    *("It weighs 5 kg 5 kg 5 kg.", "You are nice.", "", "</b> wrong <b> tags <i>are</b> kept"),
    " ".join(f"{{x{n}}} houses" for n in range(19)),
]


def differences(write, folder):
    """How many texts a folder translates in another way than the run, with the same spans."""
    translator = Translator.from_run(PRETRAINED, max_source_length=64)
    assert translator.config.keep
    write(translator, folder, "float32")
    found = [row["translation"] for row in check_standalone.run(folder, TEXTS)]
    for text, other in zip(TEXTS, found, strict=True):
        assert collections.Counter(spans(other)) == collections.Counter(spans(text))
    assert "keep" in json.loads((folder / "metadata.json").read_text("utf-8"))["decoding"]
    return sum(x.text != other for x, other in zip(translator(TEXTS), found, strict=True))


@pytest.mark.slow
@pytest.mark.skipif(not PRETRAINED.is_dir(), reason="the pretrained model is not here")
@pytest.mark.parametrize(
    ("write", "package"), [(to_onnx.write, "tf2onnx"), (to_litert.write, "ai_edge_litert")]
)
def test_a_pretrained_model_keeps_spans_in_a_folder(write, package, tmp_path):
    """The oracle is the translator; it reads emoji in place of spans, and divides texts."""
    pytest.importorskip(package)
    assert differences(write, tmp_path) == 0


@pytest.mark.slow
@pytest.mark.skipif(not PRETRAINED.is_dir(), reason="the pretrained model is not here")
def test_a_pretrained_model_keeps_spans_in_ctranslate2(tmp_path):
    """The attention is that of one layer, so that some spans stand at other places."""
    pytest.importorskip("ctranslate2")
    assert differences(to_ctranslate2.write, tmp_path) < len(TEXTS) / 4
