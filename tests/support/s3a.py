"""S3A, in the Hadoop version of PySpark."""

from __future__ import annotations

import pytest

from benchmarks.object_store import MODULE, hadoop_version, s3a_class_path, s3a_jars
from tests.support.maven import build


@pytest.fixture(scope="session")
def s3a() -> str:
    """Class path that a driver needs to reach a location on S3. Skips the test without a JDK or Maven."""
    version, goal = f"-Dhadoop.version={hadoop_version()}", "dependency:copy-dependencies@copy"
    build(MODULE, s3a_jars().name, version, goal=goal)
    return s3a_class_path()
