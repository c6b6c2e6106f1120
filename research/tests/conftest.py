"""The fixtures of tests/, with its two logical devices."""

from conftest import made_once, run

__all__ = ["made_once", "run"]
