"""The fixtures of tests/, with its two logical devices."""

from conftest import run

__all__ = ["run"]
