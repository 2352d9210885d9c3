"""The table of settings, all below `spark.sql.streaming.stateStore.ckpt.`; docs/settings.md is written from it."""

from __future__ import annotations

from spark_ckpt.config.kinds import Setting, absolute, one_of, positive, seconds, servers, size, some_text, whole
from spark_ckpt.format.key_groups import MAX_PARALLELISM_LIMIT

MIN_RETAINED = 2
"""Fewest checkpoints kept, whatever `retained` says: `commits/N` may not exist yet when checkpoint N + 1 completes."""

MAX_INLINE_BYTES = 1 << 20
"""Most state bytes inside one `_metadata` (Flink: `FsCheckpointStreamFactory.MAX_FILE_STATE_THRESHOLD`, per handle)."""

MAX_ACK_BYTES = 256 << 20
"""Most state bytes of one segment inside an acknowledgement."""

MAX_ACK_MEMORY = 1 << 40
"""Most memory that can be set for the state of a batch that travels with acknowledgements."""

MAX_TOLERABLE_FAILURES = 20
"""Most failures in a row that can be tolerated."""

_STORES = ("filesystem", "standalone", "zookeeper")
ROLL_BACK = "rollBack"
"""Value of the setting `onDamage` that makes a query go back by itself."""

_CLEANUPS = ("retain", "deleteOnCancellation", "deleteOnEnd")
_CHANGE_FEEDS = ("outcome", "writes")

