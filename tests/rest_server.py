"""A server with the REST interface of TF Serving, and a model that answers in capitals."""

import http.server
import json
import threading

MODEL = "/v1/models/translator"


class RestServer(http.server.ThreadingHTTPServer):
    """Listens on a free port inside a `with` block."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    """The state of the model, and the signature `n_best` with lists of 3."""

    def do_GET(self):
        if self.path == MODEL:
            self._send(200, {"model_version_status": [{"state": "AVAILABLE"}]})
        else:
            self._send(404, {"error": "Servable not found"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if (self.path, body["signature_name"]) != (f"{MODEL}:predict", "n_best"):
            self._send(400, {"error": "no such signature"})
            return
        texts = [row["text"] for row in body["instances"]]
        rows = [
            {
                "translations": [text.upper(), text, ""],
                "scores": [-0.5, -1.5, -1e9],
                "truncated": len(text) > 100,
            }
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
