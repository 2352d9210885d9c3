"""What must hold, looked at with each change of the storage."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING

from spark_ckpt.completed import CheckpointRecord, ClaimRecord, Record, decode_record, encode_record
from spark_ckpt.coordinator.chains import Chain
from spark_ckpt.coordinator.loading import CheckpointState, read_checkpoint
from spark_ckpt.coordinator.messages import Event, Notification, StoreKey, SubtaskKey
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.segments import decode_block
from tests.simulation.disk import SimulatedStorage
from tests.simulation.faults import Faults
from tests.simulation.model import Rows, applied
from tests.simulation.scheduler import Group
from tests.support.invariants import Findings, check_checkpoints, check_log, check_no_orphans

if TYPE_CHECKING:
    from tests.simulation.world import World

_FILE = re.compile(r"ckpt/completed/([0-9]{20})\.json")
_NODE = re.compile(r"/.+/records/([0-9]{20})")


class Violation(AssertionError):  # noqa: N818
    """Something does not hold that always must."""


class Checks:
    """Sees every change of files and nodes at once, so no moment is missed at which a driver could have been killed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._storage = SimulatedStorage(world.disk, world.way(Group("judge"), Faults(pause=0)))
        self._record = _FILE if world.profile.store == "filesystem" else _NODE
        self._digests: dict[str, bytes] = {}
        self._records: dict[int, Record] = {}
        self._newest = 0
        self._needed: dict[int, set[str]] = {}
        self._ids: dict[int, dict[StoreKey, list[str]]] = {}
        self._uses: Counter[str] = Counter()
        self._brought_back: set[int] = set()
        self._committed = -1

    # ---- changes of files and nodes ----------------------------------------------------------------------------------

    def created(self, name: str, data: bytes) -> None:
        digest = hashlib.blake2b(data, digest_size=8).digest()
        if name in self._world.disk.dropped:
            # A driver that stood still repeats its request. It finds its successor then, and takes the record away.
            self._world.count("record came back")
            if (match := self._record.fullmatch(name)) is not None:
                self._brought_back.add(int(match[1]))
            return
        if name.startswith("ckpt/") and self._digests.setdefault(name, digest) != digest:
            self._violated(f"the name {name} is used for a second content")
        if (match := self._record.fullmatch(name)) is not None:
            self._world.trace(f"record {int(match[1])} is there")
            self._recorded(decode_record(data, name, int(match[1])))
        elif (match := _FILE.fullmatch(name)) is not None:
            record = self._records.get(int(match[1]))
            if record is None or encode_record(record) != data:
                self._violated(f"{name} repeats what is no record in ZooKeeper")
        elif name.startswith("commits/"):
            self._committed = max(self._committed, int(name[len("commits/") :]))
            self._last_committed_is_there()

    def deleted(self, name: str) -> None:
        if (match := self._record.fullmatch(name)) is not None:
            self._world.trace(f"record {int(match[1])} is gone")
            self._dropped(int(match[1]))
        elif self._uses[name]:
            users = [checkpoint for checkpoint, files in self._needed.items() if name in files]
            self._violated(f"{name} is deleted, and the retained checkpoints {users} need it")

    def _recorded(self, record: Record) -> None:
        if record.id != self._newest + 1:
            self._violated(f"record {record.id} follows record {self._newest}")
        last = self._records.get(self._newest)
        if last is not None and record.generation < last.generation + isinstance(record, ClaimRecord):
            self._violated(f"record {record.id} of generation {record.generation} follows generation {last.generation}")
        self._records[record.id] = record
        self._newest = record.id
        if isinstance(record, CheckpointRecord):
            self._world.count("checkpoints")
            self._completed(record)
        else:
            self._world.count("claims")

    def _completed(self, record: CheckpointRecord) -> None:
        owner = next(r for _, r in sorted(self._records.items(), reverse=True) if isinstance(r, ClaimRecord))
        if owner.owner != record.owner:
            self._violated(f"checkpoint {record.id} is completed by {record.owner} after the claim of {owner.owner}")
        try:
            state = read_checkpoint(self._storage, record)
        except SparkCkptError as e:
            self._violated(f"checkpoint {record.id} is incomplete the moment it is recorded: {e}")
        files = {f"ckpt/{path}" for path in state.files()} | {f"ckpt/{record.metadata.path}"}
        self._needed[record.id] = files
        self._ids[record.id] = state.ckpt_ids()
        self._uses.update(files)
        for key in self._world.query.subtasks():
            self._same(state, key)

    def _same(self, state: CheckpointState, key: SubtaskKey) -> None:
        rows = self._rows_of(state.table[key.of_operator][key.partition])
        answer = self._world.query.answer(state.version, key)
        if rows != answer:
            assert state.record is not None
            self._violated(
                f"checkpoint {state.record.id} of version {state.version} has {rows} of {key}; the answer is {answer}"
            )

    def _rows_of(self, chain: Chain) -> Rows:
        rows: Rows = {}
        if any(entry.is_base for entry in chain.entries[1:]):
            self._violated(f"a base in the middle of a chain: {[entry.version for entry in chain.entries]}")
        for entry in chain.entries:
            data = entry.data if entry.path is None else self._world.disk.read(f"ckpt/{entry.path}")
            assert data is not None
            for offset in entry.offsets.tolist():
                block = decode_block(data, offset, entry.path or "inline")
                for section in block.sections:
                    entries = {key: value for key, value in section.entries if not isinstance(value, tuple)}
                    rows = applied(rows, {block.key_group: entries})
        if chain.rows != sum(len(entries) for entries in rows.values()):
            self._violated(f"{chain.rows} rows are recorded of {rows}")
        return rows

    def _dropped(self, record_id: int) -> None:
        files = self._needed.pop(record_id, set())
        self._uses.subtract(files)
        self._last_committed_is_there()

    def _last_committed_is_there(self) -> None:
        if self._committed >= 0 and self._committed + 1 not in self._versions():
            self._violated(
                f"batch {self._committed} is committed, and the retained checkpoints have versions {self._versions()}"
            )

    def _versions(self) -> list[int]:
        return [r.version for i in self._needed if isinstance(r := self._records[i], CheckpointRecord)]

    # ---- what drivers and executors see ------------------------------------------------------------------------------

    def opened(self, key: SubtaskKey, version: int, rows: Rows) -> None:
        """A store has a version in memory."""
        answer = self._world.query.answer(version, key)
        if rows != answer:
            self._violated(f"the store of {key} has {rows} at version {version}; the answer is {answer}")

    def before_commit(self, run_id: str, batch: int, ids: dict[SubtaskKey, str]) -> None:
        """A batch has ended, with the ids of the attempts that Spark counts."""
        for checkpoint in self._needed:
            record = self._records[checkpoint]
            if isinstance(record, CheckpointRecord) and record.version == batch + 1 and record.owner.run_id == run_id:
                for key in self._world.query.subtasks():
                    counts = self._ids[checkpoint][key.of_operator][key.partition]
                    if ids[key] != counts:
                        self._violated(f"{key}: Spark counts state {ids[key]}, checkpoint {checkpoint} has {counts}")

    def notified(self, notification: Notification) -> None:
        """Executors are told something."""
        checkpoint, version = notification.checkpoint_id or 0, notification.version
        if notification.event is Event.COMPLETE:
            record = self._records.get(checkpoint)
            if not isinstance(record, CheckpointRecord) or record.version != version:
                self._violated(f"checkpoint {checkpoint} of version {version} is said to be complete, and is not")
            if checkpoint in self._brought_back:
                self._violated(
                    f"checkpoint {checkpoint} is said to be complete, and was brought back after it was dropped"
                )
        if notification.event is Event.SUBSUMED and checkpoint in self._needed:
            self._violated(f"checkpoint {checkpoint} of version {version} is said to be dropped, and is not")

    def at_the_end(self) -> None:
        """The system has settled: all invariants, and no file that nothing refers to."""
        findings = Findings()
        records = check_log(self._storage, findings)
        there = {record.id for record in records if isinstance(record, CheckpointRecord)}
        findings.check(there == set(self._needed), f"the files have records {there}, in truth {set(self._needed)}")
        checkpoints = [record for record in records if isinstance(record, CheckpointRecord)]
        check_checkpoints(self._storage, checkpoints, findings)
        check_no_orphans(self._storage, records, findings)
        if findings.violations:
            self._violated("; ".join(findings.violations))
        if self._committed + 1 != self._world.batches:
            self._violated(f"batch {self._committed} is the last one that is committed of {self._world.batches}")

    def _violated(self, what: str) -> None:
        self._world.trace(f"VIOLATED: {what}")
        raise Violation(what)
