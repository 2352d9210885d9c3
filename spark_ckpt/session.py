"""`configure`: the one call that makes a PySpark session use spark-ckpt."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from spark_ckpt import config
from spark_ckpt.errors import PySparkNotFoundError, SessionConfigError
from spark_ckpt.jars import jar_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROVIDER_KEY = "spark.sql.streaming.stateStore.providerClass"
PROVIDER_CLASS = "org.apache.spark.sql.ckpt.CheckpointStateStoreProvider"
EXTENSIONS_KEY = "spark.sql.extensions"
EXTENSIONS_CLASS = "org.apache.spark.sql.ckpt.CheckpointExtensions"
FILE_MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"
FILE_MANAGER_CLASS = "org.apache.spark.sql.ckpt.CheckpointLogFileManager"
JARS_KEY = "spark.jars"


def configure(
    builder: SparkSession.Builder,
    *,
    store: str | None = None,
    zookeeper_quorum: str | None = None,
    zookeeper_path: str | None = None,
    zookeeper_session_timeout: float | None = None,
    cleanup: str | None = None,
    on_damage: str | None = None,
    timeout: float | None = None,
    tolerable_failures: int | None = None,
    history: int | None = None,
    retained: int | None = None,
    inline_threshold: int | None = None,
    max_parallelism: int | None = None,
    ack_threshold: int | None = None,
    max_chain_deltas: int | None = None,
    max_chain_delta_ratio: float | None = None,
    change_feed: str | None = None,
    bridge_timeout: int | None = None,
    python: str | os.PathLike[str] | None = None,
) -> SparkSession.Builder:
    """Make the session that `builder` will create keep streaming state in Flink-style checkpoints.

    Adds the jar to `spark.jars`, sets the state-store provider and the options that are given, and adds the extension
    without which Spark keeps `transformWithState` to its own provider, and on an object store has Spark write its own
    logs with one conditional put for an entry, in place of a file that is renamed. What is set on the
    builder already stays as it is; an option that is not given keeps its default (docs/settings.md has them).

    Parameters
    ----------
    builder
        The builder of a classic session. A Spark Connect session gets its provider from its server.
    store
        Completed-checkpoint store: `filesystem`, `zookeeper` or `standalone` (docs/high-availability.md compares them).
    zookeeper_quorum, zookeeper_path, zookeeper_session_timeout
        For the store `zookeeper`: its servers, the node that is ours, and seconds after which a silent driver is dead.
    cleanup
        What becomes of the checkpoints when the query ends, by name.
    on_damage
        What a start does if its checkpoint is damaged: `fail` or `rollBack`.
    timeout
        Seconds after which a checkpoint that is not complete is given up.
    tolerable_failures
        How often in a row the storage may fail before the task that waits for the checkpoint does.
    history
        For how many checkpoints statistics are kept.
    retained
        How many completed checkpoints to keep.
    inline_threshold
        A checkpoint with at most so many bytes of new state keeps them inside `_metadata`.
    max_parallelism
        Number of key groups of a query that starts new.
    ack_threshold
        State up to this many bytes travels to the driver with the task's acknowledgement; more goes to a file.
    max_chain_deltas, max_chain_delta_ratio
        When a new base is due: after so many deltas, or when they outweigh this share of the last base.
    change_feed
        What the change feed can tell of a batch: `outcome` or `writes`.
    bridge_timeout
        Seconds that a task waits for the coordinator's answer.
    python
        The Python that runs the coordinator beside the driver, this one by default; spark_ckpt must be installed in it.

    Returns
    -------
    The same builder.

    Raises
    ------
    SettingError
        An option has a value that it cannot have.
    SessionConfigError
        Something about the builder, or about Spark as it runs already, is in the way.
    UnsupportedSparkError
        There is no jar for the installed version of Spark.
    """
    options: Mapping[config.Setting[Any], object] = {
        config.STORE: store,
        config.ZOOKEEPER_QUORUM: zookeeper_quorum,
        config.ZOOKEEPER_PATH: zookeeper_path,
        config.ZOOKEEPER_SESSION_TIMEOUT: zookeeper_session_timeout,
        config.CLEANUP: cleanup,
        config.ON_DAMAGE: on_damage,
        config.TIMEOUT: timeout,
        config.TOLERABLE_FAILURES: tolerable_failures,
        config.HISTORY: history,
        config.RETAINED: retained,
        config.INLINE_THRESHOLD: inline_threshold,
        config.MAX_PARALLELISM: max_parallelism,
        config.ACK_THRESHOLD: ack_threshold,
        config.MAX_DELTAS: max_chain_deltas,
        config.MAX_DELTA_RATIO: max_chain_delta_ratio,
        config.CHANGE_FEED: change_feed,
        config.BRIDGE_TIMEOUT: bridge_timeout,
        config.PYTHON: sys.executable if python is None else os.fspath(python),
    }
    texts = {setting.key: str(value) for setting, value in options.items() if value is not None}
    config.CheckpointConfig.parse(texts)
    jar = str(jar_path())
    present = _settings_of(builder)
    _refuse_connect(builder, present)
    _refuse_other_provider(present)
    if JARS_KEY not in present:
        _refuse_jars_on_command_line(jar)
    running = _running_driver(jar)
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
    """What the user has set on the builder. PySpark offers no public way to read it back."""
    settings = getattr(builder, "_options", None)
    if not isinstance(settings, dict):
        raise SessionConfigError(
            f"configure() takes a SparkSession.Builder, for example SparkSession.builder, not {type(builder).__name__}"
        )
    return settings


def _refuse_connect(builder: SparkSession.Builder, present: Mapping[str, Any]) -> None:
    """A Connect client has no driver of its own: state-store settings belong to the server's start."""
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


def _refuse_jars_on_command_line(jar: str) -> None:
    """`--jars` in PYSPARK_SUBMIT_ARGS replaces `spark.jars` without a word, and the provider would not be found."""
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    if "--jars" in arguments[:-1] and jar not in arguments[arguments.index("--jars") + 1].split(","):
        raise SessionConfigError(f"PYSPARK_SUBMIT_ARGS has --jars, which replaces spark.jars: add {jar} to it")


def _running_driver(jar: str) -> Mapping[str, str]:
    """The lists of a driver JVM that runs already, by key, after making sure that it finds our classes.

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
    return {key: str(conf.get(key, "")) for key in (JARS_KEY, EXTENSIONS_KEY)}


def _with(ours: str, present: str | Iterable[str]) -> list[str]:
    """The entries of a list, with ours at the end unless it is among them."""
    entries = [entry.strip() for entry in (present.split(",") if isinstance(present, str) else present)]
    return [entry for entry in dict.fromkeys([*entries, ours]) if entry]
