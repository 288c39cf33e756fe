"""Servers that tests of engines share: each is started once, where it is asked for first."""

from collections.abc import Iterator

import pytest
from tests.engines import postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgres_server.Server]:
    pytest.importorskip("adbc_driver_postgresql")
    if postgres_server.programs() is None:
        pytest.skip("no PostgreSQL server is installed")
    with postgres_server.server() as server:
        yield server
