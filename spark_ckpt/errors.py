"""The errors of spark-ckpt: one base class, and a specific class for each thing that can be wrong.

Every error names the thing that is wrong (a file, an offset, a setting) and says what to do about it. What a caller
needs in order to act stands in attributes, not only in the text.
"""

from __future__ import annotations


class SparkCkptError(Exception):
    """Base class of every error that spark-ckpt raises on purpose."""


class PySparkNotFoundError(SparkCkptError, ImportError):
    """PySpark is not installed in this Python environment, and something was asked that needs it."""

    def __init__(self) -> None:
        super().__init__("PySpark is not installed in this Python environment: pip install 'spark-ckpt[spark]'")


class UnsupportedSparkError(SparkCkptError):
    """This release has no jar for the given version of Spark."""

    def __init__(self, spark_version: str, supported: tuple[str, ...]) -> None:
        self.spark_version = spark_version
        self.supported = supported
        super().__init__(
            f"Spark {spark_version} is not supported by this release of spark-ckpt; supported are "
            f"{', '.join(f'{minor}.x' for minor in supported)}. Install one of them, for example "
            f"pip install 'pyspark~={supported[-1]}.0'"
        )


class JarNotFoundError(SparkCkptError, FileNotFoundError):
    """The package is installed without the shim's jar."""

    def __init__(self, path: object) -> None:
        self.path = str(path)
        super().__init__(
            f"the jar {path} is missing. A wheel of spark-ckpt has it inside; in a source tree, "
            "'make jar' (or 'pip install -e .') builds it with Maven"
        )


class SessionConfigError(SparkCkptError, ValueError):
    """`configure` cannot set up this Spark session. The message says which setting is in the way."""