MAX_PARALLELISM = Setting[int](
    "maxParallelism",
    "count",
    None,
    f"Number of key groups of a new query: a multiple of its partitions, at most {MAX_PARALLELISM_LIMIT}. Fixed "
    "from then on. Default: the smallest partitions x 2^j of at least 1024.",
    whole(1, MAX_PARALLELISM_LIMIT),
)
RETAINED = Setting[int](
    "retained",
    "count",
    2,
    f"Number of completed checkpoints to keep, at least {MIN_RETAINED}: Spark may need the one before the newest. "
    "Cannot be combined with `cleanup=deleteOnEnd`, which leaves none.",
    whole(MIN_RETAINED),
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
    "fence, for a location that only one driver ever uses.",
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
    "Session timeout: ZooKeeper takes a driver for dead after this time without a heartbeat. The servers have "
    "limits of their own. Must be shorter than `bridge.timeout`.",
    seconds,
)
ZOOKEEPER_CLIENT_FILE = Setting[str](
    "zookeeper.clientFile",
    "path",
    None,
    "JSON file on the driver with the identity and TLS files for ZooKeeper: credentials belong there, not in "
    "Spark's settings ([example](high-availability.md#identity-and-encryption)). Without it, nodes are open to all "
    "clients of the ensemble.",
    absolute,
)
CLEANUP = Setting[str](
    "cleanup",
    "name",
    "retain",
    "Retention after the query ends. `retain`: completed checkpoints stay. `deleteOnCancellation`: they are "
    "deleted if the query is stopped. `deleteOnEnd`: also if it finishes or fails. Without them **the query cannot "
    "be started again from this location**, since Spark's own logs still name the deleted state. A driver that "
    "ends while the query is active always leaves them, and so does one that another driver has taken over from.",
    one_of(*_CLEANUPS),
)
ON_DAMAGE = Setting[str](
    "onDamage",
    "name",
    "fail",
    "Action if the checkpoint that a query starts from, or its record, is damaged. `fail`: the error names the "
    "newest undamaged checkpoint and the command to roll back. `rollBack`: the query rolls back to it, as "
    "`spark-ckpt rollback` does, and still fails: Spark has already chosen its batch, so **start the query once "
    "more**. A sink keeps the output of later batches.",
    one_of("fail", ROLL_BACK),
)
TIMEOUT = Setting[float](
    "timeout",
    "duration",
    None,
    "Time from the start of a batch until an incomplete checkpoint is aborted. Later acknowledgements fail their "
    "tasks, and so the batch. Default: never, since a batch may take hours.",
    seconds,
)
TOLERABLE_FAILURES = Setting[int](
    "tolerableFailures",
    "count",
    2,
    "Consecutive storage failures tolerated while a checkpoint is completed; the coordinator retries by itself. "
    "One more fails the task that waits for it, which Spark runs `spark.task.maxFailures` times. At most "
    f"{MAX_TOLERABLE_FAILURES}, and their pauses must fit into `bridge.timeout`.",
    whole(0, MAX_TOLERABLE_FAILURES),
)
HISTORY = Setting[int](
    "history",
    "count",
    10,
    "Number of checkpoints whose statistics are kept, failed ones included. Each `_metadata` holds them, a few "
    "hundred bytes for each; `spark-ckpt history` shows them.",
    whole(1, 1000),
)
ACK_THRESHOLD = Setting[int](
    "ackThreshold",
    "size",
    1 << 20,
    "Largest state of a task that travels to the driver with the acknowledgement; more goes to a file. With many "
    f"tasks `ackMemory` lowers the limit. At most {MAX_ACK_BYTES}: a message carries a delta and a base, and must "
    "stay well below 2 GiB.",
    size(0, MAX_ACK_BYTES),
)
ACK_MEMORY = Setting[int](
    "ackMemory",
    "size",
    128 << 20,
    "Memory for the state of one batch that travels with acknowledgements. The driver's JVM holds it until the "
    "checkpoint is complete, and so does the side process. Half is for deltas and half for base snapshots, in "
    "equal shares for all stores of all tasks; a store with more than its share writes a file.",
    size(0, MAX_ACK_MEMORY),
)
MAX_DELTAS = Setting[int](
    "chain.maxDeltas",
    "count",
    16,
    "Number of deltas after which a new base snapshot is due at the latest; it is written in the background. A "
    "task whose chain has twice as many (four more, if that is longer) waits for its base, and fails if it cannot "
    "be written: a restart never loads more deltas than that.",
    whole(1, 1000),
)
MAX_DELTA_RATIO = Setting[float](
    "chain.maxDeltaRatio",
    "number",
    1.0,
    "Ratio of delta bytes to base bytes above which a new base snapshot is due.",
    positive,
)
CHANGE_FEED = Setting[str](
    "changeFeed",
    "name",
    "outcome",
    "Content of the change feed of the `statestore` source (`readChangeFeed`). `outcome`: the final value of each "
    "key that a batch changed. `writes`: every write in order, as with Spark's own providers. Each write is then "
    "part of the batch's delta, also of a key that is written many times, such as the counts of a stream-stream "
    "join. Applies to batches run with it.",
    one_of(*_CHANGE_FEEDS),
)
PYTHON = Setting[str](
    "python",
    "path",
    None,
    "Python of the side process on the driver. Default: PySpark's driver Python, else python3.",
    some_text,
)
BRIDGE_TIMEOUT = Setting[float](
    "bridge.timeout",
    "duration",
    300.0,
    "Time that a task waits for an answer of the coordinator, and for another task that has the same store open.",
    seconds,
)

SETTINGS: tuple[Setting[int] | Setting[float] | Setting[str], ...] = (
    MAX_PARALLELISM,
    RETAINED,
    INLINE_THRESHOLD,
    STORE,
    ZOOKEEPER_QUORUM,
    ZOOKEEPER_PATH,
    ZOOKEEPER_SESSION_TIMEOUT,
    ZOOKEEPER_CLIENT_FILE,
    CLEANUP,
    ON_DAMAGE,
    TIMEOUT,
    TOLERABLE_FAILURES,
    HISTORY,
    ACK_THRESHOLD,
    ACK_MEMORY,
    MAX_DELTAS,
    MAX_DELTA_RATIO,
    CHANGE_FEED,
    PYTHON,
    BRIDGE_TIMEOUT,
)
"""All settings."""
