"""Translates lines with TF Serving over gRPC; needs tensorflow-serving-api.

    python export/serving/client_grpc.py --model translator < lines.txt > answers.jsonl

The program writes one line of JSON per line read: {"translation": ..., "score": ..., ...}.
"""

import argparse
import itertools
import json
import os
import pathlib
import runpy
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

# The program runs files of the package that import nothing, by their paths. `predict` needs none.
PACKAGE = pathlib.Path(__file__).parents[2] / "tf_transformer"


class ServerError(Exception):
    """The server did not answer, or answered with an error."""


def predict(
    channel: grpc.Channel,
    model: str,
    inputs: Mapping[str, Sequence[str | bytes]],
    signature: str = "serving_default",
    version: str = "",
    timeout: float = 60.0,
) -> list[dict[str, Any]]:
    """Sends one request.

    Args:
        channel: a channel to the server's gRPC interface, for any number of requests.
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
        with grpc.insecure_channel("localhost:8500") as channel:
            predict(channel, "translator", {"text": ["twenty-one"]})
    """
    inputs = {name: _texts(name, texts) for name, texts in inputs.items()}
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    if version.isdecimal():
        request.model_spec.version.value = int(version)
    elif version:
        request.model_spec.version_label = version
    for name, values in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(list(values), tf.string))
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    try:
        response = stub.Predict(request, timeout=timeout)
    except grpc.RpcError as error:
        raise ServerError(f"the server answered {error.code().name}: {error.details()}") from error
    outputs = {name: to_json(tf.make_ndarray(value)) for name, value in response.outputs.items()}
    return [dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True)]


def _texts(name: str, texts: Iterable[str | bytes]) -> list[str | bytes]:
    """Checks the texts of an input, and makes a list of them; refuses a single text."""
    is_list = isinstance(texts, Iterable) and not isinstance(texts, str | bytes | Mapping)
    items: list[Any] = list(texts) if is_list else [None]
    if not all(isinstance(item, str | bytes) for item in items):
        raise TypeError(f"expected a list of texts as {name}, got {texts!r:.80}.")
    return items


def to_json(values: Any) -> Any:
    """Converts arrays to lists and bytes to strings."""
    if isinstance(values, bytes):
        return values.decode("utf-8", "replace")
    if hasattr(values, "tolist"):
        values = values.tolist()
    return list(map(to_json, values)) if isinstance(values, list) else values


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
    options = argparse.ArgumentParser(description="Translates stdin with TF Serving over gRPC.")
    options.add_argument("--server", default="localhost:8500", help="host:port")
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
        with grpc.insecure_channel(options.server) as channel:
            while batch := list(itertools.islice(lines, options.batch_size)):
                rows = predict(
                    channel,
                    options.model,
                    columns_of(options.inputs.split(","), batch),
                    options.signature,
                    options.version,
                    options.timeout,
                )
                for row in rows:
                    line = json.dumps(row, ensure_ascii=False)
                    sys.stdout.buffer.write(line.encode("utf-8") + b"\n")
                sys.stdout.buffer.flush()
    except (ServerError, text["TextError"]) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    streams = runpy.run_path(str(PACKAGE / "commands" / "standard_streams.py"))
    with streams["standard_streams"]():
        main()
