"""Translates lines with TF Serving over REST; needs only Python and this repository.

    python export/serving/client_rest.py --model translator < lines.txt > answers.jsonl

The program writes one line of JSON per line read: {"translation": ..., "score": ..., ...}.
"""

import argparse
import base64
import http.client
import itertools
import json
import pathlib
import runpy
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# The program runs files of the package that import nothing, by their paths. `predict` needs none.
PACKAGE = pathlib.Path(__file__).parents[2] / "tf_transformer"


class ServerError(Exception):
    """The server did not answer, or answered with an error."""


def predict(
    server: str,
    model: str,
    inputs: Mapping[str, Sequence[str | bytes]],
    signature: str = "serving_default",
    version: str = "",
    timeout: float = 60.0,
) -> list[dict[str, Any]]:
    """Sends one request.

    Args:
        server: host:port of the server's REST interface.
        model: name of the model on the server.
        inputs: strings (B,) by the names of the signature's inputs. Bytes may have any encoding.
        signature: name of the signature.
        version: number or label of a version; empty: the newest.
        timeout: seconds to wait for an answer.

    Returns:
        for each of the B rows, the outputs by name.

    Raises:
        ServerError: when the server does not answer, or reports an error.
        TypeError: for a single text in place of a list, and for items that are not text.

    Example:
        predict("localhost:8501", "translator", {"text": ["twenty-one"]})
    """
    inputs = {name: _texts(name, texts) for name, texts in inputs.items()}
    url = f"http://{server}/v1/models/{model}{_version_path(version)}:predict"
    rows = [
        dict(zip(inputs, map(_json_string, row), strict=True))
        for row in zip(*inputs.values(), strict=True)
    ]
    answer = _post(url, {"signature_name": signature, "instances": rows}, timeout)
    predictions = answer.get("predictions")
    if not isinstance(predictions, list) or len(predictions) != len(rows):
        raise ServerError(f"expected {len(rows)} predictions from {url}, got {str(answer)[:80]}.")
    return predictions


def _texts(name: str, texts: Iterable[str | bytes]) -> list[str | bytes]:
    """Checks the texts of an input, and makes a list of them; refuses a single text."""
    is_list = isinstance(texts, Iterable) and not isinstance(texts, str | bytes | Mapping)
    items: list[Any] = list(texts) if is_list else [None]
    if not all(isinstance(item, str | bytes) for item in items):
        raise TypeError(f"expected a list of texts as {name}, got {texts!r:.80}.")
    return items


def _post(url: str, content: dict[str, Any], timeout: float) -> dict[str, Any]:
    """Sends a JSON object, and returns the JSON object of the answer."""
    body = json.dumps(content).encode("ascii")
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            # Outputs of a model may contain broken UTF-8, which the server sends unchanged.
            answer = json.loads(response.read().decode("utf-8", "replace"))
    except urllib.error.HTTPError as error:
        message = error.read().decode("utf-8", "replace").strip()
        raise ServerError(f"{url} answered {error.code}: {message}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or repr(error)
        raise ServerError(
            f"no answer from {url}: {reason}. Check that the server runs, and that this is its "
            "REST port."
        ) from error
    except json.JSONDecodeError as error:
        raise ServerError(f"expected JSON from {url}, got {error.doc[:80]!r}.") from error
    if not isinstance(answer, dict):
        raise ServerError(f"expected a JSON object from {url}, got {answer!r}.")
    return answer


def _version_path(version: str) -> str:
    if not version:
        return ""
    return f"/versions/{version}" if version.isdecimal() else f"/labels/{version}"


def _json_string(value: str | bytes) -> str | dict[str, str]:
    """A string in JSON. Bytes that are not UTF-8 are in base64, in TF Serving's form."""
    if isinstance(value, str):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode("ascii")}


def columns_of(names: Sequence[str], lines: Sequence[bytes]) -> dict[str, list[bytes]]:
    """The inputs of lines by name. Tabs divide the columns; missing columns at the end are empty.

    Args:
        names: names of inputs. With one name, a line is one text.
        lines: the lines.

    Raises:
        ServerError: for a line with more columns than names.
    """
    rows = [line.split(b"\t") if len(names) > 1 else [line] for line in lines]
    for row in rows:
        if len(row) > len(names):
            raise ServerError(f"expected at most {len(names)} columns in a line, got {row!r:.80}.")
        row.extend([b""] * (len(names) - len(row)))
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def parser() -> argparse.ArgumentParser:
    """The options of this command."""
    options = argparse.ArgumentParser(description="Translates stdin with TF Serving over REST.")
    options.add_argument("--server", default="localhost:8501", help="host:port")
    options.add_argument("--model", required=True, help="name of the model on the server")
    options.add_argument("--signature", default="serving_default", help="or n_best")
    options.add_argument(
        "--inputs",
        default="text",
        help="inputs of the signature; with several, like text,prefix,language, the columns of a "
        "line have tabs between them",
    )
    options.add_argument("--version", default="", help="number or label; default: the newest")
    options.add_argument("--batch_size", type=int, default=32, help="lines per request")
    options.add_argument("--timeout", type=float, default=60.0, help="seconds per request")
    return options


def main() -> None:
    """Translates the lines of stdin in batches."""
    options = parser().parse_args()
    text = runpy.run_path(str(PACKAGE / "files" / "text_lines.py"))
    lines = text["lines_of"](text["chunks_of"](sys.stdin.buffer), text["STDIN"])
    try:
        while batch := list(itertools.islice(lines, options.batch_size)):
            rows = predict(
                options.server,
                options.model,
                columns_of(options.inputs.split(","), batch),
                options.signature,
                options.version,
                options.timeout,
            )
            for row in rows:
                sys.stdout.buffer.write(json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n")
            sys.stdout.buffer.flush()
    except (ServerError, text["TextError"]) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    streams = runpy.run_path(str(PACKAGE / "commands" / "standard_streams.py"))
    with streams["standard_streams"]():
        main()
