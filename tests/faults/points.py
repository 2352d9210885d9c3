"""Points at which a fault can strike a running query, the faults, and the expected outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from tests.support.provider import CKPT_PREFIX


class Kind(Enum):
    """The fault at a point."""

    ERROR = "error"
    DROPPED = "request lost"
    LOST = "answer lost"
    LATE = "late"
    KILL = "coordinator killed"
    KILL_DRIVER = "driver killed"
    HANG = "coordinator hangs"
    POISON = "coordinator killed each time"
    TRUNCATED = "file truncated"
    DELETED = "file deleted"


class Place(Enum):
    """The part struck by the fault."""

    STORAGE = "an operation of the coordinator's storage"
    REQUEST = "a message on its way to the coordinator"
    REPLY = "an answer on its way back"
    SHARED = "the directory that executors write their state files to, from a message to the coordinator on"
    SINK = "the sink of the query, after the checkpoint is complete and before Spark commits the batch"
    LOCAL_DISK = "a file of the driver's JVM: with state on the local disk, or written by its background thread"


WENT_ON = "went on"
RETRIED = "task retried"
RESTARTED = "driver restarted"
EITHER = f"{WENT_ON} or {RETRIED}"
"""Outcome of a fault that strikes a task or a notification, whichever is first to fold a batch."""


def failed(error: str) -> str:
    """Outcome of a query that ended with an error and was started again."""
    return f"query failed with {error}, restarted"


@dataclass(frozen=True)
class Point:
    """A moment in the life of a checkpoint.

    A query under test has a few runs. The fault strikes once, in the second run; a poisonous message strikes again each
    time it is repeated, until the query has ended.

    Args:
        name: name for people.
        place: the part struck.
        what: the storage operation, the kind of message, or the moment on the local disk (`StruckDisk.java`).
        outcomes: outcomes by kind of fault; kinds that make no sense here are left out.
        pattern: regular expression to search for in the file name.
        skip: number of such moments in the run before the one struck.
        after: an operation and a pattern, for a point that is reached only if the answer to that operation gets lost:
            `skip` counts those operations, and the first `what` after the lost answer is struck.
        settings: settings of the query under test, without our common prefix.
        runs: number of input files for each run of the query, one file per batch.
        beside: whether another query runs in the same driver, which must remain unaffected.
        rows: number of rows in the first batch beyond those of any other, for a state whose deltas are merged.
    """

    name: str
    place: Place
    what: str
    outcomes: Mapping[Kind, str]
    pattern: str = ""
    skip: int = 0
    after: tuple[str, str] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[int, ...] = (3, 4, 1)
    beside: bool = False
    rows: int = 0


RECORD = r"^ckpt/completed/[0-9]{20}\.json$"
METADATA = r"^ckpt/chk-[0-9-]+/_metadata$"

PARTITIONS = 4
ACKS = 2 * PARTITIONS
"""Acks of one batch: one per partition from each of the two operators."""

REPEATED = ("ack", "locate")
"""Messages repeated by a task's next attempt, so that a late one can be overtaken."""

PATIENCE_SECONDS = 15
"""Timeout of a task for an answer that will be overtaken, in seconds."""

HANGS_FOR = "10s"
"""Silence after which the driver replaces a coordinator that hangs. It counts for the whole driver."""

_ONE_BATCH = (1, 1, 1, 1, 1)
_STRICT = {"tolerableFailures": "0"}
_FILES = {"inlineThreshold": "0"}
_BASES = _FILES | {"chain.maxDeltas": "2"}
_EXECUTORS_WRITE = _FILES | {"ackThreshold": "0"}
_FEW = _FILES | {"retained": "2"}
_BACKGROUND = _EXECUTORS_WRITE | {"chain.maxDeltas": "2"}
_MERGES = _EXECUTORS_WRITE | {"chain.maxDeltas": "8"}


def _storage(error: str, late: str) -> dict[Kind, str]:
    return {Kind.ERROR: error, Kind.LATE: late, Kind.KILL: WENT_ON}


def _create(error: str) -> dict[Kind, str]:
    """Outcomes of a create: the coordinator resolves an unknown outcome by itself."""
    return _storage(error, WENT_ON) | {Kind.DROPPED: WENT_ON, Kind.LOST: WENT_ON}


