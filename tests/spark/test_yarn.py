"""Queries on a real YARN, in cluster and client mode, with a packed Python environment and checkpoints on HDFS."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.jobs.submitted_count import GATE
from tests.support.checkpoints import CheckpointJudge
from tests.support.feeds import at
from tests.support.hdfs import Hdfs
from tests.support.jobs import with_duplicates
from tests.support.packed_environment import pack
from tests.support.processes import kill
from tests.support.provider import ProviderUnderTest
from tests.support.submitted import SubmittedQuery
from tests.support.waiting import eventually
from tests.support.yarn import NODE_CONTAINERS, PATIENCE, POLL, Yarn

BATCHES, GATED_BATCH = 6, 3

NO_WORD_OF_THE_RESOURCE_MANAGER = {
    "spark.yarn.scheduler.heartbeat.interval-ms": "3600000",
    "spark.yarn.scheduler.reporterThread.maxFailures": "1000000",
    # It keeps the executor that was suspended with it, and soon gives up those whose connection has ended.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "3600000",
    "spark.rpc.askTimeout": "20s",
}
"""Settings of a driver that does not stop when the resource manager tells it that its attempt is over, as if the
network between them were down. Spark otherwise ends it within seconds of its waking up."""


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory, hdfs: Hdfs, provider: ProviderUnderTest) -> Iterator[Yarn]:
    if not provider.is_ours:
        pytest.skip("the command line is that of this provider")
    with Yarn(tmp_path_factory.mktemp("yarn"), hdfs.url) as yarn:
        yield yarn


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, hdfs: Hdfs) -> str:
    """URL of the packed environment, which each node manager copies once because all users may read it."""
    url = f"{hdfs.url}/environments/environment.tar.gz"
    hdfs.upload(pack(tmp_path_factory.mktemp("packed")), url)
    return url


@pytest.fixture
def query(
    yarn: Yarn, hdfs: Hdfs, archive: str, judge: CheckpointJudge, tmp_path: Path, rng: random.Random
) -> Iterator[SubmittedQuery]:
    yarn.start_nodes()
    query = SubmittedQuery(yarn, hdfs, archive, judge, tmp_path)
    batches = with_duplicates(rng, BATCHES)
    batches[GATED_BATCH].append((at(0), GATE, 1))
    for batch in batches:
        query.feed.drop(batch)
    yield query
    for submitted in query.submitted:
        submitted.close()


def await_(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    """Waits for something to happen in the cluster."""
    eventually(condition, PATIENCE, what, poll=POLL)


@pytest.mark.cluster
def test_an_application_master_killed_in_a_batch(query: SubmittedQuery, yarn: Yarn) -> None:
    """SIGKILL of the driver's JVM: YARN starts the next attempt, which continues with no row lost or counted twice."""
    application = query.submit()
    application.await_gate(1)
    query.paths.open(2)
    kill(application.application_master(1).jvm())
    application.await_success()
    assert [attempt["id"] for attempt in yarn.attempts(application.id)] == [1, 2]
    assert query.paths.attempts() == [1] * GATED_BATCH + [2] * 3
    first, second = query.judge()
    assert (first["generation"], second["generation"]) == (1, 2)
    assert first["owner"] != second["owner"]
    await_(lambda: not yarn.containers(application.id), lambda: f"containers left: {yarn.containers()}")


@pytest.mark.cluster
def test_an_attempt_that_outlives_its_node_manager_is_fenced(query: SubmittedQuery, yarn: Yarn) -> None:
    """A frozen machine: the node manager is gone, the driver only stopped. The next attempt ends the work; when the
    first one continues, with an executor of its own, its batch completes no checkpoint and nothing reaches the sink."""
    application = query.submit(executors=3, settings=NO_WORD_OF_THE_RESOURCE_MANAGER)
    application.await_gate(1)
    first = application.application_master(1)
    alive = [container for container in yarn.containers(application.id) if container.node == first.node]
    assert len(alive) == NODE_CONTAINERS, f"the driver has no executor on its node: {alive}"
    for container in alive:
        container.send(signal.SIGSTOP)
    query.paths.open(2)
    yarn.kill_node(first.node, containers=False)
    application.await_success()
    written = {file.name: file.read_bytes() for file in query.paths.out.iterdir()}
    assert query.paths.attempts() == [1] * GATED_BATCH + [2] * 3

    query.paths.open(1)
    for container in alive:
        container.send(signal.SIGCONT)
    await_(lambda: "FencedError" in yarn.log(application.id, 1), application.describe)
    await_(lambda: not first.is_running(), application.describe)
    assert {file.name: file.read_bytes() for file in query.paths.out.iterdir()} == written
    # A fenced driver deletes nothing: its last files stay until the next claim.
    assert [claim["generation"] for claim in query.judge(orphans=True)] == [1, 2]


@pytest.mark.cluster
def test_a_node_and_the_application_master_lost_in_client_mode(query: SubmittedQuery, yarn: Yarn) -> None:
    """The driver runs outside: it keeps its claim when YARN replaces an executor's node and its application master."""
    application = query.submit("client", executors=3)
    application.await_gate(0)
    master = application.application_master(1)
    yarn.kill_node(1 - master.node, containers=True)
    kill(master.jvm())
    query.paths.open(0)
    application.await_success()
    assert len(yarn.attempts(application.id)) == 2
    assert [claim["generation"] for claim in query.judge()] == [1]
