"""Invariants, checked at each change of the storage."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from spark_ckpt.checkpoint.batch import SPARK_OFFSETS
from spark_ckpt.checkpoint.chains import Chain, all_entries
from spark_ckpt.checkpoint.load import CheckpointState, read_checkpoint
from spark_ckpt.compaction import tiers
from spark_ckpt.compaction.policy import chain_bound, rewrite_cycle
from spark_ckpt.completed import CheckpointRecord, ClaimRecord, Record, decode_record, encode_record
from spark_ckpt.completed.void_records import without_void_records
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.format.keys import StoreKey, SubtaskKey
from spark_ckpt.location.listing import _read_metadata as read_directory
from spark_ckpt.location.listing import scan
from spark_ckpt.location.tags import Tags
from spark_ckpt.messages import Ack, Event, Notification
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.spark_files.rollbacks import Rollbacks
from tests.simulation.decoder_cache import read_block, read_metadata
from tests.simulation.disk import FOREIGN_FILES, SimulatedStorage
from tests.simulation.faults import Faults
from tests.simulation.model import Query, Rows, applied
from tests.simulation.offsets import offset_in
from tests.simulation.rollbacks import content_of
from tests.simulation.scheduler import Group
from tests.support.invariants import Findings, check_checkpoints, check_log, check_no_orphans

if TYPE_CHECKING:
    from tests.simulation.world import World

_FILE = re.compile(r"ckpt/completed/([0-9]{20})\.json")
_METADATA = re.compile(r"ckpt/(chk-([0-9]+)(?:-[0-9]+)?)/_metadata")
_ENTRY = re.compile(r"(offsets|commits)/[0-9]+")
_NODE = re.compile(r"/.+/records/([0-9]{20})")


PREFIX = "spark.sql.streaming.stateStore.ckpt."
MAX_CYCLES = 3
"""Cycles until a file must be released: the base that releases it is requested once per cycle, perhaps again."""

DELTAS_BEHIND = 2
"""Deltas beyond the bound: an attempt with the state in memory may acknowledge before it learns of the bound."""


class Violation(AssertionError):  # noqa: N818
    """An invariant is broken."""


class Checks:
    """Observes every change of files and nodes at once, and so covers each moment at which a driver could be killed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._storage = SimulatedStorage(world.disk, world.way(Group("judge"), Faults(pause=0)))
        self._record = _NODE if world.profile.store == "zookeeper" else _FILE
        self._is_standalone = world.profile.store == "standalone"
        self._digests: dict[str, bytes] = {}
        self._records: dict[int, Record] = {}
        self._newest = 0
        self._needed: dict[int, set[str]] = {}
        self._files: dict[int, set[str]] = {}
        """Files of all checkpoints so far."""
        self._tagged: dict[str, set[str]] = {}
        """Files that tags retain, by the file of the tag."""
        self._ids: dict[int, dict[StoreKey, list[str]]] = {}
        self._uses: Counter[str] = Counter()
        self._brought_back: set[int] = set()
        self._committed = -1
        self._offsets: dict[int, bytes] = {}
        """Entry of the offset log in each checkpoint."""
        self.committing = ""
        """Run that is writing a commit."""
        self.committed_by = ""
        """Run that wrote Spark's newest commit."""
        self._told: set[int] = set()
        self._ending: set[str] = set()
        self._foreign = FOREIGN_FILES if world.profile.foreign else ()
        self.first: Violation | None = None
        """The first violation. The code that caused it may mistake it for a storage error and continue."""
        prefixed = {PREFIX + key: value for key, value in world.profile.settings.items()}
        bound = chain_bound(CheckpointConfig.parse(prefixed))
        self._most_deltas = (tiers.chain_bound(bound) if world.profile.merges else bound) + DELTAS_BEHIND
        self._most_unused = MAX_CYCLES * rewrite_cycle(CheckpointConfig.parse(prefixed))
        self._unused_since: dict[str, int] = {}
        profile = world.profile
        self._is_calm = not (
            profile.incidents
            or profile.faults.any()
            or profile.faults.kill
            or profile.local_disk
            or profile.lost_events
        )
        self._brought: dict[str, Ack] = {}
        """Acks with a base or merged deltas, by their state ids, where no failure can lose these."""
        self.is_discarded = False
        """True once the query has ended in a way for which its settings keep no checkpoints."""

    # ---- changes of files and nodes ----------------------------------------------------------------------------------

    def created(self, name: str, data: bytes) -> None:
        digest = hashlib.blake2b(data, digest_size=8).digest()
        if name in self._world.disk.dropped:
            # A frozen driver repeats its request when it resumes. It then finds its successor and deletes the record.
            self._world.count("record came back")
            if (match := self._record.fullmatch(name)) is not None:
                self._brought_back.add(int(match[1]))
            return
        if name.startswith("ckpt/") and self._digests.setdefault(name, digest) != digest:
            self._violated(f"the name {name} is used for a second content")
        if self._is_standalone:
            if (match := _METADATA.fullmatch(name)) is not None:
                self._recorded_standalone(int(match[2]), match[1])
        elif (match := self._record.fullmatch(name)) is not None:
            self._world.trace(f"record {int(match[1])} is there")
            self._recorded(decode_record(data, name, int(match[1])))
        elif (match := _FILE.fullmatch(name)) is not None:
            record = self._records.get(int(match[1]))
            if record is None or encode_record(record) != data:
                self._violated(f"{name} repeats what is no record in ZooKeeper")
        if name.startswith("commits/") and (batch := name[len("commits/") :]).isdecimal():
            if self._world.rolls_back:
                self._continues(int(batch), data)
            self._committed = max(self._committed, int(batch))
            self._last_committed_is_there()
            self._has_same_offsets(int(batch))

    def _continues(self, batch: int, commit: bytes) -> None:
        """Checks that a committed batch is the one whose offsets are in the log, and that these were planned from those
        of the batch before. Otherwise its input overlaps with that of others, or leaves a gap."""
        entries = [self._world.disk.read(f"offsets/{number}") for number in (batch - 1, batch)]
        before, own = (None if entry is None else content_of(entry) for entry in entries)
        if own is None or own["id"] != content_of(commit)["of"]:
            self._violated(f"batch {batch} is committed with other offsets than those in the log")
        if own["after"] != (before["id"] if before is not None else None):
            self._violated(f"batch {batch} is committed and does not continue batch {batch - 1}: it was rolled back")

    def deleted(self, name: str) -> None:
        if self._world.rolls_back and _ENTRY.fullmatch(name) and not Rollbacks.of(self._storage).unfinished:
            self._violated(f"{name} is moved, and no marker of a rollback keeps drivers out")
        if name.startswith("commits/") and self._world.rolls_back:
            self._committed = SparkBatches.of(SparkLog(self._storage)).last_committed
        if name in FOREIGN_FILES:
            self._violated(f"{name} is deleted, which is not ours")
        if self._is_standalone and (match := _METADATA.fullmatch(name)) is not None:
            self._digests.pop(name)  # without a log, a number is free again once its directory is gone
            record = self._records.get(int(match[2]))
            if isinstance(record, CheckpointRecord) and f"ckpt/{record.metadata.path}" == name:
                self._dropped(record.id)
        elif (match := self._record.fullmatch(name)) is not None:
            self._world.trace(f"record {int(match[1])} is gone")
            self._dropped(int(match[1]))
        elif name in self._tagged:
            self._uses.subtract(self._tagged.pop(name))
        elif self._uses[name] and not (self._is_standalone and self._forgets_unanswered(name)):
            users: list[object] = [checkpoint for checkpoint, files in self._needed.items() if name in files]
            users += [tag for tag, files in self._tagged.items() if name in files]
            self._violated(f"{name} is deleted, and the retained checkpoints {users} need it")

    def _forgets_unanswered(self, name: str) -> bool:
        """Forgets checkpoints that rely on the file and were never announced as complete.

        Without a log, a `_metadata` whose create failed with an error makes a checkpoint that its driver considers
        absent and that a reader skips. No promise was made about it.

        Returns:
            True if no other checkpoint needs the file.
        """
        users = [checkpoint for checkpoint, files in self._needed.items() if name in files]
        if self._told.isdisjoint(users):
            for checkpoint in users:
                self._dropped(checkpoint)
        return not self._uses[name]

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
            self.is_discarded |= record.owner.run_id in self._ending

    def _recorded_standalone(self, record_id: int, directory: str) -> None:
        """Registers a checkpoint without a log, which exists as soon as its `_metadata` does."""
        self._world.trace(f"{directory} is there")
        # Without a log, an id is free again if its checkpoint was never announced as complete and is deleted.
        newest = max(self._told | self._needed.keys(), default=0)
        if record_id < newest:
            self._violated(f"{directory} follows checkpoint {newest}")
        try:
            record, _ = read_directory(self._storage, record_id, directory)
        except SparkCkptError as e:
            self._violated(f"checkpoint {record_id} is incomplete the moment it is recorded: {e}")
        self._dropped(record_id)
        self._records[record_id] = record
        self._world.count("checkpoints")
        self._completed(record)

    def _owner(self) -> ClaimRecord | None:
        """The newest claim."""
        return next((r for _, r in sorted(self._records.items(), reverse=True) if isinstance(r, ClaimRecord)), None)

    def _completed(self, record: CheckpointRecord) -> None:
        owner = self._owner()
        if owner is not None and owner.owner != record.owner:
            self._violated(f"checkpoint {record.id} is completed by {record.owner} after the claim of {owner.owner}")
        try:
            state = read_checkpoint(self._storage, record)
        except SparkCkptError as e:
            self._violated(f"checkpoint {record.id} is incomplete the moment it is recorded: {e}")
        files = {f"ckpt/{path}" for path in state.files()} | {f"ckpt/{record.metadata.path}"}
        self._needed[record.id] = self._files[record.id] = files
        self._ids[record.id] = state.state_ids()
        self._uses.update(files)
        self._offsets[record.id] = content = self._offsets_in(record)
        query = self._world.query.at(len(next(iter(state.table.values()))))
        for key in query.subtasks():
            self._same(state, query, key, offset_in(content))
        if self._world.profile.idle is not None:
            self._check_use(state)

    def _check_use(self, state: CheckpointState) -> None:
        """Checks that no file is retained indefinitely for less than half of its bytes."""
        used: Counter[str] = Counter()
        sizes: dict[str, int] = {}
        for entry in all_entries(state.table):
            if entry.path is not None:
                used[entry.path] += entry.size
                sizes[entry.path] = entry.file_size
        small = self._world.profile.small_bytes or 0
        unused = [path for path, size in sizes.items() if size - used[path] > max(small, used[path])]
        self._unused_since = {path: self._unused_since.get(path, state.version) for path in unused}
        for path, since in self._unused_since.items():
            if state.version - since > self._most_unused:
                self._violated(f"{path} is kept since version {since} for {used[path]} of its {sizes[path]} bytes")

    def _check_use_of(self, ack: Ack, chain: Chain) -> None:
        """Checks that the chain after an ack has the base or the merged deltas of the ack."""
        if (base := ack.base) is not None:
            # A base without rows stands for what it replaces by its absence.
            kept = [entry for entry in chain.entries if entry.version < base.version + (not entry.is_base)]
            if kept:
                age = ack.version - base.version
                self._violated(f"{ack.subtask}: a base is not used that was {age} versions old")
        spans = {(entry.first_version, entry.version) for entry in chain.entries}
        if ack.merged is not None and (ack.merged.first_version, ack.merged.version) not in spans:
            self._violated(f"{ack.subtask}: merged deltas of {ack.merged.first_version} on are not used")

    def _offsets_in(self, record: CheckpointRecord) -> bytes:
        """Entry of Spark's offset log in a checkpoint."""
        data = self._world.disk.read(f"ckpt/{record.metadata.path}")
        assert data is not None
        masters = {state.name: state.payload for state in read_metadata(data).master_states}
        if SPARK_OFFSETS not in masters:
            self._violated(f"checkpoint {record.id} has no offsets")
        return masters[SPARK_OFFSETS]

    def _same(self, state: CheckpointState, query: Query, key: SubtaskKey, offset: int) -> None:
        chain = state.table[key.of_operator][key.partition]
        if (ack := self._brought.pop(chain.state_id, None)) is not None:
            self._check_use_of(ack, chain)
        rows = self._rows_of(chain)
        answer = query.answer(offset, key)
        if rows != answer:
            assert state.record is not None
            self._violated(
                f"checkpoint {state.record.id} of version {state.version} has {rows} of {key}; the answer is {answer}"
            )

    def _rows_of(self, chain: Chain) -> Rows:
        rows: Rows = {}
        kinds = [entry.is_base for entry in chain.entries]
        if kinds != sorted(kinds, reverse=True) or (sum(kinds) > 1 and not self._world.profile.rescale):
            self._violated(f"a base in the middle of a chain: {[entry.version for entry in chain.entries]}")
        if chain.deltas > self._most_deltas:
            self._violated(f"a chain has {chain.deltas} deltas; there may be {self._most_deltas}")
        if any(entry.is_merged for entry in chain.entries):
            self._world.count("checkpoint with merged deltas")
        for entry in chain.entries:
            data = entry.data if entry.path is None else self._world.damages.read(f"ckpt/{entry.path}")
            if data is None:
                self._violated(f"a checkpoint is incomplete the moment it is recorded: {entry.path} is not there")
            for offset in entry.offsets.tolist():
                block = read_block(data, offset, entry.path or "inline")
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
        if not self.is_discarded and self._committed >= 0 and self._committed + 1 not in self._versions():
            self._violated(
                f"batch {self._committed} is committed, and the retained checkpoints have versions {self._versions()}"
            )

    def _has_same_offsets(self, batch: int) -> None:
        """The run that commits a batch has completed it with the offsets in Spark's log."""
        owned = [
            (i, record)
            for i in self._needed
            if isinstance(record := self._records[i], CheckpointRecord) and record.version == batch + 1
        ]
        for newest, record in sorted(owned)[-1:]:
            content = self._world.disk.read(f"offsets/{batch}")
            if record.owner.run_id == self.committing and content != self._offsets[newest]:
                self._violated(f"offsets/{batch} is {content!r}, checkpoint {newest} has {self._offsets[newest]!r}")

    def retained(self) -> list[CheckpointRecord]:
        """The retained checkpoints, ascending."""
        return [record for i in sorted(self._needed) if isinstance(record := self._records[i], CheckpointRecord)]

    def files_of(self, checkpoint_id: int) -> set[str]:
        """The files of a retained checkpoint."""
        return self._needed.get(checkpoint_id, set())

    def _versions(self) -> list[int]:
        return [r.version for i in self._needed if isinstance(r := self._records[i], CheckpointRecord)]

    def tagged(self, file: str, checkpoint_id: int) -> None:
        """A command has said that a checkpoint has a tag."""
        if self._world.disk.read(file) is None:
            return  # a rollback has taken the tag away
        files = self._tagged[file] = self._files[checkpoint_id]
        self._uses.update(files)
        missing = [name for name in sorted(files) if self._world.disk.read(name) is None]
        if missing:
            self._violated(f"{missing[0]} is deleted, and the retained checkpoints {[file]} need it")

    def is_tagged(self, file: str) -> bool:
        """Whether a command has said that the tag with this file is there, and none has removed it."""
        return file in self._tagged

    # ---- observations of drivers and executors -----------------------------------------------------------------------

    def opened(self, query: Query, key: SubtaskKey, version: int, rows: Rows, offset: int) -> None:
        """A store has loaded a version for a batch that reads from an offset on."""
        answer = query.answer(offset, key)
        if rows != answer:
            self._violated(f"the store of {key} has {rows} at version {version}; the answer is {answer}")

    def loaded(self, key: SubtaskKey, version: int, rows: Rows, looked_up: Rows) -> None:
        """A store has loaded the rest of a version, whose rows were looked up before."""
        if rows != looked_up:
            self._violated(f"the store of {key} has loaded {rows} at version {version}; it has looked up {looked_up}")

    def sent(self, ack: Ack) -> None:
        """A store is about to send an ack."""
        if self._is_calm and (ack.base is not None or ack.merged is not None):
            self._brought[ack.state_id] = ack

    def before_commit(self, query: Query, run_id: str, batch: int, ids: dict[SubtaskKey, str]) -> None:
        """A batch has ended; `ids` are those of the attempts counted by Spark."""
        for checkpoint in self._needed:
            record = self._records[checkpoint]
            if isinstance(record, CheckpointRecord) and record.version == batch + 1 and record.owner.run_id == run_id:
                for key in query.subtasks():
                    counts = self._ids[checkpoint][key.of_operator][key.partition]
                    if ids[key] != counts:
                        self._violated(f"{key}: Spark counts state {ids[key]}, checkpoint {checkpoint} has {counts}")

    def notified(self, notification: Notification) -> None:
        """The coordinator has notified executors."""
        checkpoint, version = notification.checkpoint_id or 0, notification.version
        if notification.event is Event.COMPLETE:
            self._told.add(checkpoint)
            record = self._records.get(checkpoint)
            if not isinstance(record, CheckpointRecord) or record.version != version:
                self._violated(f"checkpoint {checkpoint} of version {version} is said to be complete, and is not")
            if checkpoint in self._brought_back:
                self._violated(
                    f"checkpoint {checkpoint} is said to be complete, and was brought back after it was dropped"
                )
        if notification.event is Event.SUBSUMED and checkpoint in self._needed:
            self._violated(f"checkpoint {checkpoint} of version {version} is said to be dropped, and is not")

    def may_go_back(self) -> bool:
        """True if Spark's newest commit was written by a run already fenced off by another one. With ids in the commit
        log, it names states that the newest checkpoint of the version lacks."""
        version = self._committed + 1
        newest = max((i for i in self._needed if self._records[i].version == version), default=None)  # type: ignore[union-attr]
        return newest is not None and self._records[newest].owner.run_id != self.committed_by

    def went_back(self) -> int:
        """A user has removed the newest commit.

        Returns:
            The batch of that commit.
        """
        self._committed -= 1
        return self._committed + 1

    def closing(self, run_id: str, status: str) -> None:
        """The coordinator is about to learn that a run has ended."""
        cleanup, owner = self._world.profile.settings.get("cleanup", "retain"), self._owner()
        wanted = cleanup == "deleteOnEnd" or (cleanup == "deleteOnCancellation" and status == "cancelled")
        if wanted:
            self._ending.add(run_id)  # the run may be about to claim
        if wanted and (self._is_standalone or (owner is not None and owner.owner.run_id == run_id)):
            self.is_discarded = True
            self._world.count("checkpoints discarded")

    def after_discarding(self, is_all: bool) -> None:
        """Checks what remains after the end of a query that retains nothing: whole checkpoints, or none if `is_all`."""
        findings = Findings()
        found = self._all_records(findings)
        # A frozen driver may have brought a record back. It is void; the next claim would delete it.
        counting = found if is_all else without_void_records({record.id: record for record in found}).values()
        records = [record for record in counting if isinstance(record, CheckpointRecord)]
        if is_all or self._world.profile.store != "zookeeper":  # with ZooKeeper, the files may lag behind
            check_checkpoints(self._storage, records, findings)
        if is_all:
            findings.check(not records, f"checkpoints {[record.id for record in records]} are kept")
            self._look_for_foreign_files(findings)
        if findings.violations:
            self._violated("; ".join(findings.violations))

    def starts_over(self) -> None:
        """A user starts the query anew, without its checkpoints. Everything ever written there still counts."""
        self.is_discarded = False
        self._committed = -1

    def _all_records(self, findings: Findings) -> Sequence[Record]:
        return scan(self._storage).records if self._is_standalone else check_log(self._storage, findings)

    def _look_for_foreign_files(self, findings: Findings) -> None:
        """Checks that the foreign files exist, and removes them so that they do not disturb other checks."""
        names, self._foreign = self._foreign, ()
        for name in names:
            directory, _, base = name.rpartition("/")
            findings.check(self._world.disk.directories[directory].pop(base, None) is not None, f"{name} is gone")

    def _check_no_orphans(self, records: Sequence[Record], findings: Findings) -> None:
        """Checks that none of our files is unreferenced."""
        self._look_for_foreign_files(findings)
        if not self._is_standalone:  # without a log none is deleted, since no driver can know that it is the only one
            check_no_orphans(self._storage, records, findings)

    def at_the_end(self) -> None:
        """Checks, once the system has settled, all invariants and the absence of unreferenced files."""
        findings = Findings()
        records = self._all_records(findings)
        there = {record.id for record in records if isinstance(record, CheckpointRecord)}
        findings.check(there == set(self._needed), f"the files have records {there}, in truth {set(self._needed)}")
        checkpoints = [record for record in records if isinstance(record, CheckpointRecord)]
        tagged = Tags(self._storage).records()
        files = {tag.file: tag.checkpoint_id for tag in Tags(self._storage).list()}
        for file in self._tagged:
            findings.check(files.get(file) in tagged, f"the checkpoint of {file} is gone")
        others = [record for i, record in tagged.items() if i not in there]
        check_checkpoints(self._storage, [*checkpoints, *others], findings)
        self._check_no_orphans([*records, *others], findings)
        if findings.violations:
            self._violated("; ".join(findings.violations))
        if self._committed + 1 != self._world.batches:
            self._violated(f"batch {self._committed} is the last one that is committed of {self._world.batches}")

    def _violated(self, what: str) -> NoReturn:
        self._world.trace(f"VIOLATED: {what}")
        self.first = self.first or Violation(what)
        raise self.first
