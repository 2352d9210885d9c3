from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.coordinator.orphans import Leftover, list_state, list_temporaries, select_orphans
from spark_ckpt.errors import ModificationTimeUnknownError
from spark_ckpt.storage import LocalStorage

USED = {"chk-7/_metadata", "shared/delta-1"}


def paths(found: list[Leftover]) -> set[str]:
    return {leftover.path for leftover in found}


def file(path: str, modified_ms: int | None = 0) -> Leftover:
    return Leftover(path, 10, modified_ms)


@pytest.mark.parametrize("path", ["shared/delta-1", "shared/.delta-1.crc", "chk-7/_metadata", "chk-7/._metadata.crc"])
def test_what_a_checkpoint_refers_to_stays_with_its_checksum(path: str) -> None:
    assert select_orphans([file(path)], USED) == []


@pytest.mark.parametrize(
    "path",
    [
        "shared/delta-2",
        "shared/.delta-2.crc",
        "shared/.delta-1.tmp",
        "chk-8/_metadata",
        "chk-7-2/_metadata",
        "probe-0a",
    ],
)
def test_what_nothing_refers_to_is_an_orphan(path: str) -> None:
    assert paths(select_orphans([file(path)], USED)) == {path}


def test_a_directory_stays_while_its_metadata_is_in_use() -> None:
    directories = [Leftover(f"chk-{i}", 0, 0, is_directory=True) for i in (7, 8)]
    assert paths(select_orphans(directories, USED)) == {"chk-8"}


def test_only_what_is_old_enough() -> None:
    there = [file("shared/young", 1000), file("shared/old", 999)]
    assert paths(select_orphans(there, set(), before_ms=1000)) == {"shared/old"}


def test_an_orphan_of_unknown_age_is_refused_unless_any_will_do() -> None:
    there = [file("shared/a", None)]
    with pytest.raises(ModificationTimeUnknownError, match="ckpt/shared/a"):
        select_orphans(there, set(), before_ms=1000)
    assert paths(select_orphans(there, set())) == {"shared/a"}
    assert select_orphans(there, {"shared/a"}, before_ms=1000) == []


def test_a_directory_of_unknown_age_is_left_alone() -> None:
    """An object store lists one, and then nothing in it, if the cleaner deletes `_metadata` in between."""
    there = [Leftover("chk-8", 0, None, is_directory=True), file("shared/old", 999)]
    assert paths(select_orphans(there, set(), before_ms=1000)) == {"shared/old"}


def test_only_files_of_ours_are_looked_at(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    ours = ["shared/x", "chk-1/_metadata", "chk-1/other", "chk-2-3/_metadata"]
    foreign = ["taskowned/x", "savepoint-1/_metadata", "chk-x/_metadata", "shared/sub/x", "notes.txt"]
    for path in [*ours, *foreign]:
        storage.write_atomic(f"ckpt/{path}", b"x")
    (tmp_path / "ckpt" / "chk-9").mkdir()
    assert paths(list_state(storage)) == {*ours, "chk-9"}
    temporaries = ["probe-0a1b", ".tmp-0a1b", "completed/probe-0a1b", "completed/.00000000000000000001.json.crc"]
    for path in [*temporaries, "completed/00000000000000000001.json", "completed/9.json.bak"]:
        storage.write_atomic(f"ckpt/{path}", b"x")
    # A storage does not list its own temporary files while they are new.
    assert paths(list_temporaries(storage)) == {path for path in temporaries if not path.startswith(".tmp-")}
