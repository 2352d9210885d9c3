"""What must hold of a checkpoint location at any time, whatever failed or was killed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from spark_ckpt.completed import CheckpointRecord, ClaimRecord, Record, decode_record
from spark_ckpt.coordinator.batch_state import SparkBatch
from spark_ckpt.coordinator.chains import Chain, ChainEntry, all_entries
from spark_ckpt.coordinator.loading import CheckpointState, read_checkpoint
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.keygroups import overlapping_ranges
from spark_ckpt.metadata.keyrange import KeyGroupRange
from spark_ckpt.segments import Block, SegmentKind, decode_block
from spark_ckpt.storage import LocalStorage, Storage

_RECORD = re.compile(r"([0-9]{20})\.json")


@dataclass
class Findings:
    """What was looked at, and what was wrong with it."""

    violations: list[str] = field(default_factory=list)
    checkpoints: int = 0
    blocks: int = 0
    bytes: int = 0

    def check(self, holds: bool, violation: str) -> None:
        """Notes a violation unless something holds."""
        if not holds:
            self.violations.append(violation)


def assert_invariants(location: Path | str | Storage, *, orphans: bool = False) -> Findings:
    """Fails with all violations there are.

    Args:
        location: a checkpoint location.
        orphans: whether files that nothing refers to are all right, as they are after a crash until the next claim.
    """
    findings = inspect(_storage(location), orphans=orphans)
    assert not findings.violations, "\n".join(findings.violations)
    return findings


def inspect(storage: Storage, *, orphans: bool = False) -> Findings:
    """All findings, for whoever wants to say more about them; the arguments are those of `assert_invariants`."""
    findings = Findings()
    records = check_log(storage, findings)
    check_checkpoints(storage, [record for record in records if isinstance(record, CheckpointRecord)], findings)
    if not orphans and not findings.violations:  # what refers to a file can be told only if all can be read
        check_no_orphans(storage, records, findings)
    return findings


def check_log(storage: Storage, findings: Findings) -> list[Record]:
    """One winner per id, whole records, generations that never go back, and every checkpoint below its own claim."""
    records: list[Record] = []
    for file in storage.list("ckpt/completed"):
        match = _RECORD.fullmatch(file.name)
        findings.check(match is not None, f"{file.name} in ckpt/completed is no record")
        if match is not None:
            try:
                name = f"ckpt/completed/{file.name}"
                records.append(decode_record(storage.read(name), storage.describe(name), int(match[1])))
            except SparkCkptError as e:
                findings.violations.append(str(e))
    records.sort(key=lambda record: record.id)
    owner: Record | None = None
    for before, after in pairwise(records):
        findings.check(before.generation <= after.generation, f"record {after.id} goes back to an earlier generation")
        if isinstance(after, ClaimRecord):
            findings.check(before.generation < after.generation, f"claim {after.id} opens no new generation")
    for record in records:
        if isinstance(record, ClaimRecord):
            owner = record
        elif owner is not None and owner.generation == record.generation:
            findings.check(record.owner == owner.owner, f"checkpoint {record.id} is of another owner")
    return records


def check_checkpoints(storage: Storage, retained: Iterable[CheckpointRecord], findings: Findings) -> None:
    """Every retained checkpoint reads back fully: `_metadata`, all blocks, checksums, key groups inside the ranges."""
    for record in retained:
        try:
            state = read_checkpoint(storage, record)
        except SparkCkptError as e:
            findings.violations.append(str(e))
            continue
        findings.checkpoints += 1
        _check_state(storage, state, findings)


def check_no_orphans(storage: Storage, records: Iterable[Record], findings: Findings) -> None:
    """No file outlives its references."""
    used: set[str] = set()
    for record in records:
        if isinstance(record, CheckpointRecord):
            used.add(record.metadata.path)
            used |= read_checkpoint(storage, record).files()
    for entry in storage.list("ckpt"):
        if entry.is_directory and entry.name != "completed":
            for file in storage.list(f"ckpt/{entry.name}"):
                name = f"{entry.name}/{file.name}"
                findings.check(name in used, f"nothing refers to ckpt/{name}")


def completed_versions(location: Path | str | Storage) -> list[int]:
    """Versions of the retained checkpoints, by id."""
    records = check_log(_storage(location), Findings())
    return [record.version for record in records if isinstance(record, CheckpointRecord)]


def _storage(location: Path | str | Storage) -> Storage:
    return location if isinstance(location, Storage) else LocalStorage(location)


def _check_state(storage: Storage, state: CheckpointState, findings: Findings) -> None:
    record, batch = state.record, state.batch
    assert record is not None
    assert batch is not None
    name = f"checkpoint {record.id}"
    findings.check(batch.version == record.version, f"{name}: the record says version {record.version}")
    findings.check(batch.batch_id == record.batch_id == record.version - 1, f"{name}: batch {batch.batch_id}")
    size = sum(entry.size for entry in all_entries(state.table))
    findings.check(size == record.state_bytes, f"{name}: {size} bytes of state, {record.state_bytes} are recorded")
    contents: dict[str, bytes] = {}
    for store in batch.stores:
        for partition, chain in enumerate(state.table[store.key]):
            where = f"{name}, {store.key}, partition {partition}"
            ranges = overlapping_ranges(partition, store.parallelism, batch.key_group_factors)
            _check_chain(storage, chain, ranges, batch, where, contents, findings)


def _check_chain(
    storage: Storage,
    chain: Chain,
    ranges: list[KeyGroupRange],
    batch: SparkBatch,
    where: str,
    contents: dict[str, bytes],
    findings: Findings,
) -> None:
    versions = [entry.version for entry in chain.entries]
    kinds = [entry.is_base for entry in chain.entries]
    findings.check(kinds == sorted(kinds, reverse=True), f"{where}: a base after a delta")
    deltas = [entry.version for entry in chain.entries if not entry.is_base]
    findings.check(deltas == sorted(deltas), f"{where}: deltas out of order: {deltas}")
    findings.check(all(0 < version <= batch.version for version in versions), f"{where}: versions {versions}")
    for entry in chain.entries:
        if entry.path is not None and entry.path not in contents:
            contents[entry.path] = storage.read(f"ckpt/{entry.path}")
        data = entry.data if entry.path is None else contents[entry.path]
        for key_group, offset in zip(entry.key_groups.tolist(), entry.offsets.tolist(), strict=True):
            try:
                block = decode_block(data, offset, entry.path or "inline")
            except SparkCkptError as e:
                findings.violations.append(f"{where}: {e}")
                continue
            findings.blocks += 1
            _check_block(entry, block, key_group, ranges, where, findings)
        findings.bytes += entry.size


def _check_block(
    entry: ChainEntry, block: Block, key_group: int, ranges: list[KeyGroupRange], where: str, findings: Findings
) -> None:
    kind = SegmentKind.BASE if entry.is_base else SegmentKind.DELTA
    findings.check(block.key_group == key_group, f"{where}: block of key group {block.key_group}, not {key_group}")
    findings.check(any(key_group in r for r in ranges), f"{where}: key group {key_group} is not its own")
    findings.check(block.kind is kind, f"{where}: a {block.kind.name} where a {kind.name} should be")
    findings.check(block.version == entry.version, f"{where}: block of version {block.version}, not {entry.version}")


def describe_log(location: Path | str) -> str:
    """The log in one line per record, for the message of a failed test."""
    lines = []
    for file in sorted((Path(location) / "ckpt" / "completed").glob("*.json"), key=lambda file: int(file.stem)):
        fields = json.loads(file.read_bytes())
        lines.append(
            f"{fields['id']} {fields['kind']} generation {fields['generation']} version {fields.get('version')}"
        )
    return "\n".join(lines)
