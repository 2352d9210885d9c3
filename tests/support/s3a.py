"""The jars of S3A, of the Hadoop version in PySpark: another one lacks their classes."""

from __future__ import annotations

from tests.support.gateway import hadoop_version
from tests.support.maven import build
from tests.support.provider import REPOSITORY

MODULE = REPOSITORY / "jvm-shim" / "benchmark"


def s3a_class_path() -> str:
    """Class path that a driver needs to reach a location on S3.

    Skips the test without a JDK or Maven.
    """
    version = hadoop_version()
    directory = f"s3a-{version}"
    options = [f"-Dhadoop.version={version}", f"-Ds3a.directory={directory}"]
    return f"{build(MODULE, directory, *options, goal='dependency:copy-dependencies@copy')}/*"
