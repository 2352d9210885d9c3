"""Applications submitted to YARN with `spark-submit`, and their results."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_ckpt.jars import jar_path
from tests.support.checkpoints import CheckpointJudge, log_records
from tests.support.class_archive import QUICK_START
from tests.support.events import SCHEMA
from tests.support.feeds import Feed
from tests.support.gateway import PYSPARK_JARS
from tests.support.hdfs import Hdfs
from tests.support.jobs import running_counts
from tests.support.processes import JOBS, descendants, kill
from tests.support.provider import CKPT_PREFIX, REPOSITORY
from tests.support.sinks import Rows, assert_same_rows
from tests.support.waiting import eventually
from tests.support.yarn import PATIENCE, POLL, Container, Yarn

SPARK_SUBMIT = PYSPARK_JARS.parent / "bin" / "spark-submit"
PROPERTIES = REPOSITORY / "conf" / "spark-ckpt.properties"
ENVIRONMENT_PYTHON = "./environment/bin/python"

_MEMORY = {"memory": "512m", "memoryOverhead": "512m"}

SMALL = {
    **{f"spark.{role}.{name}": value for role in ("driver", "executor") for name, value in _MEMORY.items()},
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.yarn.am.memory": "512m",
    "spark.yarn.am.memoryOverhead": "512m",
    "spark.yarn.am.extraJavaOptions": QUICK_START,
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.session.timeZone": "UTC",
    "spark.locality.wait": "0",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
    "spark.yarn.jars": f"local:{PYSPARK_JARS}/*",
    "spark.yarn.maxAppAttempts": "5",
    # Loopback addresses only; a real cluster needs none of these.
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
}
"""Settings for small containers on one machine."""


@dataclass(frozen=True)
class Paths:
    """Files of a submitted program.

    Args:
        folder: folder with the program's input, output and gates.
        location: checkpoint location.
    """

    folder: Path
    location: str

    @property
    def out(self) -> Path:
        """Results by batch."""
        return self.folder / "out"

    def open(self, attempt: int) -> None:
        """Opens the gate of an attempt."""
        self.gates.joinpath(f"open-{attempt}").touch()

    @property
    def gates(self) -> Path:
        """Gates by attempt."""
        return self.folder / "gates"

    def arguments(self) -> list[str]:
        """Arguments of the program."""
        feed = (self.folder / "feeds" / "events").as_uri()
        return ["--feed", feed, "--location", self.location, "--out", str(self.out), "--gates", str(self.gates)]

    def has_more_than(self, batches: int) -> bool:
        """True once the output of more batches is there."""
        return len(list(self.out.glob("*.json"))) > batches

    def attempts(self) -> list[int]:
        """The attempt that wrote each batch, in the order of batches."""
        return [int(json.loads(file.read_text())["attempt"]) for file in sorted(self.out.glob("*.json"))]

    def rows(self) -> Rows:
        """Final rows: the newest of each key."""
        latest: dict[object, tuple[object, ...]] = {}
        for file in sorted(self.out.glob("*.json")):
            latest |= {row[0]: tuple(row) for row in json.loads(file.read_text())["rows"]}
        return list(latest.values())


class Submitted:
    """One `spark-submit` of the running count, with the command line of docs/yarn.md."""

    def __init__(
        self, yarn: Yarn, paths: Paths, archive: str, mode: str, settings: Mapping[str, str], executors: int
    ) -> None:
        self.yarn = yarn
        self.paths = paths
        self.name = f"count-{paths.folder.name}"
        paths.out.mkdir(parents=True, exist_ok=True)
        paths.gates.mkdir(exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}
        environment |= {"HADOOP_CONF_DIR": str(yarn.conf_dir), "SPARK_LOCAL_IP": "127.0.0.1"}
        if mode == "cluster":
            settings = {"spark.yarn.appMasterEnv.PYSPARK_PYTHON": ENVIRONMENT_PYTHON, **settings}
        else:
            environment |= {"PYSPARK_DRIVER_PYTHON": os.environ["PYSPARK_PYTHON"], "PYSPARK_PYTHON": ENVIRONMENT_PYTHON}
        command = [str(SPARK_SUBMIT), "--master", "yarn", "--deploy-mode", mode, "--name", self.name]
        command += ["--properties-file", str(PROPERTIES), "--jars", str(jar_path())]
        command += ["--archives", f"{archive}#environment", "--num-executors", str(executors)]
        for key, value in {**SMALL, **settings}.items():
            command += ["--conf", f"{key}={value}"]
        self.log = paths.folder / f"submit-{len(list(paths.folder.glob('submit-*.log')))}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, str(JOBS / "submitted_count.py"), *paths.arguments()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=paths.folder,
                start_new_session=True,
            )

    @property
    def id(self) -> str:
        """Id of the application; waits for it."""
        return str(eventually(self._application, PATIENCE, self.describe, poll=POLL)["id"])

    def _application(self) -> dict[str, object]:
        assert self.process.poll() is None or self.yarn.application(self.name), self.describe()
        return self.yarn.application(self.name)

    def await_gate(self, attempt: int) -> None:
        """Waits until a task of the attempt waits at the gate: its batch has one operator acknowledged."""
        waiting = self.paths.gates / f"waiting-{attempt}"

        def reached() -> bool:
            assert self.process.poll() is None, self.describe()
            return waiting.exists()

        eventually(reached, PATIENCE, self.describe, poll=POLL)

    def application_master(self, attempt: int) -> Container:
        """The running application master of an attempt."""
        return self.yarn.application_master(self.id, attempt)

    def await_success(self) -> None:
        """Waits for the end of the application; fails unless it succeeded."""
        eventually(lambda: self.process.poll() is not None, PATIENCE, self.describe, poll=POLL)
        assert self.process.returncode == 0, self.describe()
        assert self.yarn.application(self.name)["finalStatus"] == "SUCCEEDED", self.describe()

    def describe(self) -> str:
        """State and output so far, for the message of a failed test."""
        application = self.yarn.application(self.name)
        output = self.log.read_text(errors="replace")[-3000:]
        containers = self.yarn.log(str(application["id"]))[-12000:] if application else ""
        return f"{self.name}: {application}\n{output}\n{containers}"

    def close(self) -> None:
        """Ends what is left of the submission; the cluster ends its containers."""
        for pid in [*descendants(self.process.pid), self.process.pid]:
            kill(pid)
        self.process.wait()


class SubmittedQuery:
    """The running count of one test: its input, its submissions and the judgement of its result.

    Args:
        yarn: the cluster.
        hdfs: its file system, with the checkpoint location.
        archive: URL of the packed environment.
        judge: judge of the checkpoint location.
        folder: folder for input, output and logs.
    """

    def __init__(self, yarn: Yarn, hdfs: Hdfs, archive: str, judge: CheckpointJudge, folder: Path) -> None:
        self.paths = Paths(folder, hdfs.new_location())
        self.feed = Feed(folder / "feeds" / "events", SCHEMA)
        self._yarn, self._hdfs, self._archive, self._judge = yarn, hdfs, archive, judge
        self.submitted: list[Submitted] = []

    def submit(self, mode: str = "cluster", executors: int = 2, settings: Mapping[str, str] | None = None) -> Submitted:
        """Submits the query, with `spark-submit` running in the background."""
        conf = {f"{CKPT_PREFIX}retained": "100", **(settings or {})}
        application = Submitted(self._yarn, self.paths, self._archive, mode, conf, executors)
        self.submitted.append(application)
        return application

    def judge(self, *, orphans: bool = False) -> list[dict[str, Any]]:
        """Asserts that the result is the batch answer and the location in order; returns the claims."""
        assert_same_rows(self.paths.rows(), running_counts(self.feed.rows()))
        local = self.paths.folder / f"checkpoint-{len(list(self.paths.folder.glob('checkpoint-*')))}"
        self._hdfs.copy(self.paths.location, local)
        self._judge.check(local, orphans=orphans)
        return [record for record in log_records(local) if record["kind"] == "claim"]
