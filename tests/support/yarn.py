"""A real YARN on loopback addresses: Hadoop's MiniYARNCluster as the resource manager, and node managers as JVMs of
their own, so that they can be killed.

Nothing waits for YARN's timeouts of minutes: `Yarn.kill_node` tells the resource manager that a node is lost, as its
own monitor does after the interval without a heartbeat.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any
from xml.sax.saxutils import escape

import pytest

from benchmarks.object_store import hadoop_version
from tests.support import hdfs
from tests.support.gateway import JVM_OPTIONS, GatewayJvm, class_path
from tests.support.maven import build
from tests.support.processes import command_line, kill
from tests.support.provider import REPOSITORY
from tests.support.waiting import eventually

MODULE = REPOSITORY / "jvm-shim" / "yarn-jars"
JARS = "jars"
PATIENCE = 600.0
POLL = 0.25
"""Pause between two looks at the cluster, in seconds: each takes a request or a walk over all processes."""

APPLICATION_MASTERS = ("yarn.ApplicationMaster", "yarn.ExecutorLauncher")
"""Main classes of Spark's application master, in cluster and client mode."""

CONTAINER_MB = 1024
"""Memory of each container, in MiB."""

NODE_CONTAINERS = 2
"""Containers per node manager."""

_NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_CONTAINER = re.compile(r"container_(?:e\d+_)?(\d+_\d+)_(\d+)_(\d+)$")
_CLIENT_SETTINGS = (
    "yarn.resourcemanager.address",
    "yarn.resourcemanager.scheduler.address",
    "yarn.resourcemanager.resource-tracker.address",
    "yarn.resourcemanager.webapp.address",
)

_SCHEDULER = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}
_RESOURCE_MANAGER = {
    "yarn.resourcemanager.hostname": "127.0.0.1",
    "yarn.scheduler.minimum-allocation-mb": "256",
    "yarn.resourcemanager.am.max-attempts": "1000",
}
_NODE = {
    "yarn.nodemanager.resource.memory-mb": str(CONTAINER_MB * NODE_CONTAINERS),
    "yarn.nodemanager.resource.cpu-vcores": "8",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.enable": "false",
}


