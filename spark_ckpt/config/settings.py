"""The table of settings, all below `spark.sql.streaming.stateStore.ckpt.`, and the source of docs/settings.md."""

from __future__ import annotations

from spark_ckpt.config.value_parsers import (
    Setting,
    absolute,
    at_least,
    one_of,
    positive,
    seconds,
    servers,
    size,
    size_or_share,
    some_text,
    whole,
)
from spark_ckpt.format.key_groups import MAX_PARALLELISM_LIMIT

MIN_RETAINED = 2
"""Minimum number of retained checkpoints: `commits/N` may not exist yet when checkpoint N + 1 completes."""

MAX_INLINE_BYTES = 1 << 20
"""Most state bytes inside one `_metadata` (Flink: `FsCheckpointStreamFactory.MAX_FILE_STATE_THRESHOLD`, per handle)."""

MAX_ACK_BYTES = 256 << 20
"""Most state bytes of one segment inside an acknowledgement."""

MAX_ACK_MEMORY = 1 << 40
"""Largest memory for the state of a batch inside acknowledgements."""

MAX_MEMORY_BUDGET = 1 << 50
"""Largest memory for the state of an executor."""

MAX_MEMORY_PERCENT = 90
"""Largest share of an executor's heap for state."""

MAX_TOLERABLE_FAILURES = 20
"""Most tolerable consecutive failures."""

MIN_SILENCE_SECONDS = 1.0
"""Shortest silence of a side process that counts as its end."""

_STORES = ("filesystem", "standalone", "zookeeper")
ROLL_BACK = "rollBack"
"""Value of the setting `onDamage` for automatic rollback."""

EXPERIMENTAL = "experimental"
"""Value of the setting `realTimeMode` that permits state in real-time mode."""

_CLEANUPS = ("retain", "deleteOnCancellation", "deleteOnEnd")
_CODECS = ("none", "lz4", "zstd")
_CHANGE_FEEDS = ("outcome", "writes")

