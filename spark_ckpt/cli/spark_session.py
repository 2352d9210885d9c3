"""The Spark session of commands that read and write state as a Spark job."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spark_ckpt.cli.options import key_values
from spark_ckpt.config import PREFIX
from spark_ckpt.errors import PySparkNotFoundError
from spark_ckpt.session import configure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Command = TypeVar("_Command", bound=Callable[..., None])

_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""Settings of the session unless given: no port, and nothing on the terminal beside the progress bar."""


def _settings_of_spark(context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    settings = key_values(context, parameter, pairs)
    for key in settings:
        if not key.startswith("spark."):
            raise click.BadParameter(f"'{key}' is not a setting of Spark: it must start with 'spark.'")
    return settings


def session_options(command: _Command) -> _Command:
    """Adds `--master` and `--conf`, for `spark_session`."""
    for option in (
        click.option(
            "--conf",
            "conf",
            multiple=True,
            metavar="KEY=VALUE",
            callback=_settings_of_spark,
            help="Setting of the Spark session, as for spark-submit. Repeatable. Settings below "
            "spark.sql.streaming.stateStore.ckpt. also apply to the query.",
        ),
        click.option(
            "--master", metavar="URL", help="Master of the Spark session.  [default: spark-defaults.conf, or local[*]]"
        ),
    ):
        command = option(command)
    return command


@contextmanager
def spark_session(name: str, master: str | None, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A new Spark session with the jar of spark-ckpt; stopped at the end.

    Args:
        name: name of the application.
        master: URL of the master.
        conf: settings.

    Raises:
        PySparkNotFoundError: PySpark is not installed.
        SessionConfigError, SettingError, UnsupportedSparkError: as in `configure`.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as e:
        raise PySparkNotFoundError from e
    builder: Any = SparkSession.builder.appName(name)
    for key, value in {**_DEFAULTS, **conf}.items():
        builder.config(key, value)
    if master is not None:
        builder.master(master)
    with _errors_in_file():
        session = configure(builder).getOrCreate()
    use_this_python(session)
    try:
        yield session
    finally:
        session.stop()


def use_this_python(session: SparkSession) -> None:
    """Lets tasks on this machine run in this Python, which has the package, unless `PYSPARK_PYTHON` names another."""
    context: Any = session.sparkContext
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


@contextmanager
def _errors_in_file() -> Iterator[None]:
    """Lets the JVM that starts meanwhile write its log to a file instead of standard error, which has the progress bar
    and errors as JSON. The log is shown if the start fails."""
    with tempfile.TemporaryFile() as log:
        terminal = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            log.seek(0)
            os.write(terminal, log.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def query_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings of spark-ckpt among those of a session."""
    return {key: value for key, value in conf.items() if key.startswith(PREFIX)}