def _write(unknown: str) -> dict[Kind, str]:
    """Outcomes of a write. It does not matter if a failed write was carried out: its file name is never reused."""
    return _storage(unknown, unknown) | {Kind.LOST: unknown}


_MESSAGE = {
    Kind.ERROR: RETRIED,
    Kind.LATE: RETRIED,
    Kind.KILL: WENT_ON,
    Kind.KILL_DRIVER: RESTARTED,
    Kind.HANG: WENT_ON,
}

POINTS = (
    # Start of a run.
    Point("log: list it", Place.STORAGE, "list", _storage(RETRIED, WENT_ON), "^ckpt/completed$"),
    Point("log: read a record", Place.STORAGE, "read", _storage(RETRIED, WENT_ON), RECORD),
    Point("checkpoint to start from: read `_metadata`", Place.STORAGE, "read", _storage(RETRIED, WENT_ON), METADATA),
    Point("claim: create", Place.STORAGE, "create", _create(RETRIED), RECORD),
    Point(
        "claim: created, read the log again",
        Place.STORAGE,
        "list",
        _storage(RETRIED, WENT_ON) | {Kind.KILL_DRIVER: RESTARTED},
        "^ckpt/completed$",
        skip=2,
    ),
    # Start of a batch.
    Point("trigger: on its way", Place.REQUEST, "trigger", _MESSAGE | {Kind.LATE: WENT_ON}, skip=1),
    Point("trigger: its answer", Place.REPLY, "trigger", _MESSAGE | {Kind.LATE: WENT_ON}, skip=1),
    Point("locate: on its way", Place.REQUEST, "locate", _MESSAGE, skip=2),
    Point("locate: its answer", Place.REPLY, "locate", _MESSAGE, skip=2),
    # Acks arrive.
    Point("first ack: on its way", Place.REQUEST, "ack", _MESSAGE, skip=ACKS),
    Point("first ack: its answer", Place.REPLY, "ack", _MESSAGE, skip=ACKS),
    Point("half of an operator's acks", Place.REQUEST, "ack", _MESSAGE, skip=ACKS + 2),
    Point("between two operators", Place.REQUEST, "ack", _MESSAGE, skip=ACKS + PARTITIONS),
    Point("last ack: on its way", Place.REQUEST, "ack", _MESSAGE, skip=2 * ACKS - 1),
    Point(
        "executor: write a state file",
        Place.SHARED,
        "trigger",
        {Kind.ERROR: RETRIED},
        skip=1,
        settings=_EXECUTORS_WRITE,
    ),
    Point(
        "executor: state file written, ack on its way",
        Place.REQUEST,
        "ack",
        _MESSAGE,
        skip=ACKS + 1,
        settings=_EXECUTORS_WRITE,
    ),
    # The checkpoint is written.
    Point(
        "state file of an executor: look at its size",
        Place.STORAGE,
        "size",
        _storage(RETRIED, WENT_ON),
        "^ckpt/shared/delta-",
        skip=ACKS + 3,
        settings=_EXECUTORS_WRITE | _STRICT,
    ),
    Point(
        "merged segments: write",
        Place.STORAGE,
        "write",
        _write(RETRIED),
        "^ckpt/shared/merged-",
        skip=1,
        settings=_FILES | _STRICT,
    ),
    Point(
        "merged segments: write, a failure tolerated",
        Place.STORAGE,
        "write",
        _write(WENT_ON),
        "^ckpt/shared/merged-",
        skip=1,
        settings=_FILES,
    ),
    Point(
        "merged segments with bases: write",
        Place.STORAGE,
        "write",
        _write(RETRIED),
        "^ckpt/shared/merged-",
        skip=2,
        settings=_BASES | _STRICT,
    ),
    Point("`_metadata`: create", Place.STORAGE, "create", _create(RETRIED), METADATA, 1, settings=_STRICT),
    Point(
        "record: create",
        Place.STORAGE,
        "create",
        _create(RETRIED) | {Kind.KILL_DRIVER: RESTARTED},
        RECORD,
        skip=2,
        settings=_STRICT,
    ),
    Point(
        "record: outcome unknown, read it back",
        Place.STORAGE,
        "read",
        _storage(WENT_ON, WENT_ON) | {Kind.KILL_DRIVER: RESTARTED},
        RECORD,
        skip=2,
        after=("create", RECORD),
    ),
    Point("record: create, a failure tolerated", Place.STORAGE, "create", {Kind.ERROR: WENT_ON}, RECORD, skip=2),
    Point(
        "notification of a complete checkpoint",
        Place.REPLY,
        "notify",
        {Kind.DROPPED: WENT_ON, Kind.LATE: WENT_ON, Kind.KILL: WENT_ON, Kind.KILL_DRIVER: RESTARTED},
    ),
    Point("last ack: its answer", Place.REPLY, "ack", _MESSAGE, skip=2 * ACKS - 1),
    Point(
        "checkpoint complete, commit of Spark to come",
        Place.SINK,
        "write",
        {
            Kind.ERROR: failed("FOREACH_BATCH_USER_FUNCTION_ERROR"),
            Kind.LATE: WENT_ON,
            Kind.KILL: WENT_ON,
            Kind.KILL_DRIVER: RESTARTED,
        },
        skip=1,
    ),
    # Old checkpoints are subsumed.
    Point(
        "subsuming: look for another owner",
        Place.STORAGE,
        "read",
        _storage(WENT_ON, WENT_ON),
        RECORD,
        skip=4,  # at its start the run reads a claim, two checkpoints, and its own claim
        settings=_FEW,
    ),
    Point(
        "subsuming: delete the record",
        Place.STORAGE,
        "delete",
        _storage(WENT_ON, WENT_ON) | {Kind.KILL_DRIVER: RESTARTED},
        RECORD,
        settings=_FEW,
    ),
    Point(
        "subsuming: delete files",
        Place.STORAGE,
        "delete",
        _storage(WENT_ON, WENT_ON) | {Kind.KILL_DRIVER: RESTARTED},
        "^ckpt/(chk-|shared/)",
        settings=_FEW,
    ),
    # Runs of one batch, as started by a scheduler. The second run claims, and runs the second batch.
    Point("run of one batch: claim", Place.STORAGE, "create", {Kind.LATE: WENT_ON}, RECORD, runs=_ONE_BATCH),
    Point(
        "run of one batch: merged segments with bases",
        Place.STORAGE,
        "write",
        {Kind.ERROR: RETRIED, Kind.KILL: WENT_ON},
        "^ckpt/shared/merged-",
        settings=_FILES | _STRICT | {"chain.maxDeltas": "1"},
        runs=_ONE_BATCH,
    ),
    Point(
        "run of one batch: record",
        Place.STORAGE,
        "create",
        {Kind.LOST: WENT_ON, Kind.KILL: WENT_ON, Kind.KILL_DRIVER: RESTARTED},
        RECORD,
        skip=1,
        runs=_ONE_BATCH,
    ),
    Point("run of one batch: last ack", Place.REQUEST, "ack", {Kind.KILL: WENT_ON}, skip=ACKS - 1, runs=_ONE_BATCH),
    Point(
        "run of one batch: close", Place.REQUEST, "close", {Kind.ERROR: WENT_ON, Kind.KILL: WENT_ON}, runs=_ONE_BATCH
    ),
    # Several queries in one driver share the side process.
    Point("beside another query: first ack", Place.REQUEST, "ack", {Kind.KILL: WENT_ON}, skip=ACKS, beside=True),
    Point("beside another query: record", Place.STORAGE, "create", {Kind.KILL: WENT_ON}, RECORD, skip=2, beside=True),
    Point(
        "beside another query: a poisonous ack",
        Place.REQUEST,
        "ack",
        {Kind.POISON: failed("BridgeError")},
        skip=ACKS,
        beside=True,
    ),
    Point("a poisonous trigger", Place.REQUEST, "trigger", {Kind.POISON: failed("BridgeError")}, skip=1),
    # State on the local disk. An error of a write is a full disk.
    Point(
        "local disk: evict a page",
        Place.LOCAL_DISK,
        "evict",
        {Kind.ERROR: RETRIED, Kind.KILL_DRIVER: RESTARTED},
        skip=1,
    ),
    Point(
        "local disk: read a row",
        Place.LOCAL_DISK,
        "read",
        {Kind.ERROR: RETRIED, Kind.TRUNCATED: RETRIED, Kind.DELETED: WENT_ON},
        skip=1,
    ),
    Point(
        "local disk: read a page to reclaim space",
        Place.LOCAL_DISK,
        "reclaim",
        {Kind.ERROR: EITHER, Kind.KILL_DRIVER: RESTARTED, Kind.TRUNCATED: EITHER},
        skip=1,
    ),
    Point(
        "local disk: move the rows of a page",
        Place.LOCAL_DISK,
        "move",
        {Kind.ERROR: EITHER, Kind.KILL_DRIVER: RESTARTED},
    ),
    Point(
        "base: sort it in a file",
        Place.LOCAL_DISK,
        "sort",
        {Kind.ERROR: WENT_ON, Kind.KILL_DRIVER: RESTARTED, Kind.TRUNCATED: WENT_ON, Kind.DELETED: WENT_ON},
        skip=2,
        settings=_BACKGROUND,
    ),
    Point(
        "base: write its file",
        Place.LOCAL_DISK,
        "base",
        {Kind.ERROR: WENT_ON, Kind.KILL_DRIVER: RESTARTED},
        settings=_BACKGROUND,
    ),
    Point(
        "merged deltas: write their file",
        Place.LOCAL_DISK,
        "merge",
        {Kind.ERROR: WENT_ON, Kind.KILL_DRIVER: RESTARTED},
        settings=_MERGES,
        runs=(3, 12, 1),
        rows=20_000,
    ),
    # End of the run.
    Point("close: on its way", Place.REQUEST, "close", dict.fromkeys((Kind.ERROR, Kind.LATE, Kind.KILL), WENT_ON)),
)


