"""Invariants of a checkpoint location, which hold at any time, whatever failed or was killed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.completed import CheckpointRecord, Record, RecordFiles
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.location.tags import Tags
from spark_ckpt.operations.verify import check_log as damages_of_log
from spark_ckpt.recovery.state_check import check_state
from spark_ckpt.spark_files.evolved import evolutions
from spark_ckpt.storage import LocalStorage, Storage

_RECORD = re.compile(r"([0-9]{20})\.json")


@dataclass
class Findings:
    """Counts of the checks made, and the violations found."""

    violations: list[str] = field(default_factory=list)
    checkpoints: int = 0
    blocks: int = 0
    bytes: int = 0

    def check(self, holds: bool, violation: str) -> None:
        """Records a violation unless `holds`."""
        if not holds:
            self.violations.append(violation)


def assert_invariants(location: Path | str | Storage, *, orphans: bool = False) -> Findings:
    """Fails with a list of all violations.

    Args:
        location: a checkpoint location.
        orphans: whether unreferenced files are allowed, as after a crash until the next claim.
    """
    findings = inspect(_storage(location), orphans=orphans)
    assert not findings.violations, "\n".join(findings.violations)
    return findings


def inspect(storage: Storage, *, orphans: bool = False) -> Findings:
    """All findings, for callers that add their own; the arguments are those of `assert_invariants`."""
    findings = Findings()
    records = check_log(storage, findings)
    tagged = check_tags(storage, findings)
    records = [*records, *(record for record in tagged if record not in records)]
    check_checkpoints(storage, [record for record in records if isinstance(record, CheckpointRecord)], findings)
    if not orphans and not findings.violations:  # references are known only if everything is readable
        check_no_orphans(storage, records, findings)
        check_no_old_schemas(storage, records, findings)
    return findings


def check_log(storage: Storage, findings: Findings) -> list[Record]:
    """Checks for one winner per id, whole records, no decreasing generations, and checkpoints under their own claim."""
    files = RecordFiles(storage)
    for file in storage.list(files.directory):
        findings.check(_RECORD.fullmatch(file.name) is not None, f"{file.name} in {files.directory} is no record")
    each = files.read_each()
    findings.violations += [str(damaged) for damaged in each.values() if isinstance(damaged, SparkCkptError)]
    records = {i: record for i, record in each.items() if not isinstance(record, SparkCkptError)}
    findings.violations += map(str, damages_of_log(records, files.path))
    return list(records.values())


def check_tags(storage: Storage, findings: Findings) -> list[CheckpointRecord]:
    """Checks that every file in the directory of tags is a whole tag; returns the records of the checkpoints."""
    tags = Tags(storage)
    found = []
    for file in storage.list("ckpt/tags"):
        is_tag = f"ckpt/tags/{file.name}" in {tag.file for tag in tags.list()}
        findings.check(is_tag, f"{file.name} in ckpt/tags is no tag")
    for tag in tags.list():
        try:
            record = tags.read(tag)
        except SparkCkptError as e:
            findings.violations.append(str(e))
            continue
        if record is not None and record not in found:
            found.append(record)
    return found


def check_checkpoints(storage: Storage, retained: Iterable[CheckpointRecord], findings: Findings) -> None:
    """Reads every retained checkpoint fully: `_metadata`, all blocks, checksums, key groups inside the ranges."""
    for record in retained:
        try:
            state = read_checkpoint(storage, record)
        except SparkCkptError as e:
            findings.violations.append(str(e))
            continue
        found = check_state(storage, state, storage.describe(f"ckpt/{record.metadata.path}"))
        findings.violations += [f"checkpoint {record.id}: {damage}" for damage in found.damages]
        findings.checkpoints += 1
        findings.blocks += found.blocks
        findings.bytes += found.size


def check_no_orphans(storage: Storage, records: Iterable[Record], findings: Findings) -> None:
    """Checks that no file outlives its references."""
    used: set[str] = set()
    for record in records:
        if isinstance(record, CheckpointRecord):
            used.add(record.metadata.path)
            used |= read_checkpoint(storage, record).files()
    for entry in storage.list("ckpt"):
        if entry.is_directory and entry.name not in ("completed", "evolved", "rollbacks", "savepoints", "tags"):
            for file in storage.list(f"ckpt/{entry.name}"):
                name = f"{entry.name}/{file.name}"
                findings.check(name in used, f"nothing refers to ckpt/{name}")


def check_no_old_schemas(storage: Storage, records: Iterable[Record], findings: Findings) -> None:
    """Checks that schemas from before an evolution are there for the checkpoints that need them, and for no others."""
    checkpoints = [record for record in records if isinstance(record, CheckpointRecord)]
    kept = [each.batch_id for each in evolutions(storage)]
    for batch_id in kept:
        needed = any(record.batch_id <= batch_id for record in checkpoints)
        findings.check(needed, f"no checkpoint needs the schemas of ckpt/evolved/{batch_id}")
    for record in checkpoints:
        if record.evolved is not None and checkpoints[0].batch_id <= record.evolved:
            missing = (
                f"checkpoint {record.id} follows the evolution after batch {record.evolved}, whose schemas are gone"
            )
            findings.check(record.evolved in kept, missing)


def completed_versions(location: Path | str | Storage) -> list[int]:
    """Versions of the retained checkpoints, by id."""
    records = check_log(_storage(location), Findings())
    return [record.version for record in records if isinstance(record, CheckpointRecord)]


def _storage(location: Path | str | Storage) -> Storage:
    return location if isinstance(location, Storage) else LocalStorage(location)


def describe_log(location: Path | str) -> str:
    """The log, one line per record, for the message of a failed test."""
    lines = []
    for file in sorted((Path(location) / "ckpt" / "completed").glob("*.json"), key=lambda file: int(file.stem)):
        fields = json.loads(file.read_bytes())
        lines.append(
            f"{fields['id']} {fields['kind']} generation {fields['generation']} version {fields.get('version')}"
        )
    return "\n".join(lines)
