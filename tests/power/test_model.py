"""Possible disks after a few operations and a power loss, according to the model."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

from tests.power.disks import Disk, prefixes, trees
from tests.power.recorder import Entry, Recorder, Synced


def contents(root: Path, action: Callable[[Path], None]) -> set[frozenset[tuple[str, bytes]]]:
    """The possible sets of files after an action followed by a power loss."""
    recorder = Recorder(root)
    with recorder.recording():
        action(root)
    *_, (_, disk) = prefixes(recorder.operations)
    return {frozenset(tree.files.items()) for _, tree in trees(disk, random.Random(1), 20)}


def _write(path: Path, sync: bool = False) -> None:
    with path.open("xb") as file:
        file.write(b"ab")
        file.flush()
        if sync:
            os.fsync(file.fileno())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def test_nothing_is_certain_of_a_file_that_was_only_written(tmp_path: Path) -> None:
    found = contents(tmp_path, lambda root: _write(root / "a"))
    whole, gone = frozenset({("a", b"ab")}), frozenset[tuple[str, bytes]]()
    assert {whole, gone, frozenset({("a", b"")})} <= found


def test_a_synced_file_may_lack_its_name(tmp_path: Path) -> None:
    found = contents(tmp_path, lambda root: _write(root / "a", sync=True))
    assert found == {frozenset(), frozenset({("a", b"ab")})}


def test_a_synced_directory_may_lack_what_its_files_hold(tmp_path: Path) -> None:
    def action(root: Path) -> None:
        _write(root / "a")
        _sync(root)

    found = contents(tmp_path, action)
    assert frozenset() not in found
    assert frozenset({("a", b"")}) in found


def test_what_was_synced_with_its_directories_is_there(tmp_path: Path) -> None:
    def action(root: Path) -> None:
        (root / "d").mkdir()
        _write(root / "d" / "a", sync=True)
        _sync(root / "d")
        _sync(root)

    assert contents(tmp_path, action) == {frozenset({("d/a", b"ab")})}


def test_a_directory_without_a_name_takes_its_files_along(tmp_path: Path) -> None:
    def action(root: Path) -> None:
        (root / "d").mkdir()
        _write(root / "d" / "a", sync=True)
        _sync(root / "d")

    assert frozenset() in contents(tmp_path, action)


def test_a_file_that_was_deleted_may_come_back(tmp_path: Path) -> None:
    def action(root: Path) -> None:
        _write(root / "a", sync=True)
        _sync(root)
        (root / "a").unlink()

    assert contents(tmp_path, action) == {frozenset(), frozenset({("a", b"ab")})}


def test_a_link_and_a_rename_are_seen(tmp_path: Path) -> None:
    def action(root: Path) -> None:
        _write(root / "a", sync=True)
        os.link(root / "a", root / "b")
        os.replace(root / "a", root / "c")
        _sync(root)

    assert contents(tmp_path, action) == {frozenset({("b", b"ab"), ("c", b"ab")})}


def test_a_disk_without_operations_is_empty() -> None:
    assert [disk.undecided() for _, disk in prefixes([])] == [[]]
    disk = Disk()
    disk.apply(Entry(0, "a", 1))
    assert disk.undecided() == [(0, "a")]
    disk.apply(Synced(0))
    assert disk.undecided() == []
