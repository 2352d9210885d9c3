"""The settings of spark-ckpt, all below `spark.sql.streaming.stateStore.ckpt.`: one table, and typed values."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from spark_ckpt.errors import SettingError
from spark_ckpt.keygroups import MAX_PARALLELISM_LIMIT

PREFIX = "spark.sql.streaming.stateStore.ckpt."
"""What the key of every setting begins with. Only settings below `stateStore.` reach Spark's executors."""

MIN_RETAINED = 2
"""Fewest checkpoints kept, whatever `retained` says: `commits/N` may not exist yet when checkpoint N + 1 completes."""

MAX_INLINE_BYTES = 1 << 20
"""Most state bytes inside one `_metadata` (Flink: `FsCheckpointStreamFactory.MAX_FILE_STATE_THRESHOLD`, per handle)."""

MAX_TOLERABLE_FAILURES = 20
"""Most failures in a row that can be tolerated."""

_STORES = ("filesystem", "standalone", "zookeeper")
ROLL_BACK = "rollBack"
"""Value of the setting `onDamage` that makes a query go back by itself."""

_CLEANUPS = ("retain", "deleteOnCancellation", "deleteOnEnd")
_CHANGE_FEEDS = ("outcome", "writes")

T = TypeVar("T")


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One setting.

    Args:
        suffix: its key without `PREFIX`.
        kind: what its values are, for a person.
        default: its value where it is not set; None where that depends on the query.
        doc: what it does, with units.
        parse: from text to value; raises `ValueError` naming the values that are allowed.
    """

    suffix: str
    kind: str
    default: T | None
    doc: str
    parse: Callable[[str], T]

    @property
    def key(self) -> str:
        """The whole key."""
        return PREFIX + self.suffix

    def value(self, settings: Mapping[str, str]) -> T | None:
        """The value in `settings`, or the default.

        Raises:
            SettingError: the text is no value of this setting.
        """
        text = settings.get(self.key)
        if text is None:
            return self.default
        try:
            return self.parse(text.strip())
        except ValueError as e:
            raise SettingError(self.key, str(e)) from None


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    allowed = f"a whole number from {least} to {most}" if most is not None else f"a whole number of {least} or more"

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"'{text}' is not {allowed}") from None
        if value < least or (most is not None and value > most):
            raise ValueError(f"{value} is not {allowed}")
        return value

    return parse


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ValueError(f"'{text}' is not a number above 0")
    return value


def _one_of(*allowed: str) -> Callable[[str], str]:
    names = {name.lower(): name for name in allowed}

    def parse(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(f"'{text}' is not one of: {', '.join(allowed)}")
        return names[text.lower()]

    return parse


def _text(text: str) -> str:
    if not text:
        raise ValueError("an empty value; leave the setting out for its default")
    return text


def _absolute(text: str) -> str:
    if not text.startswith("/") or "//" in text or text.endswith("/"):
        raise ValueError(f"'{text}' is not a path such as /spark-ckpt")
    return text


MAX_PARALLELISM = Setting[int](
    "maxParallelism",
    "whole number",
    None,
    f"Number of key groups of a query that starts new: a multiple of its partitions, at most {MAX_PARALLELISM_LIMIT}. "
    "Fixed from then on. Default: the smallest partitions x 2^j of at least 1024.",
    _whole(1, MAX_PARALLELISM_LIMIT),
)
RETAINED = Setting[int](
    "retained",
    "whole number",
    2,
    f"How many completed checkpoints are kept, {MIN_RETAINED} at least: Spark may need the one before the newest.",
    _whole(1),
)
INLINE_THRESHOLD = Setting[int](
    "inlineThreshold",
    "bytes",
    20 * 1024,
    "A checkpoint whose new state has at most this many bytes leaves it inside `_metadata` and writes no state file. "
    f"All state inside one `_metadata` together stays below {MAX_INLINE_BYTES} bytes. 0: always a file.",
    _whole(0, MAX_INLINE_BYTES),
)
STORE = Setting[str](
    "store",
    "name",
    "filesystem",
    "The completed-checkpoint store. `filesystem`: records beside the checkpoints, with a fence against a second "
    "driver. `zookeeper`: records in ZooKeeper, with a fence; needs `zookeeper.quorum`. `standalone`: no records and "
    "no fence, for a location that only one driver ever uses.",
    _one_of(*_STORES),
)
ZOOKEEPER_QUORUM = Setting[str](
    "zookeeper.quorum",
    "hosts",
    None,
    "ZooKeeper servers as `host:port`, separated by commas. Needed by the store `zookeeper`, used by no other.",
    _text,
)
ZOOKEEPER_PATH = Setting[str](
    "zookeeper.path",
    "path",
    "/spark-ckpt",
    "The node below which the store `zookeeper` keeps a node for each checkpoint location.",
    _absolute,
)
ZOOKEEPER_SESSION_TIMEOUT = Setting[float](
    "zookeeper.sessionTimeout",
    "seconds",
    60.0,
    "After how long without a sign of life ZooKeeper takes a driver for dead. The servers have limits of their own.",
    _positive,
)
CLEANUP = Setting[str](
    "cleanup",
    "name",
    "retain",
    "What becomes of the completed checkpoints when the query ends. `retain`: they stay. `deleteOnCancellation`: they "
    "are deleted if the query is stopped. `deleteOnEnd`: also if it finishes or fails. Without them **the query cannot "
    "be started again from this location**, since Spark's own logs there still name state that is gone. A driver that "
    "ends while the query is active always leaves them, and so does one that another driver has taken over from.",
    _one_of(*_CLEANUPS),
)
ON_DAMAGE = Setting[str](
    "onDamage",
    "name",
    "fail",
    "What a start does if the checkpoint that it begins from is damaged. `fail`: it says which one is whole, and how "
    "to go back. `rollBack`: it goes back to the newest that is whole, as `spark-ckpt rollback` does, and fails all "
    "the same: Spark has chosen its batch already, so **the query has to be started once more**. A sink keeps what "
    "later batches have written.",
    _one_of("fail", ROLL_BACK),
)
TIMEOUT = Setting[float](
    "timeout",
    "seconds",
    None,
    "A checkpoint that is not complete this long after its batch began is given up: acknowledgements that come later "
    "fail their tasks, and so the batch. Default: never, since a batch may rightly take hours.",
    _positive,
)
TOLERABLE_FAILURES = Setting[int](
    "tolerableFailures",
    "whole number",
    2,
    "So many times in a row the storage may fail while a checkpoint is completed, and the coordinator tries again by "
    "itself. One more fails the task that waits for it, which Spark runs `spark.task.maxFailures` times. At most "
    f"{MAX_TOLERABLE_FAILURES}, so that the tries end before `bridge.timeout` does.",
    _whole(0, MAX_TOLERABLE_FAILURES),
)
HISTORY = Setting[int](
    "history",
    "whole number",
    10,
    "For how many checkpoints statistics are kept, failed ones included. They are part of each `_metadata`, with a few "
    "hundred bytes for each; `spark-ckpt history` shows them.",
    _whole(1, 1000),
)
ACK_THRESHOLD = Setting[int](
    "ackThreshold",
    "bytes",
    1 << 20,
    "State of a task up to this many bytes travels to the driver with the acknowledgement; more goes to a file.",
    _whole(0),
)
MAX_DELTAS = Setting[int](
    "chain.maxDeltas", "whole number", 16, "A new base is due after at most this many deltas.", _whole(1, 1000)
)
MAX_DELTA_RATIO = Setting[float](
    "chain.maxDeltaRatio",
    "number",
    1.0,
    "A new base is due when the deltas since the last one have more than this share of its bytes.",
    _positive,
)
CHANGE_FEED = Setting[str](
    "changeFeed",
    "name",
    "outcome",
    "What the change feed of the `statestore` source (`readChangeFeed`) can tell of a batch. `outcome`: what the "
    "batch has made of each key that it changed. `writes`: every write in its order, as with Spark's own providers. "
    "Each one is then part of the batch's delta, also of a key that is written many times, as the counts of a "
    "stream-stream join are. Counts for the batches that are run with it.",
    _one_of(*_CHANGE_FEEDS),
)
PYTHON = Setting[str](
    "python",
    "path",
    None,
    "Python of the side process on the driver. Default: PySpark's driver Python, else python3.",
    _text,
)
BRIDGE_TIMEOUT = Setting[float](
    "bridge.timeout", "seconds", 300.0, "How long a task waits for an answer of the coordinator.", _positive
)

SETTINGS: tuple[Setting[int] | Setting[float] | Setting[str], ...] = (
    MAX_PARALLELISM,
    RETAINED,
    INLINE_THRESHOLD,
    STORE,
    ZOOKEEPER_QUORUM,
    ZOOKEEPER_PATH,
    ZOOKEEPER_SESSION_TIMEOUT,
    CLEANUP,
    ON_DAMAGE,
    TIMEOUT,
    TOLERABLE_FAILURES,
    HISTORY,
    ACK_THRESHOLD,
    MAX_DELTAS,
    MAX_DELTA_RATIO,
    CHANGE_FEED,
    PYTHON,
    BRIDGE_TIMEOUT,
)
"""All settings there are."""


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """The settings of one query. Fields are named after the settings; None where a default depends on the query, or
    where nothing is the default."""

    max_parallelism: int | None = None
    retained: int = 2
    inline_threshold: int = 20 * 1024
    store: str = "filesystem"
    zookeeper_quorum: str | None = None
    zookeeper_path: str = "/spark-ckpt"
    zookeeper_session_timeout: float = 60.0
    cleanup: str = "retain"
    on_damage: str = "fail"
    timeout: float | None = None
    tolerable_failures: int = 2
    history: int = 10
    ack_threshold: int = 1 << 20
    max_deltas: int = 16
    max_delta_ratio: float = 1.0
    change_feed: str = "outcome"
    python: str | None = None
    bridge_timeout: float = 300.0

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> CheckpointConfig:
        """The values of these settings; keys that do not begin with `PREFIX` are not ours and are left alone.

        Raises:
            SettingError: an unknown key, with the nearest known one, a value that the setting cannot have, or one that
                needs another setting.
        """
        known = {setting.key.lower(): setting.key for setting in SETTINGS}
        ours: dict[str, str] = {}
        for key, text in settings.items():
            if not key.lower().startswith(PREFIX.lower()):
                continue
            # Spark's SQLConf keeps the case that the user wrote.
            name = known.get(key.lower())
            if name is None:
                raise SettingError(key, _unknown(key))
            ours[name] = text
        config = cls(
            max_parallelism=MAX_PARALLELISM.value(ours),
            retained=_set(RETAINED, ours),
            inline_threshold=_set(INLINE_THRESHOLD, ours),
            store=_set(STORE, ours),
            zookeeper_quorum=ZOOKEEPER_QUORUM.value(ours),
            zookeeper_path=_set(ZOOKEEPER_PATH, ours),
            zookeeper_session_timeout=_set(ZOOKEEPER_SESSION_TIMEOUT, ours),
            cleanup=_set(CLEANUP, ours),
            on_damage=_set(ON_DAMAGE, ours),
            timeout=TIMEOUT.value(ours),
            tolerable_failures=_set(TOLERABLE_FAILURES, ours),
            history=_set(HISTORY, ours),
            ack_threshold=_set(ACK_THRESHOLD, ours),
            max_deltas=_set(MAX_DELTAS, ours),
            max_delta_ratio=_set(MAX_DELTA_RATIO, ours),
            change_feed=_set(CHANGE_FEED, ours),
            python=PYTHON.value(ours),
            bridge_timeout=_set(BRIDGE_TIMEOUT, ours),
        )
        if config.store == "zookeeper" and config.zookeeper_quorum is None:
            raise SettingError(ZOOKEEPER_QUORUM.key, "the store zookeeper needs it: servers as host:port, with commas")
        return config


def _set(setting: Setting[T], settings: Mapping[str, str]) -> T:
    value = setting.value(settings)
    assert value is not None, setting.key
    return value


def _unknown(key: str) -> str:
    suffix = key[len(PREFIX) :]
    names = {setting.suffix.lower(): setting.suffix for setting in SETTINGS}
    near = difflib.get_close_matches(suffix.lower(), names, n=1, cutoff=0.5)
    if near:
        return f"there is no such setting; did you mean {PREFIX}{names[near[0]]}?"
    return f"there is no such setting; there are {', '.join(sorted(names.values()))}"
