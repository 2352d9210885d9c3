from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_ckpt.checkpoint.layout import is_ours, metadata_path, new_merged_path
from spark_ckpt.location.errors import LinkedStateError, ModificationTimeUnknownError
from spark_ckpt.location.orphans import (
    Leftover,
    check_no_links,
    list_all,
    list_state,
    list_temporaries,
    select_orphans,
)
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
    """An object store lists such a directory, but no files in it, if the cleaner deletes `_metadata` in between."""
    there = [Leftover("chk-8", 0, None, is_directory=True), file("shared/old", 999)]
    assert paths(select_orphans(there, set(), before_ms=1000)) == {"shared/old"}


HEX = "0123456789abcdef" * 2
OURS = [
    *(f"shared/{kind}-{HEX}" for kind in ("base", "delta", "deltas", "merged")),
    f"shared/.base-{HEX}.tmp",
    f"shared/.delta-{HEX}.crc",
    f"shared/..base-{HEX}.tmp.crc",
    "chk-1/_metadata",
    "chk-1/._metadata.crc",
    "chk-2-3/_metadata",
]
FOREIGN = [
    "shared/payroll.parquet",
    "shared/.payroll.parquet.crc",
    "shared/delta-1",
    f"shared/delta-{HEX}.bak",
    f"shared/delta-{HEX[:-1]}",
    f"shared/delta-{HEX.upper()}",
    f"shared/other-{HEX}",
    "shared/_metadata",
    "chk-1/other",
    "chk-1/_metadata.bak",
    f"chk-1/delta-{HEX}",
    "notes.txt",
    ".notes.txt.crc",
]
FOREIGN_DIRECTORIES = ["shared/sub", "chk-1/sub", "savepoint-1", "chk-x"]


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    storage = LocalStorage(tmp_path / "location")
    for path in [
        *OURS,
        *FOREIGN,
        *(f"{directory}/x" for directory in FOREIGN_DIRECTORIES),
        "taskowned/x",
        "savepoints/x",
    ]:
        storage.write_atomic(f"ckpt/{path}", b"x")
    storage.make_directory("ckpt/chk-9")
    storage.write_atomic("ckpt/completed/00000000000000000001.json", b"x")
    storage.write_atomic("ckpt/rollbacks/00000000000000000001.json", b"x")
    storage.write_atomic("ckpt/import.json", b"x")
    return storage


def test_only_names_that_are_written_are_files_of_ours(storage: LocalStorage) -> None:
    assert paths(list_state(storage)) == {*OURS, "chk-9"}
    listing = list_all(storage)
    assert paths(list(listing.state)) == {*OURS, "chk-9"}
    assert paths(list(listing.foreign)) == {*FOREIGN, *FOREIGN_DIRECTORIES}


def test_what_is_written_is_a_file_of_ours() -> None:
    for path in (new_merged_path(), metadata_path(4), metadata_path(4, 2)):
        assert is_ours(*path.split("/"))


def test_temporaries_have_names_of_ours(storage: LocalStorage) -> None:
    temporaries = [
        "probe-0a1b",
        f".tmp-{HEX}",
        "completed/probe-0a1b",
        f"completed/.tmp-{HEX}",
        "completed/.00000000000000000001.json.crc",
    ]
    for path in [*temporaries, "completed/9.json.bak", "completed/.9.json.crc", ".tmp-mine", "completed/x.crc"]:
        storage.write_atomic(f"ckpt/{path}", b"x")
        os.utime(Path(storage.location, "ckpt", path), (0, 0))  # a storage hides its own new temporaries
    assert paths(list_temporaries(storage)) == set(temporaries)


@pytest.mark.parametrize("link", ["ckpt", "ckpt/shared", "ckpt/completed", "ckpt/chk-1", "ckpt/taskowned", "ckpt/x/y"])
@pytest.mark.parametrize("ends", ["in a directory", "nowhere"])
def test_a_link_below_ckpt_is_refused(tmp_path: Path, link: str, ends: str) -> None:
    victim = tmp_path / "victim"
    if ends == "in a directory":
        victim.mkdir()
    place = tmp_path / "location" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(victim)
    with pytest.raises(LinkedStateError, match="is a symbolic link") as caught:
        check_no_links(LocalStorage(tmp_path / "location"))
    assert caught.value.path == str(place)
    with pytest.raises(LinkedStateError):
        list_state(LocalStorage(tmp_path / "location"))


def test_a_link_in_place_of_a_file_is_refused(storage: LocalStorage, tmp_path: Path) -> None:
    (tmp_path / "payroll").write_text("x")
    Path(storage.location, "ckpt/shared", f"base-{HEX}").unlink()
    Path(storage.location, "ckpt/shared", f"base-{HEX}").symlink_to(tmp_path / "payroll")
    with pytest.raises(LinkedStateError, match=f"base-{HEX}"):
        check_no_links(storage)


def test_the_location_itself_may_be_a_link(storage: LocalStorage, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(storage.location)
    linked = LocalStorage(tmp_path / "link")
    assert paths(list_state(linked)) == {*OURS, "chk-9"}


def test_where_nothing_is_no_link_is(tmp_path: Path) -> None:
    check_no_links(LocalStorage(tmp_path / "nowhere"))
