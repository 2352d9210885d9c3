"""Files that may be opened, and errors for all others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from spark_ckpt import metadata as m
from spark_ckpt.errors import SparkCkptError, StateFileNotFoundError, StorageError
from spark_ckpt.flink.streams import StateFileOutsideError, StateFiles, StateFileSizeError, StateStreamFormatError

CONTENT = bytes(range(256)) * 1024


def content_of(files: StateFiles, handle: m.StreamStateHandle, **options: Any) -> bytes:
    with files.open(handle, **options) as stream:
        return stream.input().raw(stream.size, "all")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Job directory with a checkpoint, next to a file and a job that are outside."""
    job = tmp_path / "checkpoints" / "job"
    for directory in ("chk-7", "shared"):
        (job / directory).mkdir(parents=True)
        (job / directory / "state").write_bytes(directory.encode())
    (tmp_path / "outside").write_bytes(b"secret")
    (tmp_path / "checkpoints" / "job-2").mkdir()
    (tmp_path / "checkpoints" / "job-2" / "state").write_bytes(b"other job")
    return job


def relative(path: str, size: int = -1) -> m.RelativeFileStateHandle:
    return m.RelativeFileStateHandle(path, size)


def absolute(path: object, size: int = -1) -> m.FileStateHandle:
    return m.FileStateHandle(str(path), size)


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"], ids=["path", "hadoop", "url"])
def test_files_of_the_job(job: Path, form: str) -> None:
    for metadata in (form.format(job / "chk-7" / "_metadata"), job / "chk-7" / "_metadata"):
        files = StateFiles(metadata)
        assert content_of(files, relative("state")) == b"chk-7"
        assert content_of(files, relative("../shared/state")) == b"shared"
        assert content_of(files, absolute(form.format(job / "shared" / "state"))) == b"shared"
        assert content_of(files, absolute(form.format(job / "chk-7" / ".." / "shared" / "state"))) == b"shared"


