"""research/long_sequences: costs of tiny models, exponents and predictions by hand."""

import json

import pytest

from benchmarks.harness.processes import ProcessError
from research import long_sequences

TINY = {"window": 4, "layers": 1, "d_model": 32, "limit_gib": 8}


@pytest.mark.parametrize(
    ("attention", "floats"),
    [("full", 2 * 32 * 40), ("local", 2 * 32 * 4), ("linear", 32 * 32 + 32)],
)
def test_costs_of_a_length(attention, floats, monkeypatch):
    """The cache by hand: keys and values of all 40 tokens, of 4, or their sums, of 4 bytes each."""
    monkeypatch.setattr(long_sequences.resource, "setrlimit", lambda *limit: None)
    found = long_sequences.measured(attention, 40, **TINY)
    rows = {"full": 40, "local": 4, "linear": 0}[attention]  # with a position and a bit
    assert found["cache_mb"] == round((4 * floats + 5 * rows) / 2**20, 3)
    assert min(found["seconds"], found["step_ms"]) > 0


def test_a_pattern_stops_where_its_memory_is_beyond_the_limit(monkeypatch, tmp_path):
    """Memory (length / 1024)² MB: 4096 MB at 65536, and 16384 MB at 131072 is predicted."""
    asked = []

    def measured(place, length, **work):
        asked.append(length)
        return {"memory_mb": (length / 1024) ** 2, "seconds": length, "step_ms": 1, "cache_mb": 2}

    monkeypatch.setattr(long_sequences, "call", measured)
    output = tmp_path / "x.json"
    lengths = "32768,65536,131072,262144"
    long_sequences.main(attentions="full", lengths=lengths, output=str(output))
    result = json.loads(output.read_text())
    assert asked == [32768, 65536]
    last = result["measurements"][-1]
    assert (last["length"], last["fits"], last["memory_mb"]) == (131072, False, 16384)
    assert result["summary"]["exponents"] == [
        {"attention": "full", "memory_mb": 2.0, "seconds": 1.0, "step_ms": 0.0, "cache_mb": 0.0}
    ]


def test_a_process_without_memory_is_a_row_and_another_error_is_raised(monkeypatch):
    def failed(error):
        def call(place, **work):
            raise ProcessError(error)

        monkeypatch.setattr(long_sequences, "call", call)
        return long_sequences._row([], "full", 512, {}, 8)

    assert not failed("ResourceExhaustedError: OOM when allocating tensor")["fits"]
    with pytest.raises(ProcessError, match="KeyError"):
        failed("KeyError: 5")
