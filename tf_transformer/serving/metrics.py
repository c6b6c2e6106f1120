"""Counts requests and their texts, for Prometheus."""

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Metrics:
    """The metrics of a server. `queued` gives the number of lines that wait."""

    def __init__(self, queued: Callable[[], float]):
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "tf_transformer_requests", "Answers.", ["api", "status"], registry=registry
        )
        self._seconds = Histogram(
            "tf_transformer_request_seconds", "Time to an answer.", ["api"], registry=registry
        )
        self.texts = Counter("tf_transformer_texts", "Texts in requests.", registry=registry)
        self.characters = Counter(
            "tf_transformer_characters", "Characters of these texts.", registry=registry
        )
        Gauge("tf_transformer_queued_lines", "Lines that wait.", registry=registry).set_function(
            queued
        )
        ProcessCollector(registry=registry)

    def page(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def measured(self, app: ASGIApp, api: str) -> ASGIApp:
        """An application whose answers are counted under the name of an API."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_counted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._requests.labels(api, message["status"]).inc()
                await send(message)

            with self._seconds.labels(api).time():
                await app(scope, receive, send_counted)

        return counted
