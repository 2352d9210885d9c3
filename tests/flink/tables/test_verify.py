"""Verification of checkpoints of real Flink, and of damaged copies."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spark_ckpt import metadata as m
from spark_ckpt.flink.streams import KeyedState
from spark_ckpt.flink.tables.verify import FlinkVerdict, FlinkVerification, verify_flink
from spark_ckpt.location.errors import CheckpointNotFoundError
from tests.flink.streams.corpus import (
    BACKENDS,
    JOBS,
    ROWS,
    WINDOWS,
    StateVector,
    backend,
    entries_of,
    flink_job,
    job,
    lay_out,
    with_unknown_class,
)

WITH_FILES = [vector for vector in JOBS if not str(vector).startswith("f20")]


def verified(place: Path, root: Path, **arguments: object) -> FlinkVerification:
    found = verify_flink(str(place), moved=[("oracle://ckpt", str(root))], allow_outside=True, **arguments)  # type: ignore[arg-type]
    assert found is not None
    return found


def only(place: Path, root: Path) -> FlinkVerdict:
    (verdict,) = verified(place, root).checkpoints
    return verdict


@pytest.mark.parametrize("vector", [*WITH_FILES, *ROWS, *WINDOWS, *BACKENDS], ids=str)
def test_what_flink_wrote_is_whole(vector: StateVector, tmp_path: Path) -> None:
    place = lay_out(vector, tmp_path)
    metadata = m.load(place.parent)
    try:
        m.relocate(metadata, "oracle://ckpt", str(tmp_path))
        verdict = only(place, tmp_path)
    except m.NothingToRelocateError:
        found = verify_flink(str(place))
        assert found is not None
        (verdict,) = found.checkpoints
    assert (verdict.damages, verdict.unread) == ([], [])
    assert verdict.checkpoint_id == metadata.checkpoint_id
    entries = 0
    for operator, handle in vector.key_groups():
        with vector.files.open(handle.delegate_state_handle) as stream:
            entries += len(list(entries_of(KeyedState(handle, stream, operator.max_parallelism))))
    assert verdict.rows == entries or any(isinstance(h, m.IncrementalRemoteKeyedStateHandle) for _, h in vector.keyed())


def test_each_damaged_file_is_found(tmp_path: Path) -> None:
    """Every block of RocksDB's files that is read has a checksum."""
    vector = job("f120-rocksdb-incr-p2-second")
    place = lay_out(vector, tmp_path)
    tables = {
        file.handle.file_path.rpartition("/")[2]
        for _, handle in vector.keyed()
        if isinstance(handle, m.IncrementalRemoteKeyedStateHandle)
        for file in handle.shared_state
        if isinstance(file.handle, m.FileStateHandle)
    }
    assert len(tables) > 4
    for name in sorted(tables)[:6]:
        (path,) = tmp_path.rglob(name)
        content = path.read_bytes()
        path.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
        verdict = only(place, tmp_path)
        assert [name in damage.path for damage in verdict.damages] == [True]
        assert verdict.damages[0].operator_id and verdict.damages[0].subtask is not None
        path.write_bytes(content)
    assert only(place, tmp_path).is_whole


def test_missing_and_cut_files_are_found(tmp_path: Path) -> None:
    place = lay_out(job("f120-heap-p3-few-keys"), tmp_path)
    files = [path for path in place.parent.iterdir() if path.name != "_metadata"]
    first, second, *_ = sorted(files, key=lambda path: -path.stat().st_size)
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    verdict = only(place, tmp_path)
    assert {Path(damage.path).name for damage in verdict.damages} == {first.name, second.name}
    assert not verdict.is_whole
    assert "subtask" in str(verdict.damages[0])


@pytest.mark.parametrize("kind", ["heap", "full"])
def test_an_unknown_type_is_no_damage(kind: str, tmp_path: Path) -> None:
    vector = with_unknown_class(backend(f"unknown-{kind}"), tmp_path)
    found = verify_flink(str(vector.directory))
    assert found is not None and found.is_whole
    ((unread,),) = (verdict.unread for verdict in found.checkpoints)
    assert "UnknownSerializerSnapshot" in unread.reason


def test_states_of_the_asynchronous_api_are_no_damage(tmp_path: Path) -> None:
    vector = backend("unknown-full")
    directory = tmp_path / "async"
    shutil.copytree(vector.directory, directory)
    content = (directory / "_metadata").read_bytes()
    name = b"\0\5known"
    assert content.count(name + bytes(4)) == 1
    (directory / "_metadata").write_bytes(content.replace(name + bytes(4), name + b"\0\0\0\4"))
    found = verify_flink(str(directory))
    assert found is not None and found.is_whole
    assert ["KEY_VALUE_V2" in unread.reason for unread in found.checkpoints[0].unread] == [True]


def test_earlier_checkpoints_are_read_until_one_is_whole(tmp_path: Path) -> None:
    place = flink_job(tmp_path / "flink")
    root = place.parent
    assert [v.checkpoint_id for v in verified(place, root).checkpoints] == [2]
    assert verified(place, root, everything=True).restorable == (2, 1)
    metadata = place / "chk-2" / "_metadata"
    metadata.write_bytes(metadata.read_bytes()[:-9])
    found = verified(place, root)
    assert [(v.checkpoint_id, v.is_whole) for v in found.checkpoints] == [(2, False), (1, True)]
    assert (found.restorable, found.is_whole) == ((1,), False)
    assert [v.checkpoint_id for v in verified(place, root, checkpoint_id=1).checkpoints] == [1]
    with pytest.raises(CheckpointNotFoundError):
        verified(place, root, checkpoint_id=7)


def test_a_location_of_spark_is_left_to_its_verification(tmp_path: Path) -> None:
    (tmp_path / "ckpt" / "chk-1").mkdir(parents=True)
    assert verify_flink(str(tmp_path)) is None


def test_files_without_rows_are_missed(tmp_path: Path) -> None:
    """Flink restores the options of RocksDB, too."""
    place = lay_out(job("f120-rocksdb-incr-p2-second"), tmp_path)
    folders = (place.parent, place.parent.parent / "shared")
    options = next(path for folder in folders for path in folder.iterdir() if b"rocksdb_version" in path.read_bytes())
    options.unlink()
    assert [options.name in damage.path for damage in only(place, tmp_path).damages] == [True]
