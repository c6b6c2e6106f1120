"""A server with the REST interface of TF Serving, and a model that answers in capitals."""

import http.server
import json
import threading

MODEL = "/v1/models/translator"


class RestServer(http.server.ThreadingHTTPServer):
    """Listens on a free port inside a `with` block.

    `inputs` are those of the signature `n_best_with_inputs` beside the text. Without any, the model
    is an export of an earlier version. With `divides`, it counts the parts of each text, its lines.
    """

    def __init__(self, *inputs, divides=False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.signatures = {"n_best": ["text"]}
        if inputs:
            self.signatures["n_best_with_inputs"] = ["text", *inputs]
        self.divides = divides
        self.address = f"127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    """The state of the model and its signatures, which answer with lists of 3."""

    def do_GET(self):
        if self.path == MODEL:
            self._send(200, {"model_version_status": [{"state": "AVAILABLE"}]})
        elif self.path == f"{MODEL}/metadata":
            tensor = {"dtype": "DT_STRING", "tensor_shape": {"dim": [{"size": "-1"}]}}
            definitions = {
                name: {"inputs": dict.fromkeys(inputs, tensor), "method_name": "predict"}
                for name, inputs in self.server.signatures.items()
            }
            self._send(200, {"metadata": {"signature_def": {"signature_def": definitions}}})
        else:
            self._send(404, {"error": "Servable not found"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        inputs = self.server.signatures.get(body["signature_name"])
        if self.path != f"{MODEL}:predict" or inputs is None:
            self._send(400, {"error": "no such signature"})
            return
        if any(row.keys() != set(inputs) for row in body["instances"]):
            self._send(400, {"error": f"expected {inputs}"})
            return
        texts = ["".join(row[name] for name in inputs[::-1]) for row in body["instances"]]
        rows = [
            {
                "translations": [text.upper(), text, ""],
                "scores": [-0.5, -1.5, -1e9],
                "truncated": len(text) > 100,
                "warnings": ["loop untranslated", "script", ""],
            }
            | ({"parts": text.count("\n") + 1} if self.server.divides else {})
            for text in texts
        ]
        self._send(200, {"predictions": rows})

    def _send(self, status, content):
        body = json.dumps(content, indent=4).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        """Logs nothing."""
