from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_ckpt.cli.results.rewrite import Target
from spark_ckpt.errors import StorageError
from spark_ckpt.location.errors import TargetExistsError
from spark_ckpt.storage import CreateOutcome, CreateResult, LocalStorage
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError


@pytest.mark.parametrize(
    ("place", "path", "directory"),
    [
        ("chk-1", "chk-1/_metadata", "chk-1"),
        ("chk-1/", "chk-1/_metadata", "chk-1"),
        ("/a/chk-1", "/a/chk-1/_metadata", "/a/chk-1"),
        ("/a/_metadata", "/a/_metadata", "/a"),
        ("/a/_metadata.v3", "/a/_metadata.v3", "/a"),
        ("/a/my_metadata", "/a/my_metadata/_metadata", "/a/my_metadata"),
        ("_metadata", "_metadata", "."),
        ("/_metadata", "/_metadata", "/"),
        ("memory://a/b", "memory://a/b/_metadata", "memory://a/b"),
        ("memory://a/b/_metadata", "memory://a/b/_metadata", "memory://a/b"),
    ],
)
def test_files_and_directories(place: str, path: str, directory: str) -> None:
    target = Target(place)
    assert (target.path, target.directory) == (path, directory)


@pytest.mark.parametrize("form", ["{}", "{}/", "{}/_metadata", "file://{}", "file:{}", "{}/../new"])
def test_a_new_file(tmp_path: Path, form: str) -> None:
    place = form.format(tmp_path / "deep" / "new")
    Target(place).write(b"content")
    assert [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()] == [
        Path("deep/new/_metadata")
    ]
    assert (tmp_path / "deep" / "new" / "_metadata").read_bytes() == b"content"


def test_a_path_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Target("_metadata").write(b"1")
    Target("chk-1").write(b"2")
    assert (tmp_path / "_metadata").read_bytes() == b"1"
    assert (tmp_path / "chk-1" / "_metadata").read_bytes() == b"2"


def links(directory: Path) -> list[str]:
    """Other names of `directory/old/_metadata`."""
    old = directory / "old"
    (directory / "link").symlink_to(old)
    (directory / "file").mkdir()
    (directory / "file" / "_metadata").symlink_to(old / "_metadata")
    (directory / "hard").mkdir()
    os.link(old / "_metadata", directory / "hard" / "_metadata")
    return [
        str(old),
        f"{old}/",
        f"{old}/_metadata",
        f"file://{old}",
        f"{directory}/link/../old",
        f"{directory}/link",
        f"{directory}/file",
        f"{directory}/hard",
    ]


def test_no_file_is_overwritten_under_whatever_name(tmp_path: Path) -> None:
    old = tmp_path / "old" / "_metadata"
    Target(str(old)).write(b"old")
    for place in links(tmp_path):
        target = Target(place)
        for attempt in (
            target.check_absent,
            lambda target=target: target.write(b"old"),
            lambda t=target: t.write(b"new"),
        ):
            with pytest.raises(TargetExistsError) as refused:
                attempt()
            assert refused.value.target == target.path
    assert old.read_bytes() == b"old"


def test_a_link_to_nothing_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "_metadata").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TargetExistsError):
        Target(str(tmp_path)).write(b"new")
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_in_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(StorageError, match="Not a directory") as failed:
        Target(f"{tmp_path}/file").write(b"new")
    assert failed.value.path == f"{tmp_path}/file/_metadata"
    assert (tmp_path / "file").read_bytes() == b"x"


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        Target(f"{tmp_path}/new").write(b"new")
    assert list((tmp_path / "new").iterdir()) == []


class Doubtful(LocalStorage):
    """Storage with a given outcome of exclusive creates."""

    def __init__(self, root: Path, result: CreateResult | Exception, *, does: bool) -> None:
        super().__init__(root)
        self.result, self.does = result, does

    def create_exclusive(self, name: str, data: bytes) -> CreateResult:
        if self.does:
            super().create_exclusive(name, data)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def doubtful(directory: Path, result: CreateResult | Exception, *, does: bool) -> Target:
    target = Target(str(directory))
    target._storage = Doubtful(directory, result, does=does)
    return target


LOST = CreateResult(CreateOutcome.LOST)
UNKNOWN = CreateResult(CreateOutcome.UNKNOWN, TimeoutError("no answer"))


@pytest.mark.parametrize("result", [LOST, UNKNOWN], ids=["lost", "unknown"])
def test_a_file_that_was_created_after_all_is_ours(tmp_path: Path, result: CreateResult) -> None:
    doubtful(tmp_path, result, does=True).write(b"new")
    assert (tmp_path / "_metadata").read_bytes() == b"new"


def test_an_unknown_outcome_without_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=f"cannot create {tmp_path}/_metadata: no answer"):
        doubtful(tmp_path, UNKNOWN, does=False).write(b"new")


def test_a_storage_that_cannot_create_exclusively_is_not_written_to(tmp_path: Path) -> None:
    cause = ExclusiveCreateUnsupportedError("x", "no hard links")
    with pytest.raises(StorageError, match="Write the file elsewhere and copy it"):
        doubtful(tmp_path, cause, does=False).write(b"new")
