"""Programs and clients that serve an export refuse what is not a list of texts."""

import json
import os
import shutil

import numpy as np
import pytest

from export.serving import client_grpc, client_rest
from tf_transformer.errors import InputError
from tf_transformer.export import run_in_session, to_ctranslate2
from tf_transformer.inference.saved_translator import SavedTranslator

NAME = "translator"
OTHERS = ["abc", b"abc", None, 3, {"one": 1}, ["one", None], ["one", 2], [["one"]], [{"b64": "b"}]]


@pytest.fixture(scope="module")
def model(served):
    return run_in_session.SavedModel(str(served))


@pytest.fixture(scope="module")
def folder(translator, tmp_path_factory):
    """A folder of CTranslate2."""
    path = tmp_path_factory.mktemp("ctranslate2")
    to_ctranslate2.write(translator, path, "float32")
    return path


def test_any_list_of_texts_gives_the_same(model):
    expected = model("serving_default", {"text": ["one", "two"]})
    for texts in (("one", "two"), np.array(["one", "two"]), [b"one", b"two"], iter(["one", "two"])):
        found = model("serving_default", {"text": texts})
        assert {name: x.tolist() for name, x in found.items()} == {
            name: x.tolist() for name, x in expected.items()
        }


@pytest.mark.parametrize("texts", OTHERS, ids=str)
def test_a_session_refuses_other_inputs(texts, model):
    for signature, inputs in (
        ("serving_default", {"text": texts}),
        ("score", {"source": ["one"], "target": texts}),
    ):
        with pytest.raises(run_in_session.InputError, match="expected a list of texts as t"):
            model(signature, inputs)
    with pytest.raises(
        run_in_session.InputError, match=r"equally many.* got 1 of s.*, 2 of target"
    ):
        model("score", {"source": ["one"], "target": ["one", "two"]})


@pytest.mark.parametrize(
    "request_",
    [
        *({"signature_name": "n_best", "inputs": {"text": texts}} for texts in OTHERS if texts),
        *({"signature_name": name, "inputs": {"text": ["a"]}} for name in (None, 3, ["a"], "x")),
        *({"signature_name": "n_best", "inputs": x} for x in (None, 3, ["a"], "a", {})),
        *(None, 3, [], "text", {}, {"inputs": {}}),
    ],
    ids=str,
)
def test_a_request_of_another_form_is_an_error(request_, model):
    request_ = json.dumps(request_, default=bytes.decode).encode()
    with pytest.raises(run_in_session.InputError, match=r"^(expected|unknown sig|the signature)"):
        run_in_session.answer_requests(model, [request_])


def test_lone_surrogates_and_deep_requests(model):
    assert model("serving_default", {"text": ["a \ud800"]})
    with pytest.raises(run_in_session.InputError, match="expected requests like"):
        run_in_session.answer_requests(model, [b"[" * 100_000])


@pytest.mark.parametrize("texts", OTHERS, ids=str)
def test_ctranslate2_refuses_other_inputs(texts, folder):
    pytest.importorskip("ctranslate2", reason="needs ctranslate2: pip install ctranslate2")
    from tf_transformer.export.run_in_ctranslate2 import Model

    loaded = Model(str(folder), threads=1)
    with pytest.raises(ValueError, match="expected a list of texts, got"):
        loaded(texts)
    with pytest.raises(ValueError, match="expected a list of translations, got"):
        loaded.score(["one"], texts)
    with pytest.raises(ValueError, match="expected as many translations as texts, got 2"):
        loaded.score(["one"], ["one", "two"])
    assert loaded(text for text in ["one"]) == loaded(np.array(["one"]))


@pytest.mark.parametrize("texts", OTHERS, ids=str)
def test_clients_refuse_other_inputs(texts):
    for client, server in ((client_rest, "localhost:1"), (client_grpc, None)):
        with pytest.raises(TypeError, match="expected a list of texts as text, got"):
            client.predict(server, NAME, {"text": texts})


def test_a_fork_fails_at_once(model, folder):
    pytest.importorskip("ctranslate2", reason="needs ctranslate2: pip install ctranslate2")
    from tf_transformer.export.run_in_ctranslate2 import Model

    loaded = Model(str(folder), threads=1)
    child = os.fork()
    if not child:
        errors = []
        for function, arguments in ((model, ("n_best", {"text": ["a"]})), (loaded, (["a"],))):
            try:
                function(*arguments)
            except ValueError as error:
                errors.append("cannot compute in a fork" in str(error))
        os._exit(0 if errors == [True, True] else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("load", [run_in_session.SavedModel, SavedTranslator])
@pytest.mark.parametrize(
    "name", ["saved_model.pb", "variables/variables.index", "variables/variables.data*"]
)
def test_a_broken_saved_model_is_named(load, name, served, tmp_path):
    copy = tmp_path / "1"
    shutil.copytree(served, copy)
    (file,) = copy.glob(name)
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises((InputError, run_in_session.InputError), match=str(copy)):
        load(str(copy))
    file.unlink()
    with pytest.raises((InputError, run_in_session.InputError), match=str(copy)):
        load(str(copy))
