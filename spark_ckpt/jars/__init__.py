"""The shim's jars: one for each minor version of Spark that this release supports, and how the right one is found.

The jar lies beside this module, in the wheel and in an editable install alike; the build hook puts it there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from spark_ckpt.errors import JarNotFoundError, PySparkNotFoundError, UnsupportedSparkError

SCALA_BINARY_VERSION = "2.13"

SUPPORTED_SPARK: Mapping[str, str] = {"4.0": "4.0.2", "4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.3.0"}
"""Each supported Spark minor version with the release that its jar is compiled against."""

FIRST_RELEASES: Mapping[str, str] = {minor: "4.0.1" if minor == "4.0" else f"{minor}.0" for minor in SUPPORTED_SPARK}
"""First supported release of each minor version. In 4.0.0, stores return other iterators (`ReadStateStore`)."""


def jar_name(spark_minor: str, version: str) -> str:
    """File name of the jar of release `version` of spark-ckpt for one Spark minor version."""
    return f"spark-ckpt_{spark_minor}_{SCALA_BINARY_VERSION}-{version}.jar"


def supported_minor(spark_version: str) -> str:
    """The supported minor version that `spark_version` belongs to.

    Raises `UnsupportedSparkError` for any other minor version, and for releases before the first supported one.
    """
    match = re.match(r"(\d+\.\d+)(?:\.(\d+)|$)", spark_version)
    minor = match.group(1) if match else spark_version
    if match is None or minor not in SUPPORTED_SPARK or _is_before(match.group(2), FIRST_RELEASES[minor]):
        raise UnsupportedSparkError(spark_version, tuple(FIRST_RELEASES.values()))
    return minor


def _is_before(patch: str | None, release: str) -> bool:
    """True if a patch number is known and lower than that of a release."""
    return patch is not None and int(patch) < int(release.rpartition(".")[2])


def jar_path(spark_version: str | None = None) -> Path:
    """The jar to put on Spark's class path.

    `spark_version` is the version of Spark that will load it; by default that of the installed PySpark.
    """
    from spark_ckpt import __version__

    minor = supported_minor(installed_pyspark() if spark_version is None else spark_version)
    path = Path(__file__).resolve().parent / jar_name(minor, __version__)
    if not path.is_file():
        raise JarNotFoundError(path)
    return path


def installed_pyspark() -> str:
    """Version of the PySpark that this Python imports."""
    try:
        import pyspark
    except ImportError as error:
        raise PySparkNotFoundError from error
    return str(pyspark.__version__)
