"""Fixtures that all tests may use."""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.examples import OF_THE_MACHINE
from tests.support.hdfs import Hdfs
from tests.support.s3 import patient_clients, s3, s3_endpoint, s3_environment
from tests.support.zookeeper import ZooKeeperServer

__all__ = ["patient_clients", "s3", "s3_endpoint", "s3_environment"]

SEED_VARIABLE = "SPARK_CKPT_TEST_SEED"
FRESH = "fresh"
"""The value of the variable that asks for other input in each run."""

HERE = Path(__file__).parent

# A machine may have other things to do while an example runs: how long it took says nothing.
settings.register_profile("same examples", deadline=None, suppress_health_check=OF_THE_MACHINE, derandomize=True)
settings.register_profile("fresh examples", deadline=None, suppress_health_check=OF_THE_MACHINE, print_blob=True)
settings.load_profile("fresh examples" if os.environ.get(SEED_VARIABLE) == FRESH else "same examples")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Processes that share the tests (`pytest -n 2 --dist loadgroup`) take a file at a time, but for those of Spark."""
    for item in items:
        path = item.path.relative_to(HERE)
        if path.parts[0] != "spark":
            item.add_marker(pytest.mark.xdist_group(path.as_posix()))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A number of the test's own, the same in each run: a run that fails by chance says nothing of the last change.

    With SPARK_CKPT_TEST_SEED=fresh another one in each run, printed so that a failure can be run again with
    SPARK_CKPT_TEST_SEED set to it.
    """
    given = os.environ.get(SEED_VARIABLE)
    if given == FRESH:
        chosen = random.SystemRandom().randrange(2**32)
    else:
        chosen = int(given) if given else zlib.crc32(request.node.nodeid.encode())
    print(f"{SEED_VARIABLE}={chosen}")
    return chosen


@pytest.fixture
def rng(seed: int) -> random.Random:
    """Random numbers from the seed."""
    return random.Random(seed)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One server for all tests that leave it running; each works below a node of its own."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """One HDFS for all tests; each works in a directory of its own."""
    with Hdfs(tmp_path_factory.mktemp("hdfs")) as hdfs:
        yield hdfs