REAL_TIME_POINTS = (
    Point(
        "real time: ack on its way",
        Place.REQUEST,
        "ack",
        {Kind.ERROR: failed("InjectedError"), Kind.KILL: WENT_ON},
    ),
    Point(
        "real time: all acks there, end offsets on their way",
        Place.REQUEST,
        "end_offsets",
        {Kind.ERROR: failed("InjectedError"), Kind.LATE: WENT_ON, Kind.KILL: WENT_ON, Kind.KILL_DRIVER: RESTARTED},
    ),
    Point(
        "real time: `_metadata`: create",
        Place.STORAGE,
        "create",
        {Kind.LOST: WENT_ON, Kind.KILL: WENT_ON},
        METADATA,
    ),
    Point(
        "real time: record: create",
        Place.STORAGE,
        "create",
        {Kind.LOST: WENT_ON, Kind.LATE: WENT_ON, Kind.KILL: WENT_ON, Kind.KILL_DRIVER: RESTARTED},
        RECORD,
    ),
    Point(
        "real time: record durable, answer to the end offsets",
        Place.REPLY,
        "end_offsets",
        {Kind.ERROR: failed("InjectedError"), Kind.LATE: WENT_ON, Kind.KILL: WENT_ON, Kind.KILL_DRIVER: RESTARTED},
    ),
)
"""Points of the two steps in real-time mode (docs/protocol.md, section 1.3). The fault strikes a running query."""


