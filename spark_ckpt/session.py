"""`configure`: the setup of a PySpark session for spark-ckpt."""

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
    on_query_change: str | None = None,
    timeout: float | str | None = None,
    tolerable_failures: int | None = None,
    history: int | str | None = None,
    retained: int | str | None = None,
    retained_age: float | str | None = None,
    inline_threshold: int | str | None = None,
    max_parallelism: int | str | None = None,
    ack_threshold: int | str | None = None,
    ack_memory: int | str | None = None,
    memory_budget: int | str | None = None,
    max_chain_deltas: int | None = None,
    max_chain_delta_ratio: float | None = None,
    restore: str | None = None,
    compression: str | None = None,
    change_feed: str | None = None,
    real_time_mode: str | None = None,
    bridge_timeout: float | str | None = None,
    bridge_silence: float | str | None = None,
    log_level: str | None = None,
    log_format: str | None = None,
    tracing: str | None = None,
    python: str | os.PathLike[str] | None = None,
) -> SparkSession.Builder:
    """Configure the session of `builder` to keep streaming state in Flink-style checkpoints.

    Adds the jar to `spark.jars`; sets the state-store provider and the given options; adds the extension that allows
    this provider for `transformWithState`; and makes Spark write its own logs on an object store with one conditional
    put per entry instead of a rename. Settings already on the builder take precedence; omitted options keep their
    defaults (see docs/settings.md). Durations, sizes and counts are numbers, or text with a unit: `"5m"`, `"64MiB"`,
    `"20k"`.

    Validates all settings of spark-ckpt: the options, those on the builder, and those of a running driver.

    Parameters
    ----------
    builder
        The builder of a classic session. With Spark Connect, configure the server instead.
    store
        Completed-checkpoint store: `filesystem`, `zookeeper` or `standalone` (docs/high-availability.md compares them).
    zookeeper_quorum, zookeeper_path, zookeeper_session_timeout, zookeeper_client_file
        For the store `zookeeper`: its servers; the parent node; the session timeout, in seconds or with a unit; and the
        file with the driver's identity and TLS.
    cleanup
        Retention after the query ends: `retain`, `deleteOnCancellation` or `deleteOnEnd`.
    on_damage
        Action at a start from a damaged checkpoint: `fail` or `rollBack`.
    on_query_change
        Action at a start from state that means something else to the query: `fail` or `warn`.
    timeout
        Time after which an incomplete checkpoint is aborted, in seconds or with a unit.
    tolerable_failures
        Consecutive storage failures tolerated while a checkpoint is completed.
    history
        Number of checkpoints to keep statistics of.
    retained
        Number of completed checkpoints to keep, two or more.
    retained_age
        Age up to which checkpoints are kept beyond that number, in seconds or with a unit.
    inline_threshold
        Largest amount of new state, in bytes, that a checkpoint keeps inside `_metadata`.
    max_parallelism
        Number of key groups of a new query.
    ack_memory
        Memory for the state of one batch inside acknowledgements.
    ack_threshold
        Largest new state, in bytes, that a task sends to the driver inside its acknowledgement; larger state goes to a
        file.
    memory_budget
        Memory for the state of all stores of an executor, in bytes or as a share of its heap such as `"40%"`; the rest
        goes to its local disks. `"none"`: no limit.
    max_chain_deltas, max_chain_delta_ratio
        Limits of a chain: a new base snapshot is due after this many deltas, or above this ratio of delta bytes to base
        bytes.
    restore
        Load of state at a start: `lazy` or `eager`.
    compression
        Compression of new state: `lz4`, `zstd` or `none`.
    change_feed
        Content of the change feed: `outcome` or `writes`.
    real_time_mode
        Queries with state in Spark's real-time mode: `refused` or `experimental`.
    bridge_timeout
        Time that a task waits for an answer of the coordinator, in seconds or with a unit.
    bridge_silence
        Silence after which the driver replaces its side process, in seconds or with a unit.
    log_level, log_format
        The coordinator's records in the driver's log: `debug`, `info`, `warning` or `error`; `text` or `json`.
    tracing
        Spans of checkpoints: `off` or `otel`.
    python
        Python of the side process on the driver, by default this one. It must have spark_ckpt installed.

    Returns
    -------
    The same builder.

    Raises
    ------
    SettingError
        A setting is invalid, misspelt or contradicts another one; or an option differs from the builder.
    SessionConfigError
        The builder, or the running Spark, does not allow the configuration.
    UnsupportedSparkError
        The installed version of Spark is not supported.
    """
    options: Mapping[Setting[Any], object] = {
        config.STORE: store,
        config.ZOOKEEPER_QUORUM: zookeeper_quorum,
        config.ZOOKEEPER_PATH: zookeeper_path,
        config.ZOOKEEPER_SESSION_TIMEOUT: zookeeper_session_timeout,
        config.ZOOKEEPER_CLIENT_FILE: zookeeper_client_file,
        config.CLEANUP: cleanup,
        config.ON_DAMAGE: on_damage,
        config.ON_QUERY_CHANGE: on_query_change,
        config.TIMEOUT: timeout,
        config.TOLERABLE_FAILURES: tolerable_failures,
        config.HISTORY: history,
        config.RETAINED: retained,
        config.RETAINED_AGE: retained_age,
        config.INLINE_THRESHOLD: inline_threshold,
        config.MAX_PARALLELISM: max_parallelism,
        config.ACK_THRESHOLD: ack_threshold,
        config.ACK_MEMORY: ack_memory,
        config.MEMORY_BUDGET: memory_budget,
        config.MAX_DELTAS: max_chain_deltas,
        config.MAX_DELTA_RATIO: max_chain_delta_ratio,
        config.RESTORE: restore,
        config.COMPRESSION: compression,
        config.CHANGE_FEED: change_feed,
        config.REAL_TIME_MODE: real_time_mode,
        config.BRIDGE_TIMEOUT: bridge_timeout,
        config.BRIDGE_SILENCE: bridge_silence,
        config.LOG_LEVEL: log_level,
        config.LOG_FORMAT: log_format,
        config.TRACING: tracing,
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
    """Settings on the builder. PySpark has no public accessor for them."""
    settings = getattr(builder, "_options", None)
    if not isinstance(settings, dict):
        raise SessionConfigError(
            f"configure() takes a SparkSession.Builder, for example SparkSession.builder, not {type(builder).__name__}"
        )
    return settings


def _refuse_connect(builder: SparkSession.Builder, present: Mapping[str, Any]) -> None:
    """Reject a Connect client: its driver is on the server, which takes state-store settings at its start."""
    api_mode = str(present.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))).lower()
    remote = (
        type(builder).__module__.startswith("pyspark.sql.connect")
        or "spark.remote" in present
        or "SPARK_REMOTE" in os.environ
        or api_mode == "connect"
    )
    if remote:
        raise SessionConfigError(
            "this builder creates a Spark Connect session, whose driver is on the server. Start the server with the "
            f"jar ({jar_path()}) in spark.jars and {PROVIDER_KEY}={PROVIDER_CLASS}, as in conf/spark-ckpt.properties"
        )


