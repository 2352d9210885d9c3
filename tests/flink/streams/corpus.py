"""Checkpoints in `vectors/` with state files, and access to their streams."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from spark_ckpt import metadata as m
from spark_ckpt.flink.streams import Entry, KeyedState, StateFiles, StateStream, Value
from tests.metadata.corpus import FLINK, VECTORS

STORAGE_ROOT = "oracle://ckpt/"
KeyGroups = m.KeyGroupsStateHandle | m.KeyGroupsSavepointStateHandle


@dataclass(frozen=True)
class StateVector:
    """Checkpoint with its state files."""

    directory: Path

    def __str__(self) -> str:
        return self.directory.name

    @property
    def job(self) -> dict[str, Any]:
        """Description of the job; empty for a checkpoint without a job."""
        path = self.directory / "vector.json"
        job: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return job

    @property
    def place(self) -> Path:
        """Original place of `_metadata`; tests read a copy in the vector's directory."""
        return self.directory / str(self.job.get("metadata", "_metadata"))

    @cached_property
    def metadata(self) -> m.CheckpointMetadata:
        """Metadata with paths relocated to the corpus."""
        written = m.load(self.directory)
        try:
            return m.relocate(written, STORAGE_ROOT, str(self.directory.parent)).metadata
        except m.NothingToRelocateError:
            return written

    @property
    def files(self) -> StateFiles:
        """State files of the checkpoint, including changelogs outside the job's directory."""
        return StateFiles(self.place, [str(self.directory)])

    def subtasks(self) -> Iterator[tuple[m.OperatorState, int, m.OperatorSubtaskState]]:
        for operator in self.metadata.operator_states:
            for index, subtask in operator.subtask_states.items():
                yield operator, index, subtask

    def keyed(self) -> Iterator[tuple[m.OperatorState, m.KeyedStateHandle]]:
        """All handles of managed keyed state, with changelog handles resolved into their parts."""
        for operator, _, subtask in self.subtasks():
            for handle in _parts(subtask.managed_keyed_state):
                yield operator, handle

    def key_groups(self) -> Iterator[tuple[m.OperatorState, KeyGroups]]:
        """All handles of managed keyed state with key groups in one stream."""
        for operator, handle in self.keyed():
            if isinstance(handle, KeyGroups):
                yield operator, handle


def _parts(handle: m.KeyedStateHandle | None) -> Iterator[m.KeyedStateHandle]:
    if isinstance(handle, m.ChangelogStateBackendHandle):
        for part in (*handle.materialized_state_handles, *handle.non_materialized_state_handles):
            yield from _parts(part)
    elif handle is not None:
        yield handle


def inline(content: bytes, name: str = "inline") -> m.ByteStreamStateHandle:
    return m.ByteStreamStateHandle(name, content)


def entries_of(state: KeyedState) -> Iterator[tuple[int, Entry]]:
    """All entries, with their key groups."""
    for group in state.key_groups():
        for entry in state.entries(group):
            yield group.key_group, entry


def values_of(state: KeyedState) -> dict[str, list[dict[str, Value]]]:
    """Values of all entries by state name, each as a dictionary of its parts by name."""
    found: dict[str, list[dict[str, Value]]] = {meta.name: [] for meta in state.header.states}
    for _, entry in entries_of(state):
        assert all(datum.known for datum in entry.parts.values())
        values = {part.value: datum.value for part, datum in entry.parts.items()}
        found[state.header.states[entry.state].name].append(values)
    return found


def open_stream(content: bytes) -> StateStream:
    """Stream with the given bytes."""
    return StateFiles("/checkpoint/_metadata").open(inline(content))


JOBS = [StateVector(vector.directory) for vector in FLINK]
ROWS = [StateVector(path) for path in sorted((VECTORS / "rows").iterdir()) if path.is_dir()]
WINDOWS = [StateVector(path) for path in sorted((VECTORS / "windows").iterdir()) if path.is_dir()]
BACKENDS = [StateVector(path) for path in sorted((VECTORS / "backends").iterdir()) if path.is_dir()]


def backend(name: str) -> StateVector:
    return next(vector for vector in BACKENDS if vector.directory.name == name)


def with_unknown_class(vector: StateVector, root: Path) -> StateVector:
    """Copy of a vector below `root` whose serializer of instants has a class that nobody knows, of the same length."""
    directory = root / f"with-unknown-class-{vector.directory.name}"
    shutil.copytree(vector.directory, directory)
    metadata = directory / "_metadata"
    content = metadata.read_bytes()
    assert b"InstantSerializer" in content
    metadata.write_bytes(content.replace(b"InstantSerializer", b"UnknownSerializer"))
    return StateVector(directory)


def with_unknown_end(vector: StateVector) -> StateVector:
    """The vector, with a byte more before its first key group: an unknown serializer has no possible end."""
    ((operator, handle),) = vector.key_groups()
    inside, groups = handle.delegate_state_handle, handle.group_range_offsets
    assert isinstance(inside, m.ByteStreamStateHandle)
    first = int(groups.offsets[groups.offsets > 0].min())
    longer = inline(inside.data[:first] + b"\0" + inside.data[first:])
    moved = m.KeyGroupRangeOffsets.of(0, np.where(groups.offsets > 0, groups.offsets + 1, groups.offsets))
    subtask = operator.subtask_states[0]
    keyed = replace(handle, group_range_offsets=moved, delegate_state_handle=longer)
    changed = replace(operator, subtask_states={0: replace(subtask, managed_keyed_state=keyed)})
    m.dump(replace(vector.metadata, operator_states=(changed,)), vector.directory / "longer" / "_metadata")
    return StateVector(vector.directory / "longer")


def flink_job(directory: Path, *names: str) -> Path:
    """Directory of a job with checkpoints 1, 2, ..., each a vector of the same job; its files lie beside it, at
    `STORAGE_ROOT` for it.

    Args:
        directory: a new directory.
        names: vectors; by default two of different backends and parallelisms.
    """
    for number, name in enumerate(names or ("f120-heap-p1-file", "f120-savepoint-canonical-heap-p2"), 1):
        vector = job(name)
        shutil.copytree(vector.directory, directory / name, dirs_exist_ok=True)
        written = m.load(vector.directory)
        # Relative paths count from the directory of the metadata.
        for relative in vector.place.parent.iterdir() if vector.place.parent != vector.directory else ():
            if relative.is_file():
                (directory / "job" / f"chk-{number}").mkdir(parents=True, exist_ok=True)
                shutil.copyfile(relative, directory / "job" / f"chk-{number}" / relative.name)
        m.dump(replace(written, checkpoint_id=number), directory / "job" / f"chk-{number}" / "_metadata", 4)
    return directory / "job"


def job(name: str) -> StateVector:
    return next(vector for vector in JOBS if vector.directory.name == name)


def lay_out(vector: StateVector, root: Path) -> Path:
    """Copies a job's files to their original layout below `root`; returns the path of `_metadata`."""
    shutil.copytree(vector.directory, root / str(vector))
    place = root / str(vector) / vector.place.relative_to(vector.directory)
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        shutil.copyfile(vector.directory / "_metadata", place)
    return place
