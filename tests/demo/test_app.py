"""Requests: answers, limits, broken input, overload, and many at once."""

import asyncio
import base64
import contextlib
import importlib
import json
import re

import httpx
import pytest
from capital_model import Upper
from document_cases import CASES, upper

from tf_transformer.demo import app, uploads
from tf_transformer.inference.notices import Notice
from tf_transformer.inference.predictor import Prediction

SCRIPT = "<script>alert(1)</script> & <b>"


class Lower(Upper):
    """A second model, without controls, fields and attention."""

    name = "lower"
    can_align = False
    controls = fields = {}  # noqa: RUF012

    def n_best(self, texts, options):
        return [[Prediction(text.lower(), -1.0)] for text in texts]


@pytest.fixture
def model():
    return Upper()


@pytest.fixture
def client(model):
    """A client without `await`; its application runs during calls only."""

    class Client:
        def request(self, *words, **options):
            return runner.run(connection.request(*words, **options))

        def get(self, path):
            return self.request("GET", path)

        def post(self, path, **options):
            return self.request("POST", path, **options)

    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        connection = runner.run(stack.enter_async_context(connected(model)))
        yield Client()
        runner.run(stack.aclose())


def best(response):
    assert response.status_code == 200, response.text
    return [line[0]["text"] for line in response.json()["lines"]]


@contextlib.asynccontextmanager
async def connected(model, **options):
    """A client of an application in this event loop."""
    made = app.make_app([model, Lower()], **options)
    transport = httpx.ASGITransport(made, raise_app_exceptions=False)
    async with (
        made.router.lifespan_context(made),
        httpx.AsyncClient(transport=transport, base_url="http://demo") as client,
    ):
        yield client


def test_a_thousand_requests_at_once_get_their_own_lines_from_few_batches(model):
    async def ask():
        async with connected(model) as client:
            return await asyncio.gather(
                *(client.post("/translate", json={"texts": [f"line {n}"]}) for n in range(1000))
            )

    assert [best(answer) for answer in asyncio.run(ask())] == [[f"LINE {n}"] for n in range(1000)]
    assert sum(map(len, model.batches)) == 1000
    assert len(model.batches) < 100


def test_a_full_queue_is_an_error_with_a_time_to_retry(model):
    async def ask():
        async with connected(model, capacity=20) as client:
            model.go.clear()
            tasks = [
                asyncio.create_task(client.post("/translate", json={"texts": ["a"] * 8}))
                for _ in range(6)
            ]
            await asyncio.sleep(0.1)
            model.go.set()
            return await asyncio.gather(*tasks)

    answers = asyncio.run(ask())
    assert {answer.status_code for answer in answers} == {200, 503}
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert refused.headers["retry-after"] == "1"
    assert "busy" in refused.json()["error"]


@pytest.mark.parametrize("text", [SCRIPT, "", "  ", "a\nb", "\0", "né 漢 🙂", "\ud800"])
def test_texts_come_back_as_texts(client, text):
    """As JSON, which no browser reads as a page, with newlines that the text has."""
    response = client.post(
        "/translate",
        content=json.dumps({"texts": [text]}),
        headers={"content-type": "application/json"},
    )
    assert best(response) == [text.upper().replace("\ud800", "\ufffd")]
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_newline_that_the_text_does_not_have_is_a_space(client, model):
    """The page shows a translation beside each line of the text."""
    model.n_best = lambda texts, options: [[Prediction("A\nB", -1.0)] for _ in texts]
    assert best(client.post("/translate", json={"texts": ["a"]})) == ["A B"]


