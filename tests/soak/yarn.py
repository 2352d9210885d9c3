"""A query on YARN under random kills. Run it with `make soak-yarn`."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.support.checkpoints import CheckpointJudge
from tests.support.hdfs import Hdfs
from tests.support.jobs import with_duplicates
from tests.support.packed_environment import pack
from tests.support.processes import BRIDGE, command_line, kill
from tests.support.provider import CKPT, REPOSITORY
from tests.support.session import use_this_python
from tests.support.submitted import Submitted, SubmittedQuery
from tests.support.uncaught import all_caught
from tests.support.waiting import eventually
from tests.support.yarn import PATIENCE, POLL, Container, Yarn

BATCHES_PER_KILL = 3
MAX_PAUSE_SECONDS = 2.0
"""Longest time between the end of a batch and a kill."""

UNLIMITED = {"spark.yarn.maxAppAttempts": "1000", "spark.executor.maxNumFailures": "1000"}
"""Settings of an application that survives any number of kills."""


class Killer:
    """Kills parts of a running application."""

    def __init__(self, yarn: Yarn, application: Submitted, rng: random.Random) -> None:
        self._yarn = yarn
        self._application = application
        self._rng = rng
        self.victims: dict[str, Callable[[], bool]] = {
            "application master": self._application_master,
            "coordinator": self._coordinator,
            "executor": self._executor,
            "node": self._node,
        }

    def kill(self) -> str:
        """Kills a random victim and returns its kind; waits for one if there is none."""
        kind = self._rng.choice(list(self.victims))
        what = lambda: f"a victim appears: {kind}\n{self._application.describe()}"  # noqa: E731
        eventually(self.victims[kind], PATIENCE, what, poll=POLL)
        return kind

    def _containers(self) -> list[Container]:
        """Containers of the newest attempt, the application master first."""
        containers = self._yarn.containers(self._application.id)
        newest = max((container.attempt for container in containers), default=0)
        return [container for container in containers if container.attempt == newest]

    def _driver(self) -> Container | None:
        return next((container for container in self._containers() if container.is_application_master), None)

    def _application_master(self) -> bool:
        driver = self._driver()
        if driver is not None:
            driver.send(signal.SIGKILL)
        return driver is not None

    def _coordinator(self) -> bool:
        driver = self._driver()
        found = [pid for pid in driver.pids if BRIDGE in command_line(pid)] if driver is not None else []
        for pid in found:
            kill(pid)
        return bool(found)

    def _executor(self) -> bool:
        executors = [container for container in self._containers() if not container.is_application_master]
        if executors:
            self._rng.choice(executors).send(signal.SIGKILL)
        return bool(executors)

    def _node(self) -> bool:
        running = [number for number, node in enumerate(self._yarn.nodes) if node.poll() is None]
        self._yarn.kill_node(self._rng.choice(running), containers=True)
        self._yarn.start_nodes()
        return True


def main() -> int:
    """Runs a query on YARN under random kills, and checks every row and the checkpoint location."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.yarn", description=main.__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave no process behind
    use_this_python()
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="soak-", dir=_build_folder()))
    kills = _run(work, arguments.kills, random.Random(arguments.seed))
    shutil.rmtree(work)
    seconds = time.monotonic() - began
    print(f"{kills.total()} kills {dict(kills)}, {seconds:.0f} s, seed {arguments.seed}: equal, to the row")
    return 0


def _build_folder() -> Path:
    folder = REPOSITORY / "build"
    folder.mkdir(exist_ok=True)
    return folder


def _run(work: Path, count: int, rng: random.Random) -> Counter[str]:
    """Kills by victim. Raises AssertionError if the result or the location is not in order."""
    for name in ("hdfs", "yarn", "packed", "query", "metadata"):
        (work / name).mkdir()
    kills: Counter[str] = Counter()
    with all_caught(work / "uncaught"), Hdfs(work / "hdfs") as hdfs, Yarn(work / "yarn", hdfs.url) as yarn:
        archive = f"{hdfs.url}/environments/environment.tar.gz"
        hdfs.upload(pack(work / "packed"), archive)
        judge = CheckpointJudge(CKPT, work / "metadata")
        query = SubmittedQuery(yarn, hdfs, archive, judge, work / "query")
        for batch in with_duplicates(rng, BATCHES_PER_KILL * (count + 1)):
            query.feed.drop(batch)
        application = query.submit(settings=UNLIMITED)
        killer = Killer(yarn, application, rng)
        while kills.total() < count:
            done = len(query.paths.attempts())
            eventually(partial(query.paths.has_more_than, done), PATIENCE, application.describe, poll=POLL)
            time.sleep(rng.uniform(0, MAX_PAUSE_SECONDS))
            kills[killer.kill()] += 1
            print(f"{kills.total()}: after batch {done}, attempt {len(yarn.attempts(application.id))}", flush=True)
        application.await_success()
        query.judge(orphans=True)
    return kills


if __name__ == "__main__":
    sys.exit(main())
