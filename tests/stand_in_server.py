"""A stand-in for tensorflow_model_server, for machines without it.

It serves a SavedModel over REST and gRPC as TF Serving documents them, with TF Serving's own gRPC
messages. It does not load versions, form batches or run warm-up requests.
"""

import argparse
import base64
import http.server
import json
import pathlib
import threading
from concurrent import futures

import grpc
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the SentencePiece ops
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

VERSION = 1


class RefusedError(Exception):
    """HTTP status, gRPC code and message of an error."""


class Model:
    """A SavedModel with a name and a state."""

    def __init__(self, saved_model: str, name: str):
        self._loaded = tf.saved_model.load(saved_model)
        self.signatures = self._loaded.signatures
        self.name = name
        self.state = "AVAILABLE"

    def require(self, name: str, version: str = "") -> None:
        if name != self.name or version not in ("", str(VERSION), "stable"):
            message = f"Servable not found for request: Latest({name})"
            raise RefusedError(404, grpc.StatusCode.NOT_FOUND, message)

    def predict(self, signature: str, inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        if sorted(inputs) != self.input_names(signature):
            message = f"input keys do not match: {sorted(inputs)}"
            raise RefusedError(400, grpc.StatusCode.INVALID_ARGUMENT, message)
        return self.signatures[signature](**inputs)

    def input_names(self, signature: str) -> list[str]:
        if signature not in self.signatures:
            message = f'Serving signature name: "{signature}" not found in signature def'
            raise RefusedError(400, grpc.StatusCode.INVALID_ARGUMENT, message)
        return sorted(self.signatures[signature].structured_input_signature[1])


class StandIn:
    """Serves a model over both interfaces, on free ports, inside a `with` block."""

    def __init__(self, saved_model: str, name: str, rest_port: int = 0, grpc_port: int = 0):
        self.model = Model(saved_model, name)
        handler = type("Handler", (RestHandler,), {"model": self.model})
        self._rest = http.server.ThreadingHTTPServer(("127.0.0.1", rest_port), handler)
        self._grpc = grpc.server(futures.ThreadPoolExecutor(2))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
            Predictions(self.model), self._grpc
        )
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(States(self.model), self._grpc)
        self.grpc_port = self._grpc.add_insecure_port(f"127.0.0.1:{grpc_port}")
        self.rest_port = self._rest.server_port
        self.rest = f"127.0.0.1:{self.rest_port}"
        self.grpc = f"127.0.0.1:{self.grpc_port}"

    def __enter__(self) -> "StandIn":
        threading.Thread(target=self._rest.serve_forever, daemon=True).start()
        self._grpc.start()
        return self

    def __exit__(self, *error) -> None:
        self._rest.shutdown()
        self._rest.server_close()
        self._grpc.stop(None).wait()


class RestHandler(http.server.BaseHTTPRequestHandler):
    """GET /v1/models/NAME and POST /v1/models/NAME[/versions/N|/labels/L]:predict."""

    model: Model

    def do_GET(self):
        self._answer(self._state)

    def do_POST(self):
        self._answer(self._predictions)

    def log_message(self, *words):
        """Logs nothing."""

    def _answer(self, make) -> None:
        try:
            status, content = 200, make()
        except RefusedError as refused:
            status, _, message = refused.args
            content = {"error": message}
        body = json.dumps(content, indent=4).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _state(self):
        self.model.require(self.path.removeprefix("/v1/models/"))
        status = {"error_code": "OK", "error_message": ""}
        state = {"version": str(VERSION), "state": self.model.state, "status": status}
        return {"model_version_status": [state]}

    def _predictions(self):
        name, _, rest = (
            self.path.removeprefix("/v1/models/").removesuffix(":predict").partition("/")
        )
        self.model.require(name, rest.partition("/")[2])
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            content = json.loads(body)
        except ValueError as error:
            raise RefusedError(400, None, f"JSON Parse error: {error}") from error
        signature = content.get("signature_name", "serving_default")
        outputs = self.model.predict(signature, self._inputs(signature, content["instances"]))
        rows = zip(*(_plain(value.numpy()) for value in outputs.values()), strict=True)
        return {"predictions": [dict(zip(outputs, row, strict=True)) for row in rows]}

    def _inputs(self, signature, instances):
        if not isinstance(instances[0], dict) or "b64" in instances[0]:  # values of the only input
            (name,) = self.model.input_names(signature)
            instances = [{name: value} for value in instances]
        return {
            name: tf.constant([_bytes(row[name]) for row in instances]) for name in instances[0]
        }


class Predictions(prediction_service_pb2_grpc.PredictionServiceServicer):
    """The gRPC service for predictions."""

    def __init__(self, model: Model):
        self._model = model

    def Predict(self, request, context):  # noqa: N802  name in the service
        spec = request.model_spec
        version = str(spec.version.value) if spec.HasField("version") else spec.version_label
        try:
            self._model.require(spec.name, version)
            inputs = {
                name: tf.constant(tf.make_ndarray(value)) for name, value in request.inputs.items()
            }
            outputs = self._model.predict(spec.signature_name or "serving_default", inputs)
        except RefusedError as refused:
            _, code, message = refused.args
            context.abort(code, message)
        protos = {name: tf.make_tensor_proto(value) for name, value in outputs.items()}
        return predict_pb2.PredictResponse(model_spec=spec, outputs=protos)


class States(model_service_pb2_grpc.ModelServiceServicer):
    """The gRPC service for the states of models."""

    def __init__(self, model: Model):
        self._model = model

    def GetModelStatus(self, request, context):  # noqa: N802
        try:
            self._model.require(request.model_spec.name)
        except RefusedError as refused:
            context.abort(*refused.args[1:])
        status = get_model_status_pb2.ModelVersionStatus(version=VERSION, state=self._model.state)
        return get_model_status_pb2.GetModelStatusResponse(model_version_status=[status])


def _bytes(value) -> bytes:
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value.encode()


def _plain(values):
    if isinstance(values, bytes):
        return values.decode("utf-8", "replace")
    values = values.tolist() if hasattr(values, "tolist") else values
    return list(map(_plain, values)) if isinstance(values, list) else values


def main() -> None:
    """Serves the newest version of a model until the process ends, with the server's options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rest_api_port", type=int, default=0)
    parser.add_argument("--model_name", required=True)
    parser.add_argument("--model_base_path", type=pathlib.Path, required=True)
    given, _ = parser.parse_known_args()
    newest = max(given.model_base_path.iterdir(), key=lambda folder: int(folder.name))
    with StandIn(str(newest), given.model_name, given.rest_api_port):
        threading.Event().wait()


if __name__ == "__main__":
    main()
