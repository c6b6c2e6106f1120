"""The same requests through every loader of SavedModels that this machine has.

The loaders are a session in a fresh process, TF Serving's C++ loader from the tensorflow wheel, the
clients with a stand-in for the server, and the clients with tensorflow_model_server if it is on the
PATH. Each test is named after its loader; `pytest -rs` lists why some were skipped.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import grpc
import pytest
import tensorflow as tf
import yaml
from tensorflow.core.framework import attr_value_pb2
from tensorflow.core.protobuf import saved_model_pb2

from export.serving import client_grpc, client_rest
from tf_transformer.decoding import NEG_INF
from tf_transformer.inference.translator import Translation

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
KIT = ROOT / "export" / "serving"
NAME = "translator"
TERMS = b"twenty\tZwanzig\none\tEins"
TEXTS = [
    b"twenty-one",
    b"",
    b"  ",
    "\U0001f44d\U0001f3fd שלום 日本語".encode(),
    b"June \xff twelfth",
    "a\tb\u2028c\x85d\r".encode(),
    b"one hundred and two " * 30,  # more than the longest source
]


@pytest.fixture(scope="module")
def requests(served):
    """(signature, strings by input): all texts together, and one text, for every signature."""
    model = saved_model_pb2.SavedModel.FromString((served / "saved_model.pb").read_bytes())
    signatures = model.meta_graphs[0].signature_def
    return [
        (
            name,
            {
                key: texts[i:] + texts[:i] if key != "terms" else [TERMS] * len(texts)
                for i, key in enumerate(sorted(signature.inputs))
            },
        )
        for name, signature in sorted(signatures.items())
        if not name.startswith("__")  # an initialisation op
        for texts in (TEXTS, TEXTS[:1])
    ]


# The expected outputs: those of the exported translator.


def serving_default(translator, text, prefix=None, terms=None):
    found = translator(text, prefix, terms=terms)
    return {
        "translation": [translation.text for translation in found],
        "score": [translation.score for translation in found],
        "cut": [translation.cut for translation in found],
        "truncated": [translation.truncated for translation in found],
        "warnings": [" ".join(translation.notices) for translation in found],
        "unseen_words": [" ".join(translation.unseen_words) for translation in found],
    }


def n_best(translator, text, prefix=None, terms=None):
    fill = [Translation("", NEG_INF)] * translator.config.num_hypotheses
    rows = translator.n_best(text, prefix, terms=terms)
    found = [(row + fill)[: translator.config.num_hypotheses] for row in rows]
    return {
        "translations": [[translation.text for translation in row] for row in found],
        "scores": [[translation.score for translation in row] for row in found],
        "cut": [row[0].cut for row in found],
        "truncated": [row[0].truncated for row in found],
        "warnings": [[" ".join(translation.notices) for translation in row] for row in found],
        "unseen_words": [" ".join(row[0].unseen_words) for row in found],
    }


def score(translator, source, target):
    found = translator.score(source, target)
    cut = zip(is_cut(translator, source), is_cut(translator, target), strict=True)
    assert [pair.cut for pair in found] == [any(pair) for pair in cut]
    return {
        "score": [pair.score for pair in found],
        "log_probability": [pair.log_probability for pair in found],
        "truncated": [pair.cut for pair in found],
    }


def is_cut(translator, texts):
    encode = translator.tokenizer.encode
    return [len(encode(text)) > translator.max_source_length for text in texts]


ORACLES = {
    **{oracle.__name__: oracle for oracle in (serving_default, n_best, score)},
    **{"with_inputs": serving_default, "n_best_with_inputs": n_best},
}


@pytest.fixture(scope="module")
def expected(translator, requests):
    return [
        ORACLES[signature](
            translator,
            **{
                name: [t.decode("utf-8", "replace") for t in texts]
                for name, texts in inputs.items()
            },
        )
        for signature, inputs in requests
    ]


# The loaders: each takes the requests and returns the outputs of each, {name: list}.


def through_files(requests, folder, *command):
    """Runs a program that reads a file of requests and writes a file of answers."""
    with tf.io.TFRecordWriter(str(folder / "requests")) as writer:
        for signature, inputs in requests:
            message = attr_value_pb2.NameAttrList(name=signature)
            for name, texts in inputs.items():
                message.attr[name].tensor.CopyFrom(tf.make_tensor_proto(texts, tf.string))
            writer.write(message.SerializeToString())
    files = (folder / "requests", folder / "answers")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}  # run_requests.py imports the package
    process = subprocess.run([*command, *files], env=environment, capture_output=True, check=False)
    assert process.returncode == 0, process.stderr.decode()
    records = tf.data.TFRecordDataset(str(folder / "answers")).as_numpy_iterator()
    for answer in map(attr_value_pb2.NameAttrList.FromString, records):
        yield {
            name: client_grpc.to_json(tf.make_ndarray(value.tensor))
            for name, value in answer.attr.items()
        }


def session(requests, served, tmp_path, request):
    command = (sys.executable, HERE / "run_requests.py", served)
    return through_files(requests, tmp_path, *command)


def cpp_loader(requests, served, tmp_path, request):
    ops = sentencepiece_library()
    return through_files(requests, tmp_path, compiled_loader(request.config), served, ops)


def columns(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def rest(server, requests):
    for signature, inputs in requests:
        yield columns(client_rest.predict(server.rest, NAME, inputs, signature))


def grpc_(server, requests):
    with grpc.insecure_channel(server.grpc) as channel:
        for signature, inputs in requests:
            yield columns(client_grpc.predict(channel, NAME, inputs, signature))


def stand_in_rest(requests, served, tmp_path, request):
    return rest(request.getfixturevalue("stand_in"), requests)


def stand_in_grpc(requests, served, tmp_path, request):
    return grpc_(request.getfixturevalue("stand_in"), requests)


def tensorflow_model_server_rest(requests, served, tmp_path, request):
    return rest(request.getfixturevalue("model_server"), requests)


def tensorflow_model_server_grpc(requests, served, tmp_path, request):
    return grpc_(request.getfixturevalue("model_server"), requests)


LOADERS = [
    session,
    pytest.param(cpp_loader, marks=pytest.mark.slow),  # it compiles C++
    stand_in_rest,
    stand_in_grpc,
    tensorflow_model_server_rest,
    tensorflow_model_server_grpc,
]


@pytest.mark.parametrize("loader", LOADERS, ids=lambda loader: loader.__name__)
def test_every_loader_gives_the_outputs_of_the_translator(
    loader, requests, expected, served, tmp_path, request, record_property
):
    answers = list(loader(requests, served, tmp_path, request))
    record_property("answered_by", loader.__name__)
    assert len(answers) == len(expected)
    for (signature, _inputs), found, outputs in zip(requests, answers, expected, strict=True):
        assert found.keys() == outputs.keys(), signature
        for name, values in found.items():
            assert values == approximately(outputs[name]), (signature, name)


SPANS = ["{name}", "https://example.org/a?b=1", "<b>", "</b>", "<br/>", "5 km"]
PARAGRAPHS = [
    "Twenty-one. Seven!\nTwo hundred and twelve?",
    " He met Mr. Seven…  七。二十。\n",
    "\n",
    "",
    "seven, " * 40 + "end.",  # a sentence of several parts
    "See {name}. It is <b>twenty-one</b>,<br/> 5 km from https://example.org/a?b=1!\nSeven.",
]
EVERYTHING = {"split": "sentences", "split_language": "en", "keep": ("common",)}
EVERYTHING |= {"word_probabilities": True, "second_search": True}


@pytest.mark.slow
@pytest.mark.parametrize("loader", [LOADERS[0], LOADERS[1]], ids=lambda loader: loader.__name__)
@pytest.mark.parametrize("keep_as", ["text", "emoji"])
def test_loaders_have_all_options_of_texts_as_the_translator(
    loader, keep_as, translator, tmp_path, request
):
    """Sentences, kept spans, terms, a second search, warnings and probabilities of words."""
    options = replace(translator.config, keep_as=keep_as, **EVERYTHING)
    with_all = translator.like(translator.model, options)
    with_all.save(tmp_path / "1")
    cases = with_all.signatures(PARAGRAPHS)
    requests = [(name, case.inputs) for name, case in cases.items()]
    terms = {"text": PARAGRAPHS, "prefix": [""] * len(PARAGRAPHS)}
    terms["terms"] = [TERMS.decode()] * len(PARAGRAPHS)
    requests.append(("with_inputs", terms))
    *answers, of_terms = loader(requests, tmp_path / "1", tmp_path, request)
    for (name, case), answer in zip(cases.items(), answers, strict=True):
        assert answer.keys() >= case.outputs.keys(), name
        for output, values in case.outputs.items():
            assert first_of(answer[output], values) == approximately(values), (name, output)
    assert cases["n_best"].outputs["parts"][:4] == [3, 3, 0, 0]
    assert cases["n_best"].outputs["parts"][4] > 2
    expected = with_all(PARAGRAPHS, terms=terms["terms"])
    assert of_terms["translation"] == [best.text for best in expected]
    assert of_terms["warnings"] == [" ".join(best.notices) for best in expected]
    assert any(of_terms["warnings"])
    assert [len(row.split()) for row in of_terms["word_probabilities"]] == [
        len(best.word_probabilities) for best in expected
    ]
    assert "Zwanzig" in of_terms["translation"][0]
    for translation in (answers[0]["translation"][-1], of_terms["translation"][-1]):
        assert [translation.count(span) for span in SPANS] == [1] * len(SPANS)


def first_of(found, expected):
    """The items of each row that are expected; the rest of a row of n best is empty."""
    if not isinstance(found[0], list):
        return found
    return [row[: len(items)] for row, items in zip(found, expected, strict=True)]


def approximately(values):
    """Strings and booleans exactly, numbers within 1e-4."""
    if isinstance(values, list) and values and isinstance(values[0], list):
        return [approximately(row) for row in values]
    return pytest.approx(values, abs=1e-4) if isinstance(values[0], float) else values


def sentencepiece_library() -> pathlib.Path:
    import tensorflow_text

    folder = pathlib.Path(tensorflow_text.__file__).parent / "python" / "ops"
    return folder / "_sentencepiece_tokenizer.so"


def compiled_loader(config) -> pathlib.Path:
    """The program of load_saved_model.cc, compiled once per TensorFlow version and cached."""
    source = HERE / "load_saved_model.cc"
    header = pathlib.Path(tf.sysconfig.get_include(), "tensorflow/cc/saved_model/loader.h")
    if sys.platform != "linux" or not shutil.which("g++") or not header.is_file():
        pytest.skip("needs Linux, g++ and the headers in the tensorflow wheel")
    library = tf.sysconfig.get_lib()
    # Without optimisation, and without the hundreds of warnings from TensorFlow's headers.
    flags = ["-O0", "-w", *tf.sysconfig.get_compile_flags(), f"-L{library}"]
    flags += [f"-Wl,-rpath,{library}", "-Wl,--no-as-needed"]
    flags += ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"]
    key = hashlib.sha256(source.read_bytes() + repr((tf.__version__, flags)).encode()).hexdigest()
    program = config.cache.mkdir("load_saved_model") / key[:16]
    if not program.is_file():
        partial = program.with_suffix(".partial")
        command = ["g++", str(source), "-o", str(partial), *flags]
        process = subprocess.run(command, capture_output=True, check=False)
        assert process.returncode == 0, process.stderr.decode()
        partial.rename(program)
    return program


@pytest.fixture(scope="module")
def model_server(served, free_port, tmp_path_factory):
    """tensorflow_model_server with the configurations of export/serving, with batching."""
    if not shutil.which("tensorflow_model_server"):
        pytest.skip("tensorflow_model_server is not on the PATH")
    config = tmp_path_factory.mktemp("config")
    shutil.copytree(KIT, config, dirs_exist_ok=True)
    models = (config / "models.config").read_text().replace("/models/", f"{served.parents[1]}/")
    (config / "models.config").write_text(models)
    service = yaml.safe_load((KIT / "compose.yaml").read_text("utf-8"))["services"][NAME]
    options = [word.replace("/config/", f"{config}/") for word in service["command"]]
    ports = (free_port(), free_port())
    command = ["tensorflow_model_server", f"--rest_api_port={ports[0]}", f"--port={ports[1]}"]
    with (
        open(config / "log", "w") as log,
        subprocess.Popen([*command, *options], stdout=log, stderr=log) as process,
    ):
        rest_server, grpc_server = (f"127.0.0.1:{port}" for port in ports)
        healthy = [sys.executable, KIT / "health.py", "--model", NAME, "--wait", "120"]
        ready = subprocess.run([*healthy, "--server", rest_server], check=False).returncode == 0
        try:
            assert ready, (config / "log").read_text()
            yield SimpleNamespace(rest=rest_server, grpc=grpc_server)
        finally:
            process.terminate()
