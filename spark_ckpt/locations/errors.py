"""What a place that a command was given can be, other than what the command needs."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class LocationNotFoundError(SparkCkptError, FileNotFoundError):
    """There is nothing at the place named.

    Attributes:
        location: the place.
    """

    def __init__(self, location: str) -> None:
        super().__init__(f"{location}: there is no such file or directory")
        self.location = location


class HadoopNotFoundError(SparkCkptError):
    """The place is on HDFS, which a command reaches through a Hadoop client, and none works here.

    Attributes:
        location: the place.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(
            f"{location} is on HDFS, and there is no Hadoop client here that works ({reason}). A command has no Spark "
            "driver to ask. Name the location by the NameNode's web address, webhdfs://<host>:9870/<path>; or set "
            "JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob), with libhdfs.so in "
            "$HADOOP_HOME/lib/native, and write hdfs://; or copy it with 'hdfs dfs -get' and name the copy"
        )
        self.location = location


class ForeignLocationError(SparkCkptError):
    """Something is at the place named, but not what the command works on.

    Attributes:
        location: the place.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location}: {reason}")
        self.location = location


class TargetExistsError(SparkCkptError, FileExistsError):
    """There is a file where a command was to write a new one.

    Attributes:
        target: the file.
    """

    def __init__(self, target: str) -> None:
        super().__init__(f"{target} is there already, and nothing is overwritten: name a new file or directory")
        self.target = target
