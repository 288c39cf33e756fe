"""The servers that run queries are those of the engines."""

from tests.engines.conftest import postgres

__all__ = ["postgres"]