def _refuse_other_provider(present: Mapping[str, Any]) -> None:
    chosen = present.get(PROVIDER_KEY)
    if chosen not in (None, PROVIDER_CLASS):
        raise SessionConfigError(
            f"{PROVIDER_KEY} is set to {chosen} on this builder: remove that setting, or do not call configure()"
        )


def _refuse_two_values(texts: Mapping[str, str], present: Mapping[str, Any]) -> None:
    """Reject an option that differs from the builder: neither has an obvious precedence."""
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
    """Jars in PYSPARK_SUBMIT_ARGS replace `spark.jars`, so Spark would not find the provider."""
    for option, jars in submitted(os.environ.get("PYSPARK_SUBMIT_ARGS", "")).items():
        if jar not in jars:
            raise SessionConfigError(f"PYSPARK_SUBMIT_ARGS has {option}, which replaces spark.jars: add {jar} to it")


def _text_of(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return plain_number(value) if is_number else str(value)  # type: ignore[arg-type]


def _running_driver(jar: str) -> Mapping[str, str]:
    """The settings of a running driver JVM, with our classes on its class path.

    Under spark-submit the JVM starts before this program. `spark.jars` set now reaches the executors but not the
    driver's class loader, so the jar is added there. A running session takes no more jars.
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
            "a Spark session is running without spark-ckpt's jar, which cannot be added to a running session: "
            "call configure() before the first getOrCreate(), stop that session, or start it with "
            f"{jar} in {JARS_KEY}"
        )
    if not has_classes:
        loader.addURL(jvm.java.io.File(jar).toURI().toURL())
    conf = SparkConf() if context is None else context.getConf()
    return {key: str(value) for key, value in conf.getAll()}


def _with(ours: str, present: str | Iterable[str]) -> list[str]:
    """The entries of a list, with ours appended unless present."""
    entries = [entry.strip() for entry in (present.split(",") if isinstance(present, str) else present)]
    return [entry for entry in dict.fromkeys([*entries, ours]) if entry]