@dataclass(frozen=True, slots=True)
class Container:
    """A running container.

    Args:
        application: id of its application.
        attempt: attempt of the application that it belongs to, from 1.
        number: its number in the attempt; the application master has 1.
        node: number of its node manager.
        pids: the shell that launched it, the JVM, Python.
    """

    application: str
    attempt: int
    number: int
    node: int
    pids: tuple[int, ...]

    @property
    def is_application_master(self) -> bool:
        """True for the container of the application master."""
        return any(name in command_line(pid) for pid in self.pids for name in APPLICATION_MASTERS)

    def jvm(self) -> int:
        """Pid of the JVM; fails if it has ended."""
        found = [pid for pid in self.pids if Path(f"/proc/{pid}/comm").read_text().strip() == "java"]
        assert len(found) == 1, f"no JVM in {self}"
        return found[0]

    def is_running(self) -> bool:
        """True while one of the processes runs."""
        return any(command_line(pid) for pid in self.pids)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to each process that still runs."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class Yarn:
    """Resource manager and node managers. Skips the test without a JDK or Maven, and with Hadoop 3.4.

    Args:
        directory: directory for all files.
        file_system: URL of the default file system.
        nodes: number of node managers.
    """

    def __init__(self, directory: Path, file_system: str, nodes: int = 2) -> None:
        if hadoop_version().startswith("3.4."):
            # It needs JUnit 4; and its shaded Jersey makes JSON without JAXB, so without the ids of nodes.
            pytest.skip(f"the web services of Hadoop {hadoop_version()} in MiniYARNCluster leave out the ids of nodes")
        self.directory = directory
        self._count = nodes
        self.nodes: list[subprocess.Popen[bytes]] = []
        self._ports: list[int] = []
        self.conf_dir = directory / "conf"
        """The directory for HADOOP_CONF_DIR."""
        self._core = {"fs.defaultFS": file_system}
        _write_conf(directory / "rm-conf", "core-site", self._core)
        _write_conf(directory / "rm-conf", "yarn-site", _RESOURCE_MANAGER)
        _write_conf(directory / "rm-conf", "capacity-scheduler", _SCHEDULER)
        self._jars = [build(MODULE, JARS) / "*", hdfs.cluster_jars() / "*"]
        self._gateway = GatewayJvm([directory / "rm-conf", *self._jars], directory, directory / "resource-manager.log")
        try:
            self._start_resource_manager()
            self.start_nodes()
        except BaseException:
            self.close()
            raise

    def _start_resource_manager(self) -> None:
        classes = self._gateway.classes
        self._cluster = classes.org.apache.hadoop.yarn.server.MiniYARNCluster("yarn", 1, 0, 1, 1)
        self._cluster.init(classes.org.apache.hadoop.yarn.conf.YarnConfiguration())
        self._cluster.start()
        conf = self._cluster.getConfig()
        self._addresses = {key: str(conf.get(key)) for key in _CLIENT_SETTINGS}
        _write_conf(self.conf_dir, "core-site", self._core)
        _write_conf(self.conf_dir, "yarn-site", self._addresses)

    def start_nodes(self) -> None:
        """Starts node managers, as many as are missing, and waits until they have registered."""
        first, count = len(self.nodes), self._count - sum(node.poll() is None for node in self.nodes)
        for number in range(first, first + count):
            self._start_node(number)
        for number in range(first, first + count):
            eventually(partial(self._has_registered, number), PATIENCE, f"node manager {number} registers", poll=POLL)

    def _start_node(self, number: int) -> None:
        directory = self.directory / f"node-{number}"
        addresses = ("address", "localizer.address", "webapp.address", "collector-service.address")
        host = f"127.0.0.{number + 1}"
        own = {f"yarn.nodemanager.{name}": f"{host}:0" for name in addresses}
        with socket.create_server((host, 0)) as free:  # a fixed port, by which the node's id tells which node it is
            self._ports.append(free.getsockname()[1])
        own |= {
            "yarn.nodemanager.address": f"{host}:{self._ports[number]}",
            "yarn.nodemanager.hostname": host,
            "yarn.nodemanager.bind-host": host,
            "yarn.nodemanager.local-dirs": str(directory / "local"),
            "yarn.nodemanager.log-dirs": str(directory / "logs"),
        }
        _write_conf(directory / "conf", "core-site", self._core)
        _write_conf(directory / "conf", "yarn-site", _NODE | self._addresses | own)
        java_home = str(self._gateway.classes.java.lang.System.getProperty("java.home"))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}
        with (directory / "node-manager.log").open("wb") as log:
            node = subprocess.Popen(
                ["java", *JVM_OPTIONS, "-cp", class_path([directory / "conf", *self._jars]), _NODE_MANAGER],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory,
                env=environment | {"JAVA_HOME": java_home},
                start_new_session=True,
            )
        self.nodes.append(node)

    def _has_registered(self, number: int) -> bool:
        text = (self.directory / f"node-{number}" / "node-manager.log").read_text(errors="replace")
        assert self.nodes[number].poll() is None, f"node manager {number} has ended:\n{text[-6000:]}"
        return self._ports[number] in self._running_nodes()

    def kill_node(self, node: int, *, containers: bool) -> None:
        """Kills a node manager with SIGKILL, optionally with its containers, and makes the resource manager notice.

        Without `containers` they live on, as on a machine that has lost its network.
        """
        node_id = self._running_nodes().get(self._ports[node])
        victims = [container for container in self.containers() if container.node == node]
        self.nodes[node].kill()
        self.nodes[node].wait()
        if containers:
            for container in victims:
                container.send(signal.SIGKILL)
        if node_id is not None:  # else the resource manager has noticed by itself
            self._expire(node, node_id)

    def _expire(self, node: int, node_id: str) -> None:
        """Makes the resource manager consider a node lost, with the event of its monitor of heartbeats."""
        nodes = self._gateway.classes.org.apache.hadoop.yarn.server.resourcemanager.rmnode
        parsed = self._gateway.classes.org.apache.hadoop.yarn.api.records.NodeId.fromString(node_id)
        expired = nodes.RMNodeEvent(parsed, nodes.RMNodeEventType.EXPIRE)
        self._rm_context().getDispatcher().getEventHandler().handle(expired)
        eventually(
            lambda: self._ports[node] not in self._running_nodes(), PATIENCE, f"node {node} counts as lost", poll=POLL
        )

    def containers(self, application: str | None = None) -> list[Container]:
        """All running containers, of one application or of all, those of dead node managers included."""
        found: dict[tuple[str, int, int, int], list[int]] = {}
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                directory = Path(os.readlink(process / "cwd"))
                ended = (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                continue
            match = _CONTAINER.match(directory.name)
            if ended or match is None or self.directory not in directory.parents:
                continue
            node = int(directory.relative_to(self.directory).parts[0].removeprefix("node-"))
            key = (f"application_{match[1]}", int(match[2]), int(match[3]), node)
            found.setdefault(key, []).append(int(process.name))
        containers = [Container(*key, pids=tuple(sorted(pids))) for key, pids in sorted(found.items())]
        return [each for each in containers if application in (None, each.application)]

    def application_master(self, application: str, attempt: int) -> Container:
        """The running application master of an attempt."""
        found = [
            container
            for container in self.containers(application)
            if container.attempt == attempt and container.is_application_master
        ]
        assert len(found) == 1, f"attempt {attempt} of {application} has no application master"
        return found[0]

    def application(self, name: str) -> dict[str, Any]:
        """The newest application with this name, as the resource manager's web service describes it."""
        applications = (self._get("apps")["apps"] or {"app": []})["app"]
        found = sorted((each for each in applications if each["name"] == name), key=lambda each: str(each["id"]))
        return dict(found[-1]) if found else {}

    def attempts(self, application: str) -> list[dict[str, Any]]:
        """Attempts of an application, as the resource manager's web service describes them."""
        return list(self._get(f"apps/{application}/appattempts")["appAttempts"]["appAttempt"])

    def log(self, application: str, attempt: int | None = None) -> str:
        """End of the output of all containers of an application, or of one attempt."""
        texts = []
        for file in sorted(self.directory.glob(f"node-*/logs/{application}/container_*/*")):
            match = _CONTAINER.match(file.parent.name)
            if match is not None and attempt in (None, int(match[2])) and file.is_file():
                texts.append(f"--- {file.parent.name}/{file.name}\n{file.read_text(errors='replace')}")
        return "\n".join(texts)

    def _running_nodes(self) -> dict[int, str]:
        """Ids of the registered node managers by port."""
        nodes = (self._get("nodes")["nodes"] or {"node": []})["node"]
        running = [str(node["id"]) for node in nodes if node["state"] == "RUNNING"]
        return {int(node_id.rpartition(":")[2]): node_id for node_id in running}

    def _get(self, path: str) -> dict[str, Any]:
        address = self._addresses["yarn.resourcemanager.webapp.address"]
        with urllib.request.urlopen(f"http://{address}/ws/v1/cluster/{path}", timeout=PATIENCE) as answer:
            parsed: dict[str, Any] = json.load(answer)
            return parsed

    def _rm_context(self) -> Any:
        return self._cluster.getResourceManager().getRMContext()

    def close(self) -> None:
        """Ends all processes: containers after their node managers, which would start them again."""
        for node in self.nodes:
            node.kill()
            node.wait()
        for container in self.containers():
            for pid in container.pids:
                kill(pid)
        self._gateway.close()

    def __enter__(self) -> Yarn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _write_conf(directory: Path, name: str, settings: Mapping[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    properties = "".join(
        f"<property><name>{escape(key)}</name><value>{escape(value)}</value></property>\n"
        for key, value in settings.items()
    )
    (directory / f"{name}.xml").write_text(f"<configuration>\n{properties}</configuration>\n")
