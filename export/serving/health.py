"""Checks whether a model on TF Serving is ready; needs only Python (REST).

    python export/serving/health.py --model translator --wait 60

The program prints the state of each version. It exits with 0 if a version is AVAILABLE, else with
1. A version is AVAILABLE after its warm-up requests. --grpc needs tensorflow-serving-api.
"""

import argparse
import http.client
import json
import sys
import time
import urllib.error
import urllib.request


def states_over_rest(server: str, model: str, timeout: float = 5.0) -> dict[int, str]:
    """The state of each version of a model.

    Args:
        server: host:port of the server's REST interface.
        model: name of the model on the server.
        timeout: seconds to wait for an answer.

    Returns:
        the state by the number of the version, like {1: "AVAILABLE"}.

    Raises:
        ConnectionError: when the server does not answer, or the answer has no states.
    """
    url = f"http://{server}/v1/models/{model}"
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:
            versions = json.load(response)["model_version_status"]
        return {int(version["version"]): version["state"] for version in versions}
    except urllib.error.HTTPError as error:
        message = error.read().decode("utf-8", "replace").strip()
        raise ConnectionError(f"{url} answered {error.code}: {message}") from error
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(f"no answer from {url}: {error!r}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConnectionError(f"expected states of a model from {url}, got: {error!r}") from error


def states_over_grpc(server: str, model: str, timeout: float = 5.0) -> dict[int, str]:
    """The state of each version of a model, over gRPC; needs tensorflow-serving-api.

    Args:
        server: host:port of the server's gRPC interface.
        model: name of the model on the server.
        timeout: seconds to wait for an answer.

    Returns:
        the state by the number of the version.

    Raises:
        ConnectionError: when the server does not answer.
    """
    import grpc
    from tensorflow_serving.apis import get_model_status_pb2, model_service_pb2_grpc

    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = model
    try:
        with grpc.insecure_channel(server) as channel:
            stub = model_service_pb2_grpc.ModelServiceStub(channel)
            response = stub.GetModelStatus(request, timeout=timeout)
    except grpc.RpcError as error:
        message = f"{server} answered {error.code().name}: {error.details()}"
        raise ConnectionError(message) from error
    state_name = get_model_status_pb2.ModelVersionStatus.State.Name
    return {version.version: state_name(version.state) for version in response.model_version_status}


def parser() -> argparse.ArgumentParser:
    """The options of this command."""
    options = argparse.ArgumentParser(description="Checks whether a model is ready.")
    options.add_argument(
        "--server", help="host:port; default: localhost:8501, or localhost:8500 with --grpc"
    )
    options.add_argument("--model", required=True, help="name of the model on the server")
    options.add_argument("--grpc", action="store_true", help="use gRPC instead of REST")
    options.add_argument("--wait", type=float, default=0.0, help="seconds to keep trying")
    return options


def main() -> None:
    """Asks once per second, until a version is available or the time is over."""
    options = parser().parse_args()
    server = options.server or ("localhost:8500" if options.grpc else "localhost:8501")
    states_of = states_over_grpc if options.grpc else states_over_rest
    end = time.monotonic() + options.wait
    while True:
        try:
            states = states_of(server, options.model)
            answer = "".join(f"version {v}: {state}\n" for v, state in sorted(states.items()))
        except ConnectionError as error:
            states, answer = {}, f"{error}\n"
        if "AVAILABLE" in states.values() or time.monotonic() >= end:
            break
        time.sleep(1)
    print(answer, end="")
    sys.exit(0 if "AVAILABLE" in states.values() else 1)


if __name__ == "__main__":
    main()
