"""ZooKeeper servers and nodes for tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.completed.zookeeper_place import Place
from tests.support.zookeeper import ZooKeeperServer


@pytest.fixture
def place(zookeeper: ZooKeeperServer, tmp_path: Path) -> Iterator[Place]:
    place = Place(zookeeper, tmp_path)
    yield place
    place.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """Server of a single test, which may stop it."""
    with ZooKeeperServer(tmp_path / "server") as server:
        yield server


@pytest.fixture
def own_place(own_server: ZooKeeperServer, tmp_path: Path) -> Iterator[Place]:
    place = Place(own_server, tmp_path / "location")
    yield place
    place.close()