@dataclass(frozen=True)
class Cell:
    """A point with one kind of fault."""

    point: Point
    kind: Kind

    @property
    def name(self) -> str:
        """Name for people."""
        return f"{self.point.name}: {self.kind.value}"

    def conf(self) -> dict[str, str]:
        """Settings of the query under test: nearly all state is on the local disk, and tasks time out early only if the
        fault requires the next attempt."""
        settings = {"memory.budget": "1", **self.point.settings}
        if self.kind is Kind.LATE and self.point.what in REPEATED:
            settings["bridge.timeout"] = str(PATIENCE_SECONDS)
        return {CKPT_PREFIX + key: value for key, value in settings.items()}

    @property
    def expected(self) -> str:
        """Expected outcome."""
        return self.point.outcomes[self.kind]

    def expects(self, outcome: str) -> bool:
        """True if the outcome is an expected one."""
        return outcome in ((WENT_ON, RETRIED) if self.expected == EITHER else (self.expected,))


def cells(points: Sequence[Point] = POINTS) -> Iterator[Cell]:
    """All cells of the table."""
    for point in points:
        for kind in Kind:
            if kind in point.outcomes:
                yield Cell(point, kind)


def point_named(name: str) -> Point:
    """The point with this name."""
    return next(point for point in (*POINTS, *REAL_TIME_POINTS) if point.name == name)