MAX_PARALLELISM = Setting[int](
    "maxParallelism",
    "count",
    None,
    f"Number of key groups of a new query, fixed from its first batch: a multiple of its partitions, at most "
    f"{MAX_PARALLELISM_LIMIT}. Default: the smallest partitions x 2^j of at least 1024.",
    whole(1, MAX_PARALLELISM_LIMIT),
)
RETAINED = Setting[int](
    "retained",
    "count",
    2,
    f"Number of completed checkpoints to keep, at least {MIN_RETAINED}: Spark may need the one before the newest. "
    "On object stores and HDFS, up to fifteen more for at most a minute. Cannot be combined with "
    "`cleanup=deleteOnEnd`.",
    whole(MIN_RETAINED),
)
RETAINED_AGE = Setting[float](
    "retainedAge",
    "duration",
    None,
    "Age up to which completed checkpoints are kept besides the newest `retained`, counted from the newest one, so "
    "that an idle query keeps its own. Each is one more record and `_metadata`, read again at every start "
    "([cost](reading-state.md#earlier-checkpoints)). Default: none is kept for its age.",
    seconds,
)
INLINE_THRESHOLD = Setting[int](
    "inlineThreshold",
    "size",
    20 * 1024,
    "Largest amount of new state that a checkpoint keeps inside `_metadata` instead of a state file. All state "
    f"inside one `_metadata` together stays below {MAX_INLINE_BYTES} bytes. 0: always a file.",
    size(0, MAX_INLINE_BYTES),
)
STORE = Setting[str](
    "store",
    "name",
    "filesystem",
    "Completed-checkpoint store. `filesystem`: records beside the checkpoints, fenced against a second driver. "
    "`zookeeper`: records in ZooKeeper, fenced; requires `zookeeper.quorum`. `standalone`: no records and no "
    "fence, for a location used by a single driver.",
    one_of(*_STORES),
)
ZOOKEEPER_QUORUM = Setting[str](
    "zookeeper.quorum",
    "hosts",
    None,
    "ZooKeeper servers as `host:port`, separated by commas. Required by the store `zookeeper`; rejected with "
    "another store, as are the other `zookeeper.` settings.",
    servers,
)
ZOOKEEPER_PATH = Setting[str](
    "zookeeper.path",
    "path",
    "/spark-ckpt",
    "Parent node in ZooKeeper. The store `zookeeper` keeps one node below it for each checkpoint location.",
    absolute,
)
ZOOKEEPER_SESSION_TIMEOUT = Setting[float](
    "zookeeper.sessionTimeout",
    "duration",
    60.0,
    "Session timeout: ZooKeeper declares a driver dead after this time without a heartbeat. The servers impose "
    "their own limits. Must be shorter than `bridge.timeout`.",
    seconds,
)
ZOOKEEPER_CLIENT_FILE = Setting[str](
    "zookeeper.clientFile",
    "path",
    None,
    "JSON file on the driver with the identity and TLS files for ZooKeeper: credentials belong there, not in "
    "Spark's settings ([example](high-availability.md#identity-and-encryption)). Without it, all clients of the "
    "ensemble can read and change the nodes.",
    absolute,
)
CLEANUP = Setting[str](
    "cleanup",
    "name",
    "retain",
    "Retention after the query ends. `retain`: completed checkpoints stay. `deleteOnCancellation`: they are "
    "deleted if the query is stopped. `deleteOnEnd`: also if it finishes or fails. After the deletion **the query "
    "cannot be restarted from this location**, because Spark's own logs still name the deleted state. Checkpoints "
    "always stay if the driver ends while the query is active, or another driver has taken over.",
    one_of(*_CLEANUPS),
)
ON_DAMAGE = Setting[str](
    "onDamage",
    "name",
    "fail",
    "Action if the checkpoint that a query starts from, or its record, is damaged. `fail`: the error names the "
    "newest undamaged checkpoint and the command to roll back. `rollBack`: the query rolls back to it, as "
    "`spark-ckpt rollback` does, but this start still fails, because Spark has already chosen its batch: **start the "
    "query again**. Sinks keep the output of later batches.",
    one_of("fail", ROLL_BACK),
)
ON_QUERY_CHANGE = Setting[str](
    "onQueryChange",
    "name",
    "fail",
    "Action if a query starts from state that means something else to it, in a way that Spark does not notice: "
    "`sum(w)` in place of `sum(v)`, another key expression or window, sources that have changed places. `fail`: the "
    "error names each change and the command that converts the state. `warn`: it is a warning, and the state mixes "
    "rows of both meanings. After an upgrade of Spark, whose texts of plans differ, it is always a warning.",
    one_of("fail", "warn"),
)
TIMEOUT = Setting[float](
    "timeout",
    "duration",
    None,
    "Time from the start of a batch until an incomplete checkpoint is aborted. Later acknowledgements fail their "
    "tasks, and with them the batch. In real-time mode it begins after the interval of the trigger. Default: no "
    "timeout, since a batch may take hours.",
    seconds,
)
TOLERABLE_FAILURES = Setting[int](
    "tolerableFailures",
    "count",
    2,
    "Consecutive storage failures tolerated while a checkpoint is completed; the coordinator retries. One more "
    "failure fails the waiting task, which Spark runs `spark.task.maxFailures` times. At most "
    f"{MAX_TOLERABLE_FAILURES}; the pauses between retries must fit into `bridge.timeout`.",
    whole(0, MAX_TOLERABLE_FAILURES),
)
HISTORY = Setting[int](
    "history",
    "count",
    10,
    "Number of checkpoints, completed or failed, to keep statistics of. They take a few hundred bytes per "
    "checkpoint in each `_metadata`; `spark-ckpt history` shows them.",
    whole(1, 1000),
)
ACK_THRESHOLD = Setting[int](
    "ackThreshold",
    "size",
    1 << 20,
    "Largest new state that a task sends to the driver inside its acknowledgement; larger state goes to a file. With "
    f"many tasks `ackMemory` lowers the limit. At most {MAX_ACK_BYTES}: a message carries a delta and a base, and "
    "must stay well below 2 GiB.",
    size(0, MAX_ACK_BYTES),
)
ACK_MEMORY = Setting[int](
    "ackMemory",
    "size",
    128 << 20,
    "Memory for the state of one batch inside acknowledgements. Both the driver's JVM and the side process hold it "
    "until the checkpoint completes. Half is for deltas and half for base snapshots, in equal shares for all stores "
    "of all tasks; a store that exceeds its share writes a file.",
    size(0, MAX_ACK_MEMORY),
)
MEMORY_BUDGET = Setting[str](
    "memory.budget",
    "size or share",
    "40%",
    "Memory for the state of all stores of an executor together: a size, a share of the executor's heap, or `none`. "
    "Beyond it, state that did not change recently moves to files in Spark's local directories "
    "([how](local-disk.md)). The index of all keys stays in memory, at most 15 bytes a key. `none`: all state stays in "
    "memory.",
    size_or_share(MAX_MEMORY_BUDGET, MAX_MEMORY_PERCENT, "none"),
)
MAX_DELTAS = Setting[int](
    "chain.maxDeltas",
    "count",
    16,
    "Number of deltas that the chain of a subtask may have, which a restart loads after the base. Where the base has "
    "128 KiB or more, neighbouring deltas are merged in the background; a larger number writes less. A smaller state "
    "gets a new base snapshot instead. At twice as many (at least four more), and at 16 times as many with merges, a "
    "task waits for its base, and fails if the base cannot be written.",
    whole(1, 1000),
)
MAX_DELTA_RATIO = Setting[float](
    "chain.maxDeltaRatio",
    "number",
    1.0,
    "Ratio of delta bytes to base bytes above which a new base snapshot is due. A larger one writes less, and makes a "
    "restart read more.",
    positive,
)
RESTORE = Setting[str](
    "restore",
    "name",
    "lazy",
    "Load of state at a start. `lazy`: the first batch of a store loads the rows that it touches, or everything "
    "once it touches many, iterates over the state, or uses column families; the rest follows in the background or "
    "with the second batch ([restart](architecture.md#restart)). `eager`: everything before the first batch.",
    one_of("lazy", "eager"),
)
COMPRESSION = Setting[str](
    "compression",
    "name",
    "lz4",
    "Compression of new state in files and in `_metadata`: `lz4`, `zstd` or `none`. LZ4 costs batches nothing that can "
    "be measured; Zstandard writes about a third less, for more work of the executors. A query may change it at any "
    "start, and releases before 0.2.0 cannot read compressed state.",
    one_of(*_CODECS),
)
CHANGE_FEED = Setting[str](
    "changeFeed",
    "name",
    "outcome",
    "Content of the change feed of the `statestore` source (`readChangeFeed`). `outcome`: the final value of each "
    "key that a batch changed. `writes`: every write in order, as with Spark's own providers. Deltas then contain "
    "every write, even repeated writes of one key, such as the counts of a stream-stream join. Applies to batches run "
    "with this setting.",
    one_of(*_CHANGE_FEEDS),
)
REAL_TIME_MODE = Setting[str](
    "realTimeMode",
    "name",
    "refused",
    "Queries with state in Spark's real-time mode (Spark 4.3). `refused`: they fail at their start. `experimental`: "
    "they run, on a checkpoint location that was begun with another trigger ([how](real-time-mode.md)). Spark itself "
    "supports only its RocksDB provider there, and a later release of Spark may close this way.",
    one_of("refused", EXPERIMENTAL),
)
PYTHON = Setting[str](
    "python",
    "path",
    None,
    "Python of the side process on the driver. Default: PySpark's driver Python, or python3.",
    some_text,
)
BRIDGE_TIMEOUT = Setting[float](
    "bridge.timeout",
    "duration",
    300.0,
    "Time that a task waits for an answer of the coordinator, or for another task to release the same store.",
    seconds,
)
BRIDGE_SILENCE = Setting[float](
    "bridge.silence",
    "duration",
    120.0,
    "Time without any sign of life after which the driver kills its side process and starts another, which continues "
    "with the same checkpoints. The process answers the driver every few seconds however long its storages take, so "
    "only one that hangs is silent. Time in which the driver stands still itself does not count. One process serves "
    "the whole application: its own setting counts, or else that of its first query. At least "
    f"{MIN_SILENCE_SECONDS:g}s.",
    at_least(MIN_SILENCE_SECONDS),
)
LOG_LEVEL = Setting[str](
    "log.level",
    "name",
    "info",
    "Lowest level that the coordinator logs for this query: `debug`, `info`, `warning` or `error`. `debug` adds each "
    "message of the driver with its duration. Spark's own log settings apply as well: they decide what the driver "
    "prints ([log](operations.md#log)).",
    one_of("debug", "info", "warning", "error"),
)
LOG_FORMAT = Setting[str](
    "log.format",
    "name",
    "text",
    "Format of the coordinator's records in the driver's log: `text`, or `json`, one line per record with query, run, "
    "location, batch and checkpoint as fields.",
    one_of("text", "json"),
)
TRACING = Setting[str](
    "tracing",
    "name",
    "off",
    "Spans of checkpoints: `off`, or `otel` for [OpenTelemetry](metrics.md#opentelemetry) (extra `otel`).",
    one_of("off", "otel"),
)

SETTINGS: tuple[Setting[int] | Setting[float] | Setting[str], ...] = (
    MAX_PARALLELISM,
    RETAINED,
    RETAINED_AGE,
    INLINE_THRESHOLD,
    STORE,
    ZOOKEEPER_QUORUM,
    ZOOKEEPER_PATH,
    ZOOKEEPER_SESSION_TIMEOUT,
    ZOOKEEPER_CLIENT_FILE,
    CLEANUP,
    ON_DAMAGE,
    ON_QUERY_CHANGE,
    TIMEOUT,
    TOLERABLE_FAILURES,
    HISTORY,
    ACK_THRESHOLD,
    ACK_MEMORY,
    MEMORY_BUDGET,
    MAX_DELTAS,
    MAX_DELTA_RATIO,
    RESTORE,
    COMPRESSION,
    CHANGE_FEED,
    REAL_TIME_MODE,
    PYTHON,
    BRIDGE_TIMEOUT,
    BRIDGE_SILENCE,
    LOG_LEVEL,
    LOG_FORMAT,
    TRACING,
)
"""All settings."""
