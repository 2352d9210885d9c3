from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest

from spark_ckpt.metadata import (
    CheckpointMetadata,
    MasterState,
    MetadataFormatError,
    MetadataNotFoundError,
    MetadataValueError,
    dump,
    dumps,
    load,
    loads,
)

METADATA = CheckpointMetadata(5, (MasterState("name", b"payload", 1),))


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}"], ids=["path", "url", "hadoop"])
def test_local_files(tmp_path: Path, form: str) -> None:
    path = tmp_path / "chk-5" / "_metadata"
    dump(METADATA, form.format(path))
    assert load(form.format(path)) == METADATA
    assert load(form.format(path.parent)) == METADATA
    assert [file.name for file in path.parent.iterdir()] == ["_metadata"]


def test_path_objects(tmp_path: Path) -> None:
    dump(METADATA, tmp_path / "_metadata", version=2)
    assert load(tmp_path).version == 2


def test_other_file_systems() -> None:
    dump(METADATA, "memory://bucket/chk-5/_metadata")
    assert load("memory://bucket/chk-5/_metadata") == METADATA
    assert load("memory://bucket/chk-5") == METADATA
    fsspec.filesystem("memory").rm("/bucket", recursive=True)


@pytest.mark.parametrize("place", ["absent", "absent/_metadata", "."])
def test_nothing_there(tmp_path: Path, place: str) -> None:
    with pytest.raises(MetadataNotFoundError) as missing:
        load(tmp_path / place)
    assert missing.value.path == str(tmp_path / place)
    assert isinstance(missing.value, FileNotFoundError)


def test_errors_name_the_path_that_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "_metadata").write_bytes(b"something else")
    with pytest.raises(MetadataFormatError, match=f"^{tmp_path}: not checkpoint metadata"):
        load(tmp_path)


def test_a_failed_dump_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "_metadata"
    dump(METADATA, path)
    with pytest.raises(MetadataValueError):
        dump(CheckpointMetadata(2**63), path)
    assert load(path) == METADATA


def test_file_and_name_are_synced_or_it_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []

    def sync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").is_dir())
        if synced[-1] and len(synced) == 2:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(OSError, match="Input/output error"):
        dump(METADATA, tmp_path / "_metadata")
    dump(METADATA, tmp_path / "_metadata")
    assert synced == [False, True] * 2


def test_any_kind_of_bytes() -> None:
    content = dumps(METADATA)
    assert loads(bytearray(content)) == loads(memoryview(content)) == METADATA


def test_the_codec_needs_no_spark() -> None:
    script = "import sys, spark_ckpt.metadata; print([n for n in ('pyspark', 'pyarrow', 'py4j') if n in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
