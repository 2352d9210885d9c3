"""`configure`: the one call that makes a PySpark session use spark-ckpt."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from spark_ckpt import config
from spark_ckpt.config import (
    EXTENSIONS_CLASS,
    EXTENSIONS_KEY,
    FILE_MANAGER_CLASS,
    FILE_MANAGER_KEY,
    PROVIDER_CLASS,
    PROVIDER_KEY,
    Setting,
)
from spark_ckpt.config.submit_arguments import submitted
from spark_ckpt.config.units import plain_number
from spark_ckpt.errors import PySparkNotFoundError, SessionConfigError, SettingError
from spark_ckpt.jars import jar_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS_KEY = "spark.jars"


def configure(
    builder: SparkSession.Builder,
    *,
    store: str | None = None,
    zookeeper_quorum: str | None = None,
    zookeeper_path: str | None = None,
    zookeeper_session_timeout: float | str | None = None,
    zookeeper_client_file: str | os.PathLike[str] | None = None,
    cleanup: str | None = None,
    on_damage: str | None = None,
    timeout: float | str | None = None,
    tolerable_failures: int | None = None,
    history: int | str | None = None,
    retained: int | str | None = None,
    inline_threshold: int | str | None = None,
    max_parallelism: int | str | None = None,
    ack_threshold: int | str | None = None,
    ack_memory: int | str | None = None,
    max_chain_deltas: int | None = None,
    max_chain_delta_ratio: float | None = None,
    change_feed: str | None = None,
    bridge_timeout: float | str | None = None,
    python: str | os.PathLike[str] | None = None,
) -> SparkSession.Builder:
    """Make the session that `builder` will create keep streaming state in Flink-style checkpoints.

    Adds the jar to `spark.jars`, sets the state-store provider and the options that are given, and adds the extension
    without which Spark keeps `transformWithState` to its own provider, and on an object store has Spark write its own
    logs with one conditional put for an entry, in place of a file that is renamed. What is set on the
    builder already stays as it is; an option that is not given keeps its default (docs/settings.md has them).
    Durations, sizes and counts are numbers, or texts with a unit: `"5m"`, `"64MiB"`, `"20k"`.

    All settings of ours are checked here: the options, those on the builder, and those of a driver that runs already.

    Parameters
    ----------
    builder
        The builder of a classic session. A Spark Connect session gets its provider from its server.
    store
        Completed-checkpoint store: `filesystem`, `zookeeper` or `standalone` (docs/high-availability.md compares them).
    zookeeper_quorum, zookeeper_path, zookeeper_session_timeout, zookeeper_client_file
        For the store `zookeeper`: its servers, the node that is ours, how long a driver may be silent before it counts
        as dead, in seconds or with a unit, and the file with the driver's identity and TLS.
    cleanup
        Retention after the query ends, by name.
    on_damage
        Action of a start whose checkpoint is damaged: `fail` or `rollBack`.
    timeout
        Time after which an incomplete checkpoint is aborted, in seconds or with a unit.
    tolerable_failures
        Consecutive storage failures tolerated before the task that waits for the checkpoint fails.
    history
        Number of checkpoints whose statistics are kept.
    retained
        Number of completed checkpoints to keep, two or more.
    inline_threshold
        Largest number of bytes of new state that a checkpoint keeps inside `_metadata`.
    max_parallelism
        Number of key groups of a query that starts new.
    ack_memory
        Memory for the state of one batch that travels with acknowledgements.
    ack_threshold
        State up to this many bytes travels to the driver with the task's acknowledgement; more goes to a file.
    max_chain_deltas, max_chain_delta_ratio
        Limits of a chain: a new base is due after this many deltas, or when they outweigh this share of the last base.
    change_feed
        Content of the change feed: `outcome` or `writes`.
    bridge_timeout
        Time that a task waits for the coordinator's answer, in seconds or with a unit.
    python
        The Python that runs the coordinator beside the driver, this one by default; spark_ckpt must be installed in it.

    Returns
    -------
    The same builder.

    Raises
    ------
    SettingError
        A setting has a value that it cannot have, contradicts another one or is misspelt; or an option differs from
        what the builder has.
    SessionConfigError
        Something about the builder, or about Spark as it runs already, is in the way.
    UnsupportedSparkError
        There is no jar for the installed version of Spark.
    """
    options: Mapping[Setting[Any], object] = {
        config.STORE: store,
        config.ZOOKEEPER_QUORUM: zookeeper_quorum,
        config.ZOOKEEPER_PATH: zookeeper_path,
        config.ZOOKEEPER_SESSION_TIMEOUT: zookeeper_session_timeout,
        config.ZOOKEEPER_CLIENT_FILE: zookeeper_client_file,
        config.CLEANUP: cleanup,
        config.ON_DAMAGE: on_damage,
        config.TIMEOUT: timeout,
        config.TOLERABLE_FAILURES: tolerable_failures,
        config.HISTORY: history,
        config.RETAINED: retained,
        config.INLINE_THRESHOLD: inline_threshold,
        config.MAX_PARALLELISM: max_parallelism,
        config.ACK_THRESHOLD: ack_threshold,
        config.ACK_MEMORY: ack_memory,
        config.MAX_DELTAS: max_chain_deltas,
        config.MAX_DELTA_RATIO: max_chain_delta_ratio,
        config.CHANGE_FEED: change_feed,
        config.BRIDGE_TIMEOUT: bridge_timeout,
        config.PYTHON: sys.executable if python is None else os.fspath(python),
    }
    texts = {setting.key: _text_of(value) for setting, value in options.items() if value is not None}
    for setting in config.SETTINGS:
        setting.value(texts)
    jar = str(jar_path())
    present = _settings_of(builder)
    _refuse_connect(builder, present)
    _refuse_other_provider(present)
    _refuse_two_values({key: text for key, text in texts.items() if key != config.PYTHON.key or python}, present)
    if JARS_KEY not in present:
        _refuse_jars_on_command_line(jar)
    running = _running_driver(jar)
    config.CheckpointConfig.parse({**running, **texts, **{key: str(value) for key, value in present.items()}})
    for key, ours in ((JARS_KEY, jar), (EXTENSIONS_KEY, EXTENSIONS_CLASS)):
        builder.config(key, ",".join(_with(ours, present.get(key) or running.get(key, ""))))
    builder.config(PROVIDER_KEY, PROVIDER_CLASS)
    if FILE_MANAGER_KEY not in present:
        builder.config(FILE_MANAGER_KEY, FILE_MANAGER_CLASS)
    for key, text in texts.items():
        if key not in present:
            builder.config(key, text)
    return builder


def _settings_of(builder: SparkSession.Builder) -> Mapping[str, Any]:
    """Settings on the builder. PySpark offers no public way to read them back."""
    settings = getattr(builder, "_options", None)
    if not isinstance(settings, dict):
        raise SessionConfigError(
            f"configure() takes a SparkSession.Builder, for example SparkSession.builder, not {type(builder).__name__}"
        )
    return settings


def _refuse_connect(builder: SparkSession.Builder, present: Mapping[str, Any]) -> None:
    """Refuse a Connect client: it has no driver of its own, and state-store settings belong to the server's start."""
    api_mode = str(present.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))).lower()
    remote = (
        type(builder).__module__.startswith("pyspark.sql.connect")
        or "spark.remote" in present
        or "SPARK_REMOTE" in os.environ
        or api_mode == "connect"
    )
    if remote:
        raise SessionConfigError(
            "this builder makes a Spark Connect session, and its driver is on the server: start the server with the "
            f"jar ({jar_path()}) in spark.jars and {PROVIDER_KEY}={PROVIDER_CLASS}, as in conf/spark-ckpt.properties"
        )


