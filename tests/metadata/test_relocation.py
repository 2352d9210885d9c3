from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from spark_ckpt import metadata as m
from tests.metadata.corpus import FLINK, Vector
from tests.metadata.handles import OFFSETS, checkpoint, everywhere
from tests.metadata.strategies import checkpoints


def paths_in(report: Any) -> Iterator[str]:
    """Paths in the path fields of a report; a search of all strings in the file would find other texts, too."""
    text = repr(report)
    yield from (part.split("'")[1] for part in text.split("file_path=")[1:])
    for field in ("task_owned_dir=", "shared_dir="):
        yield from (part.split("'")[1] for part in text.split(field)[1:])


def test_every_path_in_every_handle() -> None:
    moved = m.relocate(everywhere("hdfs://nn:9000/flink"), "hdfs://nn:9000/flink", "s3://bucket/dir")
    assert moved.metadata == everywhere("s3://bucket/dir")
    assert len(moved.rewritten) == len(list(paths_in(moved.metadata))) == 13
    assert moved.left_alone == moved.relative == ()
    assert b"hdfs" not in m.dumps(moved.metadata)


@pytest.mark.parametrize(
    ("path", "old", "new", "expected"),
    [
        ("s3://b/a/x", "s3://b/a", "s3://c", "s3://c/x"),
        ("s3://b/a/x", "s3://b/a/", "s3://c/", "s3://c/x"),
        ("s3://b/a/x", "s3://b", "/mnt/b", "/mnt/b/a/x"),
        ("s3://b/a/x", "s3://b/a/x", "s3://b/a/y", "s3://b/a/y"),
        ("S3://b/a/x", "s3://b/a", "s3://c", "s3://c/x"),
        ("/a/b/x", "/a/b", "/c", "/c/x"),
        ("/a/b/x", "/", "/c", "/c/a/b/x"),
        ("/a/b/x", "/a", "/", "/b/x"),
        ("file:/a/b/x", "/a/b", "/c", "/c/x"),
        ("file:/a/b/x", "file:///a/b", "file:/c", "file:/c/x"),
        ("file:///a/b/x", "file:/a/b", "file:///c", "file:///c/x"),
        ("file://localhost/a/x", "/a", "/c", "/c/x"),
        ("/a/b/x", "file:///a", "s3a://c", "s3a://c/b/x"),
        ("/a//b/./x", "/a/b", "/c", "/c/x"),
        ("/a/n/../b/x", "/a/b", "/c", "/c/x"),
        ("/../a/x", "/a", "/c", "/c/x"),
        ("s3://b/a\nb/x?y#z%20", "s3://b/a\nb", "s3://c", "s3://c/x?y#z%20"),
    ],
)
def test_a_prefix_that_fits(path: str, old: str, new: str, expected: str) -> None:
    moved = m.relocate(checkpoint(path), old, new)
    assert moved.metadata == checkpoint(expected)
    assert moved.rewritten == ((path, expected),)


@pytest.mark.parametrize(
    ("path", "old"),
    [
        ("s3://b/ab/x", "s3://b/a"),
        ("s3://bc/a/x", "s3://b"),
        ("s3://b/a", "s3://b/a/x"),
        ("s3://b/A/x", "s3://b/a"),
        ("s3a://b/a/x", "s3://b/a"),
        ("hdfs:///a/x", "hdfs://nn/a"),
        ("hdfs:///a/x", "/a"),
        ("/a/../b/x", "/a"),
        ("a/b/x", "/a"),
        ("//a/b/x", "/b"),
        ("/ab/x", "file:/a"),
    ],
)
def test_a_prefix_that_does_not_fit(path: str, old: str) -> None:
    with pytest.raises(m.NothingToRelocateError) as refused:
        m.relocate(checkpoint(path), old, "/new")
    assert refused.value.prefix == old


