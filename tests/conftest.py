"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.class_archive import start_drivers_quickly
from tests.support.examples import OF_THE_MACHINE
from tests.support.hdfs import Hdfs
from tests.support.kafka import KafkaBroker
from tests.support.object_stores import azure, azure_server, gcs, gcs_server
from tests.support.s3 import patient_clients, s3, s3_endpoint, s3_environment
from tests.support.s3_servers import s3_addresses, store
from tests.support.s3a import s3a
from tests.support.spark_version import DEFAULT, HAS_KAFKA
from tests.support.uncaught import no_uncaught_errors, uncaught_errors
from tests.support.zookeeper import ZooKeeperServer

__all__ = [
    "azure",
    "azure_server",
    "gcs",
    "gcs_server",
    "no_uncaught_errors",
    "patient_clients",
    "s3",
    "s3_addresses",
    "s3_endpoint",
    "s3_environment",
    "s3a",
    "store",
    "uncaught_errors",
]

SEED_VARIABLE = "SPARK_CKPT_TEST_SEED"
FRESH = "fresh"
"""Value of `SPARK_CKPT_TEST_SEED` that selects new input for each run."""

HERE = Path(__file__).parent

LARGE = ("spark/", "soak/cluster/", "simulation/", "versions/", "faults/", "test_session.py")
"""Folders and modules whose tests take minutes, in the order in which they begin."""

# No deadline: on a busy machine, the duration of an example proves nothing.
settings.register_profile("same examples", deadline=None, suppress_health_check=OF_THE_MACHINE, derandomize=True)
settings.register_profile("fresh examples", deadline=None, suppress_health_check=OF_THE_MACHINE, print_blob=True)
start_drivers_quickly()
settings.load_profile("fresh examples" if os.environ.get(SEED_VARIABLE) == FRESH else "same examples")


def _rank(path: str) -> int:
    return next((rank for rank, large in enumerate(LARGE) if path.startswith(large)), len(LARGE))


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups tests by file for `pytest -n 3 --dist loadgroup`, except for those in `tests/spark`.

    Large groups begin first: one that begins last would run alone at the end.
    """
    for item in items:
        path = item.path.relative_to(HERE)
        if path.parts[0] != "spark":
            item.add_marker(pytest.mark.xdist_group(path.as_posix()))
    items.sort(key=lambda item: _rank(item.path.relative_to(HERE).as_posix()))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Seed derived from the test's id, constant across runs, so a failure points to the last change, not to chance.

    With SPARK_CKPT_TEST_SEED=fresh it differs in each run. It is printed: set SPARK_CKPT_TEST_SEED to it to reproduce
    a failure.
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
    """Random number generator with the test's seed."""
    return random.Random(seed)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """Server shared by all tests that leave it running; each test works below its own node."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """HDFS cluster shared by all tests; each test works in its own directory."""
    with Hdfs(tmp_path_factory.mktemp("hdfs")) as hdfs:
        yield hdfs


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Kafka broker shared by all tests; each test has its own topics, and leaves the broker running."""
    if not HAS_KAFKA:
        pytest.skip(f"the tests have Kafka's connector for Spark {DEFAULT}, which runs on later ones, too")
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
