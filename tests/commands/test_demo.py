"""The command `tf-transformer demo`: errors, and the process from start to Ctrl-C."""

import asyncio
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from rest_server import RestServer

from tf_transformer.commands import demo
from tf_transformer.errors import InputError

ROOT = pathlib.Path(__file__).parents[2]


def test_without_a_pretrained_run_the_error_names_the_options(monkeypatch):
    monkeypatch.setattr(demo, "PRETRAINED", ("none",))
    with pytest.raises(InputError, match=r"--run_dir, --saved_model or --server, or .* none"):
        demo.main(port=0)


def test_the_pretrained_runs_of_the_current_folder_are_the_default(monkeypatch, tmp_path):
    """As in a clone whose installed package is elsewhere; in other folders the repository's.

    A model of captions is no default: it translates everyday text badly.
    """
    monkeypatch.chdir(tmp_path)
    of_repository = ROOT / "pretrained"
    everyday = set(map(str, of_repository.glob("tatoeba-*")))
    assert set(demo.pretrained()) == everyday
    for name in ("tatoeba-de-en", "tatoeba-en-de", "multi30k-en-de"):
        (tmp_path / "pretrained" / name).mkdir(parents=True)
        (tmp_path / "pretrained" / name / "config.yaml").touch()
    assert demo.pretrained() == ["pretrained/tatoeba-en-de", "pretrained/tatoeba-de-en"]


def test_two_models_are_an_error():
    with pytest.raises(InputError, match="only one of --run_dir, --saved_model and --server"):
        demo.main(run_dir="x", server="localhost:8501", port=0)


def test_a_port_in_use_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        with pytest.raises(InputError, match=rf"cannot listen on 127.0.0.1:{port}: .* --port"):
            demo.main(run_dir="x", port=port)


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"starlette and uvicorn: pip install '.*\[demo\]'"):
        demo.main(run_dir="x")


@pytest.fixture
def process():
    """A demo of a server's model, and its address."""
    with RestServer() as server:
        words = ["demo", "--server", server.address, "--port", "0"]
        started = subprocess.Popen(
            [sys.executable, "-m", "tf_transformer.commands.main", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        line = started.stdout.readline().decode()
        yield started, re.search(r"http://127\.0\.0\.1:\d+", line)[0]
        started.kill()
        started.communicate()


def translate(url, text):
    request = urllib.request.Request(
        f"{url}/translate",
        json.dumps({"texts": [text]}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())["lines"][0][0]["text"]


async def translate_at_once(url, texts):
    """Sends all requests, each on a connection of its own, before it reads an answer."""

    async def send(text):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        body = json.dumps({"texts": [text]}).encode()
        head = "POST /translate HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        return reader, writer

    async def answer(reader, writer):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        assert head.startswith(b"HTTP/1.1 200 "), head
        return json.loads(body)["lines"][0][0]["text"]

    connections = await asyncio.gather(*map(send, texts))
    return await asyncio.gather(*(answer(*each) for each in connections))


def test_a_process_answers_many_connections_and_ctrl_c_ends_it(process):
    started, url = process
    with urllib.request.urlopen(url, timeout=60) as page:
        assert b"<h1>Translate</h1>" in page.read()
    texts = [f"line {n}" for n in range(1000)]
    assert asyncio.run(translate_at_once(url, texts)) == [text.upper() for text in texts]
    # A client that sends half a request and stays.
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as broken:
        broken.sendall(b"POST /translate HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        assert translate(url, "fine") == "FINE"
        started.send_signal(signal.SIGINT)
        _, errors = started.communicate(timeout=60)
    assert started.returncode == 0
    assert b"Traceback" not in errors
