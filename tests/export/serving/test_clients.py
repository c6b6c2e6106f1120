"""The clients and the health check, with a stand-in for TF Serving."""

import codecs
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
    "a\u2028b\x85c\r\r".encode(),
    b"  ",
    "\U0001f44d".encode(),
    b"three",
]


@pytest.mark.parametrize(("client", "interface"), CLIENTS)
def test_a_client_gives_one_line_per_line(client, interface, stand_in, translator, command):
    server = getattr(stand_in, interface)
    options = ("--server", server, "--model", NAME, "--batch_size", 3)
    code, output, _ = command(client, *options, stdin=codecs.BOM_UTF8 + b"\r\n".join(LINES))
    assert code == 0
    rows = [json.loads(line) for line in output.removesuffix("\n").split("\n")]
    texts = [text.decode("utf-8", "replace") for text in LINES]
    assert [row["translation"] for row in rows] == [t.text for t in translator(texts)]


@pytest.mark.parametrize(("client", "interface"), CLIENTS)
def test_tabs_divide_a_line_into_the_inputs_of_a_signature(
    client, interface, stand_in, translator, command
):
    options = ("--server", getattr(stand_in, interface), "--model", NAME)
    options += ("--signature", "with_inputs", "--inputs", "text,prefix,terms")
    code, output, _ = command(client, *options, stdin=b"one\tzwei\nthree\ntwenty\t\t\n")
    assert code == 0
    expected = translator(["one", "three", "twenty"], ["zwei", "", ""])
    rows = [json.loads(line)["translation"] for line in output.splitlines()]
    assert rows == [each.text for each in expected]
    assert rows[0].startswith("zwei")
    code, _, error = command(client, *options, stdin=b"one\ta\tb\tc\n")
    assert code == 1
    assert "expected at most 3 columns in a line" in error


@pytest.mark.parametrize(("client", "interface"), CLIENTS)
def test_a_version_is_a_number_or_a_label(client, interface, stand_in, command):
    options = ("--server", getattr(stand_in, interface), "--model", NAME, "--version")
    for version, expected_code in [("1", 0), ("stable", 0), ("2", 1), ("canary", 1)]:
        code, _, _ = command(client, *options, version, stdin=b"twenty\n")
        assert code == expected_code, version


@pytest.mark.parametrize(
    ("client", "options", "message"),
    [
        (client_rest, {"model": "other"}, "404.*Servable not found"),
        (client_rest, {"signature": "other"}, '400.*"other\\\\" not found'),
        (client_rest, {"server": "absent"}, "Connection refused.*Check that the server runs"),
        (client_rest, {"server": "gRPC"}, "no answer from .*this is its REST port"),
        (client_grpc, {"model": "other"}, "NOT_FOUND: Servable not found"),
        (client_grpc, {"signature": "other"}, 'INVALID_ARGUMENT: .*"other" not found'),
        (client_grpc, {"server": "absent"}, "UNAVAILABLE"),
        (client_grpc, {"server": "REST"}, "UNAVAILABLE"),
    ],
)
def test_a_client_reports_errors(client, options, message, stand_in, free_port, command):
    servers = {
        "absent": f"127.0.0.1:{free_port()}",
        "REST": stand_in.rest,
        "gRPC": stand_in.grpc,
    }
    own = "REST" if client is client_rest else "gRPC"
    options = {"server": own, "model": NAME} | options
    options["server"] = servers[options["server"]]
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    code, output, error = command(client, *words, stdin=b"twenty\n")
    assert (code, output) == (1, "")
    assert re.search(f"^error: .*{message}", error, re.DOTALL)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>", "expected JSON from .*, got '<html>'"),
        (b"[]", "expected a JSON object"),
        (b'{"predictions": []}', "expected 1 predictions"),
    ],
)
def test_an_answer_without_predictions_is_an_error(body, message, monkeypatch):
    monkeypatch.setattr(urllib.request, "urlopen", lambda request, timeout: io.BytesIO(body))
    with pytest.raises(client_rest.ServerError, match=message):
        client_rest.predict("localhost:1", NAME, {"text": ["twenty"]})


def test_broken_utf8_in_answers_is_replaced(monkeypatch):
    body = b'{"predictions": [{"translation": "\xc3\xa4\xff"}]}'  # as the server would write it
    monkeypatch.setattr(urllib.request, "urlopen", lambda request, timeout: io.BytesIO(body))
    rows = client_rest.predict("localhost:1", NAME, {"text": ["twenty"]})
    assert rows == [{"translation": "ä\ufffd"}]
    values = np.array([[b"\xc3\xa4", b"\xff"]], object)
    assert client_grpc.to_json(values) == [["ä", "\ufffd"]]


@pytest.mark.parametrize("interface", ["rest", "grpc"])
@pytest.mark.parametrize(
    ("state", "model", "code", "shown"),
    [
        ("AVAILABLE", NAME, 0, "version 1: AVAILABLE\n"),
        ("LOADING", NAME, 1, "version 1: LOADING\n"),
        ("AVAILABLE", "other", 1, "Servable not found"),
    ],
)
def test_a_model_is_healthy_when_a_version_is_available(
    interface, state, model, code, shown, stand_in, monkeypatch, command
):
    monkeypatch.setattr(stand_in.model, "state", state)
    words = ["--model", model, "--server", getattr(stand_in, interface)]
    words += ["--grpc"] * (interface == "grpc")
    found, output, _ = command(health, *words)
    assert found == code
    assert shown in output


@pytest.mark.parametrize("options", [(), ("--grpc",)])
def test_an_absent_server_is_not_healthy(options, free_port, command):
    words = ("--model", NAME, "--server", f"127.0.0.1:{free_port()}", *options)
    code, output, _ = command(health, *words)
    assert code == 1
    assert "refused" in output or "UNAVAILABLE" in output


def test_the_health_check_waits_until_a_version_is_available(stand_in, monkeypatch, command):
    monkeypatch.setattr(stand_in.model, "state", "LOADING")
    timer = threading.Timer(0.5, setattr, (stand_in.model, "state", "AVAILABLE"))
    timer.start()
    start = time.monotonic()
    words = ("--model", NAME, "--server", stand_in.rest, "--wait", 60)
    code, _, _ = command(health, *words)
    timer.join()
    assert code == 0
    assert 0.5 < time.monotonic() - start < 30