def _refuse_other_provider(present: Mapping[str, Any]) -> None:
    chosen = present.get(PROVIDER_KEY)
    if chosen not in (None, PROVIDER_CLASS):
        raise SessionConfigError(
            f"{PROVIDER_KEY} is set to {chosen} on this builder: remove that setting, or do not call configure()"
        )


def _refuse_two_values(texts: Mapping[str, str], present: Mapping[str, Any]) -> None:
    """Refuse an option that differs from the builder: neither has an obvious precedence."""
    for setting in config.SETTINGS:
        if setting.key in texts and setting.key in present:
            on_builder = {setting.key: str(present[setting.key])}
            if setting.value(texts) != setting.value(on_builder):
                raise SettingError(
                    setting.key,
                    f"it is '{present[setting.key]}' on the builder and '{texts[setting.key]}' in configure(): "
                    "set it in one place",
                )


def _refuse_jars_on_command_line(jar: str) -> None:
    """Jars in PYSPARK_SUBMIT_ARGS take the place of `spark.jars`, and the provider would not be found."""
    for option, jars in submitted(os.environ.get("PYSPARK_SUBMIT_ARGS", "")).items():
        if jar not in jars:
            raise SessionConfigError(f"PYSPARK_SUBMIT_ARGS has {option}, which replaces spark.jars: add {jar} to it")


def _text_of(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return plain_number(value) if is_number else str(value)  # type: ignore[arg-type]


def _running_driver(jar: str) -> Mapping[str, str]:
    """The settings of a driver JVM that runs already, after making sure that it finds our classes.

    Under spark-submit the JVM is there before this program; `spark.jars` set now reaches executors, but the driver's
    own class loader has been made, so the jar is added to it. A running session takes no more jars at all.
    """
    try:
        from pyspark import SparkConf, SparkContext
    except ImportError as error:
        raise PySparkNotFoundError from error
    context = SparkContext._active_spark_context
    if context is None and SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    has_classes = loader.getResource(PROVIDER_CLASS.replace(".", "/") + ".class") is not None
    if context is not None and not has_classes:
        raise SessionConfigError(
            "a Spark session is running without spark-ckpt's jar, and a running session cannot take it: "
            "call configure() before the first getOrCreate(), stop that session, or start it with "
            f"{jar} in {JARS_KEY}"
        )
    if not has_classes:
        loader.addURL(jvm.java.io.File(jar).toURI().toURL())
    conf = SparkConf() if context is None else context.getConf()
    return {key: str(value) for key, value in conf.getAll()}


def _with(ours: str, present: str | Iterable[str]) -> list[str]:
    """The entries of a list, with ours at the end unless it is among them."""
    entries = [entry.strip() for entry in (present.split(",") if isinstance(present, str) else present)]
    return [entry for entry in dict.fromkeys([*entries, ours]) if entry]