def test_an_answer_names_the_notices_of_each_prediction(client, model):
    """The page has a text for each of them."""
    model.n_best = lambda texts, options: [[Prediction("A", -1.0, tuple(Notice))] for _ in texts]
    (line,) = client.post("/translate", json={"texts": ["a"]}).json()["lines"]
    notices = [each.value for each in Notice]
    assert line == [
        {
            "text": "A",
            "score": -1.0,
            "notices": notices,
            "word_probabilities": [],
            "unseen_words": [],
        }
    ]
    texts = re.search(r"const NOTICES = \{.*\n((?:.*\n)*?)\};", client.get("/").text)[1]
    assert re.findall(r'(\w+): "', texts) == [each.value for each in Notice]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("", 400, "The request is not JSON"),
        ('{"texts": [', 400, "The request is not JSON"),
        ("[" * 100_000, 400, "The request is not JSON"),
        (b"\xff\xfe{", 400, "The request is not JSON"),
        ('["one"]', 400, "Expected a JSON object"),
        ("{}", 400, "Expected a list of texts as texts, got null."),
        ({"texts": "one"}, 400, 'Expected a list of texts as texts, got "one".'),
        ({"texts": ["one", 1]}, 400, 'Expected a list of texts as texts, got ["one", 1].'),
        ({"texts": []}, 400, "Expected 1 to 128 texts in a request, got 0."),
        ({"texts": ["a"] * 129}, 400, "Expected 1 to 128 texts in a request, got 129."),
        ({"texts": ["a", "b" * 2001]}, 413, "Text 2 of texts has 2,001 characters; at most 2,000"),
        ({"texts": ["a" * 2**18]}, 413, "A request may have at most 262,144 bytes."),
        ({"texts": ["a"], "beam_size": 0}, 400, "Expected a number from 1 to 10 as beam_size"),
        ({"texts": ["a"], "beam_size": "4"}, 400, 'as beam_size, got "4".'),
        ({"texts": ["a"], "beam_size": True}, 400, "as beam_size, got true."),
        ({"texts": ["a"], "beam_size": 10**400}, 400, "as beam_size, got 1000"),
        ('{"texts": ["a"], "beam_size": NaN}', 400, "as beam_size, got nan."),
        ('{"texts": ["a"], "length_penalty": -1e999}', 400, "as length_penalty, got -inf."),
        ({"texts": ["a"], "top_k": 1}, 400, 'This model has no option "top_k".'),
        ({"texts": ["a"], "prefix": ["b"]}, 400, 'Expected a text as prefix, got ["b"].'),
        ({"texts": ["a"], "prefix": None}, 400, "Expected a text as prefix, got null."),
        ({"texts": ["a"], "prefix": "b" * 2001}, 413, "The text prefix has 2,001 characters; at"),
        (
            {"texts": ["a"], "language": ">>eng<<"},
            400,
            'Expected one of >>deu<<, >>nld<< as language, got ">>eng<<".',
        ),
        ({"texts": ["a"], "model": 1, "prefix": "b"}, 400, 'This model has no option "prefix".'),
        ({"texts": ["unreachable"]}, 502, "no answer from the model."),
        ({"texts": ["defect"]}, 500, "The model failed"),
    ],
)
def test_bad_requests_get_one_sentence_and_the_next_request_is_answered(
    client, body, status, message
):
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    headers = {"content-type": "application/json"}
    response = client.post("/translate", content=content, headers=headers)
    assert response.status_code == status
    assert message in response.json()["error"]
    assert best(client.post("/translate", json={"texts": ["fine"]})) == ["FINE"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/translate", 405), ("POST", "/", 405)],
)
def test_other_addresses_are_errors_in_json(client, method, path, status):
    response = client.request(method, path)
    assert response.status_code == status
    assert response.json()["error"]


def test_forms_of_other_sites_are_refused(client):
    """A browser sends them without asking, but not as application/json."""
    response = client.post("/translate", content='{"texts": ["a"]}')
    assert response.status_code == 415


@pytest.fixture
def options(client, model):
    """The options that the model gets with a request."""

    def options(**given):
        assert best(client.post("/translate", json={"texts": ["a"], **given})) == ["A"]
        return model.options

    return options


def test_options_are_rounded_to_steps_and_defaults_are_left_out(options):
    assert options() == options(beam_size=4, length_penalty=0.6) == ()
    assert options(beam_size=4, length_penalty=0.30001) == (("length_penalty", 0.3),)
    assert options(beam_size=1.2, length_penalty=2) == (("beam_size", 1), ("length_penalty", 2.0))


def test_inputs_of_the_texts_are_options_and_empty_ones_are_left_out(client, options):
    assert options(prefix="", language="") == ()
    expected = (("beam_size", 1), ("prefix", " né "), ("language", ">>nld<<"))
    assert options(language=">>nld<<", prefix=" né ", beam_size=1) == expected
    pair = {"texts": ["a"], "predictions": ["b"], "prefix": "", "language": ">>nld<<"}
    weights = client.post("/align", json=pair).json()["weights"]
    assert weights == [[[1, 1, ["language", ">>nld<<"]]]]


def test_attention_is_asked_for_in_pairs(client, model):
    pairs = {"texts": ["a", "abc"], "predictions": ["xy", ""]}
    assert client.post("/align", json=pairs).json() == {"weights": [[[1, 2]], [[3, 0]]]}
    response = client.post("/align", json=pairs | {"texts": ["a"]})
    assert response.status_code == 400
    assert "as many predictions as texts, 1, got 2" in response.json()["error"]
    model.can_align = False
    assert client.post("/align", json=pairs).status_code == 404


def test_the_page_loads_nothing_from_elsewhere(client):
    response = client.get("/")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "http" not in response.text.replace("http://www.w3.org/2000/svg", "")
    assert "innerHTML" not in response.text