def test_a_metadata_file_named_from_the_working_directory(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(job / "chk-7")
    assert content_of(StateFiles("_metadata"), relative("../shared/state")) == b"shared"


@pytest.mark.parametrize(
    "path",
    [
        "../../../outside",
        "../../job-2/state",
        "x/../../../../outside",
        "/../../../outside",
        "./../../job/../../outside",
    ],
)
def test_relative_paths_stay_within_the_job(job: Path, path: str) -> None:
    with pytest.raises(StateFileOutsideError) as error:
        StateFiles(job / "chk-7" / "_metadata").open(relative(path))
    assert error.value.roots == (str(job),)
    assert str(job) in str(error.value) and "--allow-outside" in str(error.value) and "--map" in str(error.value)


@pytest.mark.parametrize(
    "path",
    ["{top}/outside", "file:{top}/checkpoints/job/../../outside", "{top}/checkpoints/job-2/state", "{top}/checkpoints"],
)
def test_absolute_paths_stay_within_the_job(job: Path, path: str) -> None:
    top = job.parent.parent
    with pytest.raises(StateFileOutsideError) as error:
        StateFiles(job / "chk-7" / "_metadata").open(absolute(path.format(top=top)))
    assert error.value.path.startswith(str(top))


@pytest.mark.parametrize("path", ["s3://bucket/checkpoints/job/state", "http://localhost/state", "hdfs:///state"])
def test_other_storages_are_outside(job: Path, path: str) -> None:
    with pytest.raises(StateFileOutsideError, match=path):
        StateFiles(job / "chk-7" / "_metadata").open(absolute(path))


def test_a_segment_of_a_file_outside(job: Path) -> None:
    scope = m.CheckpointedStateScope.SHARED
    handle = m.SegmentFileStateHandle(str(job.parent.parent / "outside"), 0, 3, scope, "id")
    with pytest.raises(StateFileOutsideError):
        StateFiles(job / "chk-7" / "_metadata").open(handle)


def test_links_do_not_lead_outside(job: Path) -> None:
    (job / "shared" / "link").symlink_to(job.parent.parent / "outside")
    (job / "shared" / "inner").symlink_to(job / "shared" / "state")
    files = StateFiles(job / "chk-7" / "_metadata")
    with pytest.raises(StateFileOutsideError):
        files.open(relative("../shared/link"))
    assert content_of(files, relative("../shared/inner")) == b"shared"


def test_a_job_may_be_named_by_a_link(job: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(job)
    files = StateFiles(tmp_path / "link" / "chk-7" / "_metadata")
    assert content_of(files, relative("../shared/state")) == b"shared"
    assert content_of(files, absolute(job / "shared" / "state")) == b"shared"


def test_a_savepoint_is_its_own_directory(job: Path) -> None:
    savepoint = job / "savepoint-1a2b3c-0123456789ab"
    savepoint.mkdir()
    (savepoint / "state").write_bytes(b"savepoint")
    files = StateFiles(savepoint / "_metadata")
    assert content_of(files, relative("state")) == b"savepoint"
    with pytest.raises(StateFileOutsideError):
        files.open(relative("../shared/state"))


def test_what_a_caller_allows(job: Path) -> None:
    metadata, outside = job / "chk-7" / "_metadata", absolute(job.parent.parent / "outside")
    assert content_of(StateFiles(metadata, allow_outside=True), outside) == b"secret"
    assert content_of(StateFiles(metadata, allow_outside=True), relative("../../../outside")) == b"secret"
    other = absolute(job.parent / "job-2" / "state")
    also = StateFiles(metadata, [str(job.parent / "job-2")])
    assert content_of(also, other) == b"other job"
    with pytest.raises(StateFileOutsideError, match=r"job and .*job-2"):
        also.open(outside)


# ---- streams ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def memory() -> Iterator[Any]:
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/bucket/job/chk-1/state", CONTENT)
    fs.pipe_file("/bucket/elsewhere", b"secret")
    yield fs
    fs.rm("/bucket", recursive=True)


@pytest.mark.usefixtures("memory")
def test_another_file_system() -> None:
    files = StateFiles("memory://bucket/job/chk-1/_metadata")
    assert content_of(files, relative("state", len(CONTENT))) == CONTENT
    assert content_of(files, absolute("memory://bucket/job/chk-1/state")) == CONTENT
    for path in ("memory://bucket/elsewhere", "memory://other/job/chk-1/state", "memory://bucket/job/../elsewhere"):
        with pytest.raises(StateFileOutsideError):
            files.open(absolute(path))


def test_s3_has_several_names() -> None:
    files = StateFiles("s3://bucket/job/chk-1/_metadata")
    for path in ("s3a://bucket/elsewhere", "s3n://other/job/state"):
        with pytest.raises(StateFileOutsideError) as error:
            files.open(absolute(path))
        assert error.value.roots == ("s3://bucket/job",)
    missing = StateFiles("memory://bucket/job/chk-1/_metadata", ["s3a://bucket/job"])
    with pytest.raises(StateFileOutsideError):
        missing.open(absolute("s3://bucket/job-2/state"))


@pytest.mark.parametrize("size", [-1, 5])
def test_inline_parts_and_delegates(job: Path, size: int) -> None:
    files = StateFiles(job / "chk-7" / "_metadata")
    inline = m.ByteStreamStateHandle("name", b"inline")
    offsets = m.KeyGroupRangeOffsets.of(0, [0])
    assert content_of(files, inline) == b"inline"
    assert content_of(files, m.KeyGroupsStateHandle(offsets, inline)) == b"inline"
    assert content_of(files, m.EmptySegmentFileStateHandle()) == b""
    scope = m.CheckpointedStateScope.SHARED
    segment = m.SegmentFileStateHandle(str(job / "shared" / "state"), 2, 3, scope, "id")
    assert content_of(files, m.KeyGroupsStateHandle(offsets, segment)) == b"are"
    assert content_of(files, relative("state", size)) == b"chk-7"


@pytest.mark.parametrize(("start", "size"), [(0, 7), (4, 3), (-1, 2), (3, -1), (2**62, 1)])
def test_a_part_that_the_file_does_not_have(job: Path, start: int, size: int) -> None:
    scope = m.CheckpointedStateScope.SHARED
    with pytest.raises(StateFileSizeError):
        StateFiles(job / "chk-7" / "_metadata").open(
            m.SegmentFileStateHandle(str(job / "shared" / "state"), start, size, scope, "id")
        )


def test_a_file_of_another_size(job: Path) -> None:
    files = StateFiles(job / "chk-7" / "_metadata")
    with pytest.raises(StateFileSizeError) as error:
        files.open(relative("state", 6))
    assert (error.value.expected, error.value.found) == (6, 5)
    assert error.value.path == str(job / "chk-7" / "state")
    assert content_of(files, relative("state", 6), size_is_known=False) == b"chk-7"


@pytest.mark.parametrize(
    ("path", "kind"),
    [("missing", StateFileNotFoundError), ("../shared", StorageError), ("nul\0", StorageError)],
    ids=["missing", "directory", "NUL"],
)
def test_files_that_cannot_be_read(job: Path, path: str, kind: type[SparkCkptError]) -> None:
    with pytest.raises(kind) as error:
        StateFiles(job / "chk-7" / "_metadata").open(relative(path))
    assert str(job) in str(error.value)


def test_an_unknown_scheme(job: Path) -> None:
    with pytest.raises(StorageError, match="oracle://ckpt/state"):
        StateFiles(job / "chk-7" / "_metadata", allow_outside=True).open(absolute("oracle://ckpt/state"))


def test_parts_of_a_stream(job: Path) -> None:
    (job / "shared" / "large").write_bytes(CONTENT)
    with StateFiles(job / "chk-7" / "_metadata").open(relative("../shared/large")) as stream:
        first, second = stream.input(100_000, 200_000), stream.input(7)
        # Reads both inputs in alternation.
        read = [(first.raw(1000, "first"), second.raw(1000, "second")) for _ in range(100)]
        assert first.at_end() and not second.at_end()
        assert b"".join(part for part, _ in read) == CONTENT[100_000:200_000]
        assert b"".join(part for _, part in read) == CONTENT[7:100_007]
        for start, end in ((-1, 5), (5, 4), (0, len(CONTENT) + 1)):
            with pytest.raises(StateStreamFormatError, match="of a stream of 262144"):
                stream.input(start, end)


def test_a_file_that_shrinks_while_it_is_read(job: Path) -> None:
    path = job / "shared" / "large"
    path.write_bytes(CONTENT)
    with StateFiles(job / "chk-7" / "_metadata").open(relative("../shared/large")) as stream:
        path.write_bytes(b"")
        with pytest.raises(StateStreamFormatError, match="262144 bytes needed, "):
            stream.input().raw(len(CONTENT), "all")
