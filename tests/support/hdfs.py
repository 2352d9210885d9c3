"""A real HDFS, NameNode and DataNode in one JVM: Hadoop's MiniDFSCluster on the jars shipped with PySpark.

The JVM also has the shim's `HadoopFiles`, so that a storage can be tested without Spark: `Hdfs.calls` reaches it over
Py4J instead of over the bridge to a driver.
"""

from __future__ import annotations

import getpass
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.object_store import hadoop_version
from spark_ckpt.bridge.driver_files import DriverFiles
from spark_ckpt.bridge.protocol import Message
from spark_ckpt.jars import jar_path
from spark_ckpt.storage import HadoopStorage
from tests.support.gateway import GatewayJvm
from tests.support.maven import build
from tests.support.provider import REPOSITORY
from tests.support.session import use_this_python

MODULE = REPOSITORY / "jvm-shim" / "hdfs-jars"


def cluster_jars() -> Path:
    """Directory of the jars of Hadoop's clusters, of PySpark's Hadoop version: another one lacks their classes.

    Skips the test without a JDK or Maven.
    """
    version = hadoop_version()
    return build(MODULE, f"hadoop-{version}", f"-Dhadoop.version={version}")


def from_jvm(number: int, message: Any) -> Message:
    """A message of the shim."""
    header = message.header().encode()
    return Message(number, message.kind(), message.job(), header, message.index(), message.payload())


class Hdfs:
    """The cluster; its JVM runs in `directory` and keeps all data there. Skips the test without a JDK or Maven."""

    def __init__(self, directory: Path) -> None:
        use_this_python()
        self.working_directory = directory
        jars = [cluster_jars() / "*", jar_path()]
        self._gateway = GatewayJvm(jars, directory, directory / "hdfs.log")
        self.jvm: Any = self._gateway.classes
        conf = self.jvm.org.apache.hadoop.conf.Configuration()
        conf.set("hdfs.minidfs.basedir", str(directory / "data"))
        self.cluster: Any = self.jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(conf).numDataNodes(1).build()
        self.cluster.waitActive()
        self.url = str(self.cluster.getURI().toString())

    @property
    def web_url(self) -> str:
        """URL of the same file system at the NameNode's web address."""
        return str(self.cluster.getHttpUri(0)).replace("http:", "webhdfs:")

    def on_the_web(self, location: str) -> str:
        """A location at the NameNode's web address, for the user that has started it."""
        return location.replace(self.url, self.web_url.replace("://", f"://{getpass.getuser()}@"))

    def new_location(self) -> str:
        """URL of a directory that does not exist yet."""
        return f"{self.url}/{uuid.uuid4().hex}"

    def calls(self) -> DriverFiles:
        """The driver's file operations, with a client of their own."""
        hadoop_files = self.hadoop_files()

        def handle(request: Message) -> None:
            reply = hadoop_files.handle(self.to_jvm(request))
            files.answered(from_jvm(request.id, reply))

        files = DriverFiles(handle)
        return files

    def hadoop_files(self) -> Any:
        """The shim's class that serves files in the driver."""
        settings = self.jvm.com.google.common.base.Functions.constant(self.jvm.org.apache.hadoop.conf.Configuration())
        return self.jvm.org.apache.spark.sql.ckpt.bridge.HadoopFiles(settings)

    def to_jvm(self, message: Message) -> Any:
        """The message as an instance of the shim's message class."""
        return self.jvm.org.apache.spark.sql.ckpt.protocol.Message(
            message.kind, message.job, message.header.decode(), message.index, bytes(message.payload)
        )

    def storage(self, location: str) -> HadoopStorage:
        """A storage with a client of its own."""
        return HadoopStorage(self.calls(), location)

    def copy(self, location: str, target: Path) -> None:
        """Copies a directory to this machine."""
        path = self.jvm.org.apache.hadoop.fs.Path
        self.cluster.getFileSystem().copyToLocalFile(False, path(location), path(f"file://{target}"), True)

    def upload(self, file: Path, url: str) -> None:
        """Copies a local file to a URL; all users may read it."""
        path = self.jvm.org.apache.hadoop.fs.Path
        self.cluster.getFileSystem().copyFromLocalFile(path(file.as_uri()), path(url))

    @contextmanager
    def user(self, name: str) -> Iterator[None]:
        """Makes clients created in this context act as another user."""
        users = self.jvm.org.apache.hadoop.security.UserGroupInformation
        before = users.getLoginUser()
        users.setLoginUser(users.createRemoteUser(name))
        try:
            yield
        finally:
            users.setLoginUser(before)

    @contextmanager
    def safe_mode(self) -> Iterator[None]:
        """Puts the NameNode into safe mode: it rejects writes."""
        actions = self.jvm.org.apache.hadoop.fs.SafeModeAction
        self.cluster.getFileSystem().setSafeMode(actions.ENTER)
        try:
            yield
        finally:
            self.cluster.getFileSystem().setSafeMode(actions.LEAVE)

    def synced(self) -> int:
        """Number of file syncs to disk by the DataNode."""
        metrics = self.cluster.getDataNodes().get(0).getMetrics()
        field = metrics.getClass().getDeclaredField("fsyncCount")
        field.setAccessible(True)
        return int(field.get(metrics).value())

    def __enter__(self) -> Hdfs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gateway.close()