def test_info_lists_the_models_with_their_controls_and_the_limits_of_requests(client):
    info = client.get("/info").json()
    upper, lower = info["models"]
    assert (upper["name"], upper["languages"]) == ("upper", ["en", "de"])
    assert upper["limits"] == "It only shouts."
    assert list(upper["controls"]) == ["beam_size", "length_penalty"]
    assert upper["controls"]["beam_size"]["highest"] == 10
    assert upper["fields"]["language"]["choices"] == [">>deu<<", ">>nld<<"]
    assert (lower["name"], lower["controls"], lower["fields"]) == ("lower", {}, {})
    assert info["limits"]["characters"] == 2000


def test_a_request_names_the_model_by_its_place(client):
    for place, expected in ((0, "AB"), (1, "ab")):
        answer = client.post("/translate", json={"model": place, "texts": ["aB"]})
        assert best(answer) == [expected]
    pair = {"texts": ["a"], "predictions": ["b"]}
    assert client.post("/align", json={"model": 0, **pair}).status_code == 200
    assert client.post("/align", json={"model": 1, **pair}).status_code == 404
    for place in (2, -1, True, "upper", 0.0, None):
        refused = client.post("/translate", json={"model": place, "texts": ["aB"]})
        assert refused.status_code == 400
        assert "Expected 0 to 1 as model, got" in refused.json()["error"]


# --- documents ---------------------------------------------------------------------------------


def translate(client, name, content, **given):
    """The lines of an answer to a document."""
    body = {"name": name, "content": base64.b64encode(content).decode(), **given}
    response = client.post("/document", json=body)
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


@pytest.mark.parametrize("ending", CASES)
def test_a_document_of_each_format_comes_back_translated(client, ending):
    make, texts_of, packages = CASES[ending]
    for package in packages:
        pytest.importorskip(package)
    texts = ["one", "two and three", "four"]
    *_, last = translate(client, f"in{ending}", make(texts))
    assert texts_of(base64.b64decode(last["content"])) == upper(texts)
    assert (last["texts"], last["lost"], last["notices"]) == (3, 0, {})


def test_lines_of_an_answer_tell_its_progress(client, model):
    content = "\n".join(f"line {n}" for n in range(70)).encode()
    *lines, last = translate(client, "a.txt", content, prefix="x", beam_size=2)
    assert lines == [{"done": done, "texts": 70} for done in (0, 32, 64)]
    assert base64.b64decode(last["content"]) == content.upper()
    assert [len(batch) for batch in model.batches] == [32, 32, 6]
    assert model.options == (("beam_size", 2), ("prefix", "x"))
    (last,) = translate(client, "a.txt", b"17\n")
    assert base64.b64decode(last["content"]) == b"17\n"


def test_an_answer_counts_lost_tags_and_notices(client, model):
    page = f"<p>A <b>b</b> {'c' * 50}</p>".encode()
    model.best = lambda text: "EINS"
    *_, last = translate(client, "a.html", page)
    assert base64.b64decode(last["content"]) == b"<p>EINS<b></b></p>"
    assert (last["lost"], last["notices"]) == (1, {"length_limit": 1})


def test_a_model_that_fails_ends_the_answer_with_an_error(client):
    *_, last = translate(client, "a.txt", b"one\nunreachable\n")
    assert last == {"error": "no answer from the model."}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"content": ""}, 400, "Expected the name of a document as name, got null."),
        ({"name": "a.txt", "content": "?"}, 400, "Expected a document in base64 as content."),
        ({"name": "a.txt", "content": 1}, 400, "Expected a document in base64 as content."),
        ({"name": "a.pdf", "content": ""}, 400, "a.pdf is no document: expected the ending .txt"),
        ({"name": "a.docx", "content": "YQ=="}, 400, "a.docx cannot be translated: it is not a"),
        ({"name": "a.txt", "content": "/w=="}, 400, "a.txt is not UTF-8: it has the byte 0xff."),
        ({"name": "a.txt", "content": "", "x": 1}, 400, 'This model has no option "x".'),
    ],
)
def test_what_is_no_document_is_an_error(client, body, status, message):
    pytest.importorskip("lxml")
    response = client.post("/document", json=body)
    assert response.status_code == status
    assert message in response.json()["error"]


def test_documents_have_limits(client, monkeypatch):
    pytest.importorskip("docx")
    content = CASES[".docx"][0](["one"])
    body = {"name": "a.docx", "content": base64.b64encode(content).decode()}
    for name, limit, status, message in (
        ("UNPACKED", 1000, 400, "a.docx cannot be translated: its parts have"),
        (
            "UPLOAD",
            1000,
            413,
            f"The file has {len(content):,} bytes; at most 1,000 are translated.",
        ),
    ):
        monkeypatch.setattr(uploads, name, limit)
        response = client.post("/document", json=body)
        assert response.status_code == status
        assert message in response.json()["error"]


def test_a_missing_package_is_an_error_with_the_extra(client, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    response = client.post("/document", json={"name": "a.docx", "content": ""})
    assert response.status_code == 400
    assert "pip install 'tf_transformer[documents]'" in response.json()["error"]