def test_what_does_not_fit_and_what_is_relative_stays() -> None:
    relative = m.RelativeFileStateHandle("../shared/x", 1)
    other = m.OperatorState(
        bytes(16), 1, 1, {0: m.OperatorSubtaskState(raw_keyed_state=m.KeyGroupsStateHandle(OFFSETS, relative))}
    )
    paths = checkpoint("s3://b/a/1", "s3://b/ab/2", "s3://b/a/1", "odd/path")
    metadata = m.CheckpointMetadata(1, (), (*paths.operator_states, other), 4, b"properties")
    moved = m.relocate(metadata, "s3://b/a", "/a")
    assert moved.rewritten == (("s3://b/a/1", "/a/1"), ("s3://b/a/1", "/a/1"))
    assert moved.left_alone == ("s3://b/ab/2", "odd/path")
    assert moved.relative == ("../shared/x",)
    expected = checkpoint("/a/1", "s3://b/ab/2", "/a/1", "odd/path").operator_states
    assert moved.metadata == m.CheckpointMetadata(1, (), (*expected, other), 4, b"properties")


def test_the_error_says_where_the_paths_are() -> None:
    metadata = checkpoint("s3://b/a/shared/1", "s3://b/a/chk-1/2", "file:/q/x", "/q/y/z", "s3://c/1", "odd")
    with pytest.raises(m.NothingToRelocateError) as refused:
        m.relocate(metadata, "s3://b/other", "/new")
    assert refused.value.directories == ("/q", "s3://b/a", "s3://c")
    assert refused.value.schemes == ()
    assert "the paths lie in /q, s3://b/a, s3://c: give a prefix of at least one path" in str(refused.value)


def test_the_error_says_that_the_scheme_is_another() -> None:
    with pytest.raises(m.NothingToRelocateError, match="the paths have the scheme s3a") as refused:
        m.relocate(checkpoint("s3a://b/a/x", "gs://other/x"), "s3://b/a", "/new")
    assert refused.value.schemes == ("s3a",)


def test_the_error_says_that_nothing_needs_a_new_prefix() -> None:
    relative = m.KeyGroupsStateHandle(OFFSETS, m.RelativeFileStateHandle("x", 1))
    subtask = m.OperatorSubtaskState(managed_keyed_state=relative)
    metadata = m.CheckpointMetadata(1, (), (m.OperatorState(bytes(16), 1, 1, {0: subtask}),))
    with pytest.raises(
        m.NothingToRelocateError, match="all paths are relative to the directory of _metadata"
    ) as refused:
        m.relocate(metadata, "/a", "/b")
    assert (refused.value.directories, refused.value.relative) == ((), 1)
    with pytest.raises(m.NothingToRelocateError, match="there are none"):
        m.relocate(m.CheckpointMetadata(1), "/a", "/b")


@pytest.mark.parametrize("prefix", ["", "a/b", "./a", "file:", "s3:a/b", "s3://"])
def test_prefixes_are_absolute(prefix: str) -> None:
    for pair in ((prefix, "/a"), ("/a", prefix)):
        with pytest.raises(m.PathPrefixError) as refused:
            m.relocate(checkpoint("/a/x"), *pair)
        assert refused.value.prefix == prefix


@settings(max_examples=60)
@given(checkpoints(3))
def test_there_and_back(metadata: m.CheckpointMetadata) -> None:
    try:
        there = m.relocate(metadata, "s3://b", "gs://there/deep")
    except m.NothingToRelocateError as nothing:
        assert not any(directory.startswith("s3:") for directory in nothing.directories)  # noqa: PT017
        return
    assert not any(path.startswith("s3://b/") for path in (*paths_in(there.metadata), *there.left_alone))
    back = m.relocate(there.metadata, "gs://there/deep", "s3://b")
    assert back.metadata == metadata
    assert back.rewritten == tuple((new, old) for old, new in there.rewritten)


WITH_PATHS = [vector for vector in FLINK if b"oracle" in vector.content]


@pytest.mark.parametrize("vector", WITH_PATHS, ids=str)
def test_files_of_flink(vector: Vector) -> None:
    metadata = m.loads(vector.content)
    with pytest.raises(m.NothingToRelocateError) as refused:
        m.relocate(metadata, "s3://absent", "/new")
    moved = [m.relocate(metadata, directory, "/new") for directory in refused.value.directories]
    assert sum(len(each.rewritten) for each in moved) == len(list(paths_in(metadata)))
    assert not [path for each in moved for _, path in each.rewritten if not path.startswith("/new/")]
