"""A real Kafka broker in a process of its own: KRaft mode, one node that is broker and controller, on loopback only."""

from __future__ import annotations

import logging
import signal
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from tests.support.class_archive import QUICK_START
from tests.support.maven import build
from tests.support.ports import free_port
from tests.support.provider import REPOSITORY
from tests.support.waiting import eventually

HOST = "127.0.0.1"
PATIENCE = 600.0
"""Timeout in seconds that only a hang exceeds."""

_MODULES = REPOSITORY / "jvm-shim"
_JVM_OPTIONS = ("-Xmx384m", *QUICK_START.split(), "-Dorg.slf4j.simpleLogger.showDateTime=true")

logging.getLogger("kafka").setLevel(logging.CRITICAL)  # a broker that is away is part of the tests


@cache
def connector_jars() -> tuple[Path, ...]:
    """Jars of Spark's Kafka connector, in addition to Spark's own."""
    folder = _MODULES / "kafka-jars" / "target" / "jars"
    if not any(folder.glob("spark-sql-kafka-*.jar")):
        build(_MODULES / "kafka-jars", "jars")
    return tuple(sorted(folder.glob("*.jar")))


class KafkaBroker:
    """One broker, as a context manager. It keeps its ports and its data over restarts.

    Args:
        directory: directory of its data, configuration and log.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port, self._controller_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Address of the broker, as clients want it."""
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        """Output of the broker."""
        return self.directory / "broker.log"

    def start(self) -> None:
        """Starts the broker on its data, and waits until it answers."""
        if not self._config.exists():
            self._format()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._java("kafka.Kafka", str(self._config)), stdout=log, stderr=log)
        eventually(self._answers, PATIENCE, lambda: f"the broker answers:\n{self._tail()}")

    def stop(self) -> None:
        """Stops the broker in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the broker with SIGKILL."""
        self._end(signal.SIGKILL)

    def restart(self, seconds: float = 0.0) -> None:
        """Kills the broker and starts it again at the same address, `seconds` later."""
        self.kill()
        time.sleep(seconds)
        self.start()

    def freeze(self, seconds: float) -> None:
        """Freezes the broker for a while: connections stay open, and no request is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> KafkaBroker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def _config(self) -> Path:
        return self.directory / "server.properties"

    def _format(self) -> None:
        """Writes the configuration and formats the storage, as an operator of KRaft has to before the first start."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "unformatted.properties"
        config.write_text(self._properties())
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # With "=", because an id may begin with a dash.
        command = self._java("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "--config", str(config))
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"cannot format the broker's storage:\n{done.stdout}\n{done.stderr}"
        config.rename(self._config)

    def _properties(self) -> str:
        listener, controller = f"{HOST}:{self.port}", f"{HOST}:{self._controller_port}"
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://{listener},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{listener}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(self.directory / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            # A killed broker may register again only when its session has expired.
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            # Retention by time within seconds, for topics that ask for it.
            "log.retention.check.interval.ms": "1000",
            "log.initial.task.delay.ms": "1000",
        }
        return "".join(f"{key}={value}\n" for key, value in properties.items())

    def _java(self, main: str, *arguments: str) -> list[str]:
        jars = build(_MODULES / "kafka-broker", "jars") / "*"
        return ["java", *_JVM_OPTIONS, "-cp", str(jars), main, *arguments]

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the broker has ended:\n{self._tail()}"
        with suppress(KafkaError):
            client = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers, bootstrap_timeout_ms=1000)
            client.close()
            return True
        return False

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]
