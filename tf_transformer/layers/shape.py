"""The type of a tensor's shape."""

from typing import Any

Shape = tuple[Any, ...]
"""Integers; None stands for a size that only a running graph knows."""
