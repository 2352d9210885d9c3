"""Runs a coordinator on a directory, simulates a power loss, and judges what its successor finds."""

from __future__ import annotations

import random
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

from spark_ckpt.completed import CheckpointRecord, JobStatus, RecordFiles
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import SegmentKind
from spark_ckpt.messages import Operator
from spark_ckpt.storage import LocalStorage
from tests.power.disks import Disk, Tree, prefixes, trees
from tests.power.recorder import Recorder
from tests.support.driver import Driver, Rows, check_rows, faulty_environment, load, make_segment
from tests.support.invariants import assert_invariants
from tests.support.segments import placed

_OPERATORS = (Operator(0, "symmetricHashJoin", ("left", "right"), 2, 2),)


@dataclass
class Script:
    """Actions of the query before the power loss.

    Args:
        batches: number of batches, spread over `runs` runs.
        runs: number of runs of the query.
        settings: settings of the coordinator.
        own_files: probability that a task writes a segment to a file of its own.
        bases: probability that a store sends a base.
    """

    batches: int = 6
    runs: int = 2
    settings: dict[str, str] = field(default_factory=dict)
    own_files: float = 0.0
    bases: float = 0.3

    @staticmethod
    def of(rng: random.Random) -> Script:
        """A random script."""
        return Script(
            batches=rng.randint(4, 7),
            runs=rng.choice((1, 2, 3)),
            settings={
                "retained": rng.choice(("2", "3")),
                "inlineThreshold": rng.choice(("0", "20480")),
                "maxParallelism": "8",
                "history": "2",
            },
            own_files=rng.choice((0.0, 0.5, 1.0)),
        )


@dataclass
class Played:
    """Result of a script.

    Args:
        operations: number of recorded operations.
        disks: number of disks judged.
        lost: for each faulty disk: the number of operations before the power loss, the loss, and the error found.
    """

    operations: int
    disks: int = 0
    lost: list[tuple[int, str, str]] = field(default_factory=list)


def play(seed: int, script: Script | None = None, disks: int | None = None, removals_last: bool = False) -> Played:
    """Records a script, and judges the disks possible after a power loss following each of its operations.

    Args:
        seed: seed of all random choices.
        script: the script; by default one is drawn from the seed.
        disks: number of disks to judge, drawn evenly; all of them by default.
        removals_last: see `Disk`.
    """
    rng = random.Random(seed)
    drawn = Script.of(rng)
    with tempfile.TemporaryDirectory() as directory, _same_ids(rng):
        root = Path(directory) / "disk"
        root.mkdir()
        recorder = Recorder(root)
        answers: dict[int, dict[SubtaskKey, Rows]] = {}
        with recorder.recording():
            _run(root, script or drawn, recorder, answers, rng)
        played = Played(len(recorder.operations))
        found: list[tuple[int, str, Tree, Disk]] = []
        for number, disk in prefixes(recorder.operations, removals_last):
            promised = Disk(promised=dict(disk.promised))
            found += [(number, label, tree, promised) for label, tree in trees(disk, rng, samples=3)]
        chosen = found if disks is None or disks >= len(found) else rng.sample(found, disks)
        for count, (number, label, tree, disk) in enumerate(chosen):
            played.disks += 1
            wrong = _wrong(Path(directory) / str(count), tree, disk.promised, answers, rng)
            if wrong is not None:
                played.lost.append((number, label, wrong))
    return played


def _run(
    root: Path, script: Script, recorder: Recorder, answers: dict[int, dict[SubtaskKey, Rows]], rng: random.Random
) -> None:
    version = 0
    for number in range(script.runs):
        storage = LocalStorage(root)
        driver = Driver(
            root, operators=_OPERATORS, settings=script.settings, environment=faulty_environment(storage), stage=number
        )
        last = script.batches * (number + 1) // script.runs
        while version < last:
            version += 1
            job = driver.trigger(version)
            if version > 1 and not driver.rows:
                load(driver, storage, version - 1)
            for key in driver.subtasks():
                changes = driver.changes_of(key, version)
                delta = make_segment(SegmentKind.DELTA, version, changes)
                base = driver.base_of(key, version - 1) if key in driver.ids and rng.random() < script.bases else None
                if rng.random() < script.own_files:
                    delta = _in_file(storage, "delta", delta)
                    base = base and replace(base, segment=_in_file(storage, "base", base.segment))
                reply = job.acknowledge(ack := driver.make_ack(key, version, base=base, changes=changes, delta=delta))
                driver.take_over(ack, changes)
                recorder.mark("ack", reply.completed_version or 0)
            answers[version] = {key: _whole(driver.rows[key]) for key in driver.subtasks()}
            recorder.mark("completed", version)
            assert reply.completed is not None
            recorder.mark("id", reply.completed)
            job.housekeeping()
        assert driver.job is not None
        driver.job.close(JobStatus.FINISHED)


def _in_file(storage: LocalStorage, kind: str, segment: SegmentRef) -> SegmentRef:
    """Writes the segment to a file, as an executor would."""
    path = f"shared/{kind}-{uuid.uuid4().hex}"
    storage.write_atomic(f"ckpt/{path}", bytes(segment.data))
    return placed(segment, path)


def _whole(rows: Rows) -> Rows:
    return {group: dict(entries) for group, entries in rows.items() if entries}


def _wrong(
    root: Path,
    tree: Tree,
    promised: dict[str, int],
    answers: dict[int, dict[SubtaskKey, Rows]],
    rng: random.Random,
) -> str | None:
    """Error found on a disk, or None: checked first as the disk is, then after one more batch."""
    root.mkdir()
    tree.write(root)
    storage = LocalStorage(root, durable=False)
    try:
        assert_invariants(storage, orphans=True)
        log = RecordFiles(storage).read_all({})
        versions = [record.version for record in log.values() if isinstance(record, CheckpointRecord)]
        completed, last_id = promised.get("completed", 0), promised.get("id", 0)
        assert not completed or completed in versions, f"version {completed} was answered for, and there are {versions}"
        assert max(log, default=0) >= last_id, f"id {last_id} was given, and the log ends with {max(log, default=0)}"
        _goes_on(root, storage, completed, answers)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return None


def _goes_on(root: Path, storage: LocalStorage, version: int, answers: dict[int, dict[SubtaskKey, Rows]]) -> None:
    """Starts a new run from the promised version, checks its rows, and makes a checkpoint."""
    driver = Driver(
        root,
        operators=_OPERATORS,
        settings={"maxParallelism": "8"},
        environment=faulty_environment(storage),
    )
    driver.trigger(version + 1)
    if version:
        load(driver, storage, version)
        rows = {key: driver.rows[key] for key in driver.subtasks()}
        assert rows == answers[version], f"version {version} has other rows than it had"
    driver.batch(version + 1, driver.subtasks() if version else ())
    check_rows(driver, storage, version + 1)
    assert_invariants(storage)


@contextmanager
def _same_ids(rng: random.Random) -> Iterator[None]:
    with patch("uuid.uuid4", lambda: uuid.UUID(int=rng.getrandbits(128))):
        yield
