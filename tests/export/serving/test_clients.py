"""The clients and the health check, with a server that stands in for TF Serving."""

import io
import json
import re
import threading
import time
import urllib.request

import numpy as np
import pytest

from export.serving import client_grpc, client_rest, health

NAME = "translator"
CLIENTS = [(client_rest, "rest"), (client_grpc, "grpc")]
LINES = [
    b"twenty-one",
    b"",
    b"June \xff twelfth",
    "a\u2028b\x85c\r".encode(),
    b"  ",
    "\U0001f44d".encode(),
    b"three",
]


@pytest.mark.parametrize(("client", "interface"), CLIENTS)
def test_a_client_gives_a_line_for_a_line(client, interface, stand_in, translator, command):
    server = getattr(stand_in, interface)
    options = ("--server", server, "--model", NAME, "--batch_size", 3)
    code, output, _ = command(client, *options, stdin=b"\n".join(LINES))
    assert code == 0
    rows = [json.loads(line) for line in output.removesuffix("\n").split("\n")]
    texts = [text.decode("utf-8", "replace") for text in LINES]
    assert [row["translation"] for row in rows] == [t.text for t in translator(texts)]


@pytest.mark.parametrize(("client", "interface"), CLIENTS)
def test_versions_are_numbers_or_labels(client, interface, stand_in, command):
    options = ("--server", getattr(stand_in, interface), "--model", NAME, "--version")
    for version, expected_code in [("1", 0), ("stable", 0), ("2", 1), ("canary", 1)]:
        code, _, _ = command(client, *options, version, stdin=b"twenty\n")
        assert code == expected_code, version


@pytest.mark.parametrize(
    ("client", "options", "says"),
    [
        (client_rest, {"model": "other"}, "404.*Servable not found"),
        (client_rest, {"signature": "other"}, '400.*"other\\\\" not found'),
        (client_rest, {"server": "absent"}, "Connection refused.*Is the server up"),
        (client_rest, {"server": "gRPC"}, "no answer from .*is this its REST port"),
        (client_grpc, {"model": "other"}, "NOT_FOUND: Servable not found"),
        (client_grpc, {"signature": "other"}, 'INVALID_ARGUMENT: .*"other" not found'),
        (client_grpc, {"server": "absent"}, "UNAVAILABLE"),
        (client_grpc, {"server": "REST"}, "UNAVAILABLE"),
    ],
)
def test_a_client_says_what_is_wrong(client, options, says, stand_in, free_port, command):
    servers = {
        "absent": f"127.0.0.1:{free_port()}",
        "REST": stand_in.rest,
        "gRPC": stand_in.grpc,
    }
    own = "REST" if client is client_rest else "gRPC"
    options = {"server": own, "model": NAME} | options
    options["server"] = servers[options["server"]]
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    code, output, message = command(client, *words, stdin=b"twenty\n")
    assert (code, output) == (1, "")
    assert re.search(f"^error: .*{says}", message, re.DOTALL)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"<html>", "expected JSON from .*, got '<html>'"),
        (b"[]", "expected a JSON object"),
        (b'{"predictions": []}', "expected 1 predictions"),
    ],
)
def test_an_answer_that_is_none_is_said_to_be(body, says, monkeypatch):
    monkeypatch.setattr(urllib.request, "urlopen", lambda request, timeout: io.BytesIO(body))
    with pytest.raises(client_rest.ServerError, match=says):
        client_rest.predict("localhost:1", NAME, {"text": ["twenty"]})


def test_answers_are_read_as_utf8_whatever_is_in_them(monkeypatch):
    body = b'{"predictions": [{"translation": "\xc3\xa4\xff"}]}'  # as the server would write it
    monkeypatch.setattr(urllib.request, "urlopen", lambda request, timeout: io.BytesIO(body))
    rows = client_rest.predict("localhost:1", NAME, {"text": ["twenty"]})
    assert rows == [{"translation": "ä\ufffd"}]
    values = np.array([[b"\xc3\xa4", b"\xff"]], object)
    assert client_grpc.plain(values) == [["ä", "\ufffd"]]


@pytest.mark.parametrize("interface", ["rest", "grpc"])
@pytest.mark.parametrize(
    ("state", "model", "code", "says"),
    [
        ("AVAILABLE", NAME, 0, "version 1: AVAILABLE\n"),
        ("LOADING", NAME, 1, "version 1: LOADING\n"),
        ("AVAILABLE", "other", 1, "Servable not found"),
    ],
)
def test_health_is_that_a_version_is_available(
    interface, state, model, code, says, stand_in, monkeypatch, command
):
    monkeypatch.setattr(stand_in.model, "state", state)
    words = ["--model", model, "--server", getattr(stand_in, interface)]
    words += ["--grpc"] * (interface == "grpc")
    found, output, _ = command(health, *words)
    assert found == code
    assert says in output


@pytest.mark.parametrize("options", [(), ("--grpc",)])
def test_a_server_that_is_not_there_is_not_healthy(options, free_port, command):
    words = ("--model", NAME, "--server", f"127.0.0.1:{free_port()}", *options)
    code, output, _ = command(health, *words)
    assert code == 1
    assert "refused" in output or "UNAVAILABLE" in output


def test_health_waits(stand_in, monkeypatch, command):
    monkeypatch.setattr(stand_in.model, "state", "LOADING")
    timer = threading.Timer(0.5, setattr, (stand_in.model, "state", "AVAILABLE"))
    timer.start()
    start = time.monotonic()
    words = ("--model", NAME, "--server", stand_in.rest, "--wait", 60)
    code, _, _ = command(health, *words)
    timer.join()
    assert code == 0
    assert 0.5 < time.monotonic() - start < 30
