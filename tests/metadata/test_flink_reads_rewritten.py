"""Flink loads converted and relocated files, and reads the same content as from the originals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt import metadata as m
from tests.metadata.corpus import FLINK, Vector
from tests.metadata.handles import everywhere
from tests.support.flink_check import assert_flink_agrees, check

PLACES = ("oracle://ckpt", "s3://bucket/moved")


def written(metadata: m.CheckpointMetadata, path: Path) -> Path:
    m.dump(metadata, path, metadata.version)
    return path


def assert_equal_reports(originals: dict[Path, Path], rename: Callable[[str], str] = lambda text: text) -> None:
    """Asserts that Flink reports the same for both files of each pair, except for version and properties.

    Args:
        originals: original of each rewritten file.
        rename: change that was made to the paths.
    """
    verdicts = check([*originals, *originals.values()])
    for path, original in originals.items():
        assert_flink_agrees(path, verdicts[path])
        assert verdicts[path].bytes_consumed == path.stat().st_size
        expected = json.loads(rename(json.dumps(kept(verdicts[original].metadata))))
        assert kept(verdicts[path].metadata) == expected, original


def kept(report: Any) -> Any:
    """Report without fields changed by conversion, and without ids that Flink generates when it loads codes 3 and 5."""
    if isinstance(report, list):
        return [kept(item) for item in report]
    if not isinstance(report, dict):
        return report
    return {
        name: kept(value)
        for name, value in report.items()
        if name not in ("version", "properties") and not (name == "stateHandleId" and invented(report))
    }


def invented(handle: dict[str, Any]) -> bool:
    return handle["type"] in ("KeyGroupsStateHandle", "IncrementalRemoteKeyedStateHandle")


def convertible(vector: Vector, version: int) -> m.CheckpointMetadata | None:
    try:
        return m.convert(m.loads(vector.content), version)
    except m.MetadataLossError:
        return None


def test_converted_files(tmp_path: Path) -> None:
    originals = {}
    for vector in FLINK:
        for version in range(2, vector.version):
            if (converted := convertible(vector, version)) is not None:
                path = written(converted, tmp_path / f"{vector}-as-{version}" / m.METADATA_FILE_NAME)
                originals[path] = vector.path
    of_version_4 = {original for path, original in originals.items() if path.parent.name.endswith("-as-3")}
    assert of_version_4 == {vector.path for vector in FLINK if vector.version == 4}
    assert len(originals) - len(of_version_4) > len(FLINK) / 2
    assert_equal_reports(originals)


def test_relocated_files(tmp_path: Path) -> None:
    originals = {}
    for vector in FLINK:
        metadata = m.loads(vector.content)
        try:
            moved = m.relocate(metadata, *PLACES)
        except m.NothingToRelocateError:
            continue
        assert not moved.left_alone
        originals[written(moved.metadata, tmp_path / str(vector) / m.METADATA_FILE_NAME)] = vector.path
    names = {original.parent.name for original in originals.values()}
    assert {name for name in names if "rocksdb-incr" in name or "changelog-fs" in name} == {
        "f113-rocksdb-incr-p2",
        "f115-changelog-fs-heap-p2",
        "f115-rocksdb-incr-p1-second",
        "f120-changelog-fs-heap-p1",
        "f120-rocksdb-incr-p2-second",
    }
    assert_equal_reports(originals, lambda text: text.replace(*PLACES))


@pytest.mark.parametrize("new", ["s3://bucket/moved", "/mnt/moved", "file:/mnt/moved", "hdfs://nn:9000/"])
def test_paths_in_every_handle(tmp_path: Path, new: str) -> None:
    metadata = everywhere("oracle://ckpt/job")
    moved = m.relocate(metadata, "oracle://ckpt/job", new)
    original = written(metadata, tmp_path / "original" / m.METADATA_FILE_NAME)
    path = written(replace(moved.metadata, version=3), tmp_path / "moved" / m.METADATA_FILE_NAME)
    assert_equal_reports({path: original}, lambda text: text.replace("oracle://ckpt/job", new.rstrip("/")))
