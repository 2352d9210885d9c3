"""Damaged files lead to a typed error with the place; a wrong count never causes a large allocation."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

import pytest

from spark_ckpt.flink.rocksdb import InMemory, RandomAccess, RocksDbFormatError, UnsupportedRocksDbError
from spark_ckpt.flink.rocksdb.errors import MissingTableError
from tests.flink.rocksdb.conftest import ALL
from tests.flink.rocksdb.judge import Rows, Written, files_of, read

Databases = dict[Written, tuple[Path, Rows]]
TYPED = (RocksDbFormatError, UnsupportedRocksDbError, MissingTableError)
FLIPS = 150
MAX_BYTES = 64 << 20

CHECKED = [written for written in ALL if written.checksum != "kNoChecksum"]


def outcome(files: Mapping[str, RandomAccess], name: str, content: bytes) -> Rows | str:
    """Rows of a database with another content of one file, or the error."""
    try:
        return read({**files, name: InMemory(name, content)})
    except TYPED as e:
        return str(e)


@pytest.mark.parametrize("written", CHECKED[::3], ids=str)
def test_no_flipped_bit_changes_a_row(written: Written, databases: Databases, rng: random.Random) -> None:
    """Checksums cover all but the footer, some of whose bits have no meaning, and the zeros behind a log."""
    folder, rows = databases[written]
    files = files_of(folder)
    names = [name for name in files if name.endswith(".sst") or name.startswith("MANIFEST")]
    errors = []
    for name in rng.choices(names, k=FLIPS):
        content = bytearray(files[name].read(0, files[name].size))
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        if isinstance(found := outcome(files, name, bytes(content)), str):
            errors.append((name, found))
        else:
            assert found == rows
    assert all(name in error for name, error in errors)
    assert len(errors) > FLIPS // 2


@pytest.mark.parametrize("written", CHECKED[::4], ids=str)
def test_a_truncated_table_is_an_error(written: Written, databases: Databases, rng: random.Random) -> None:
    folder, _ = databases[written]
    files = files_of(folder)
    for name in (name for name in files if name.endswith(".sst")):
        content = files[name].read(0, files[name].size)
        for length in (0, 1, 8, 47, 52, rng.randrange(len(content)), len(content) - 1):
            with pytest.raises(TYPED, match=name):
                read({**files, name: InMemory(name, content[:length])})


def test_a_truncated_manifest_is_an_error_or_an_older_state(databases: Databases, rng: random.Random) -> None:
    folder, rows = databases[CHECKED[0]]
    files = files_of(folder)
    (manifest,) = (name for name in files if name.startswith("MANIFEST"))
    content = files[manifest].read(0, files[manifest].size)
    found = [outcome(files, manifest, content[: rng.randrange(1, len(content))]) for _ in range(60)]
    errors = [error for error in found if isinstance(error, str)]
    assert all(manifest in error for error in errors)
    assert any("cut off" in error or "are left" in error for error in errors)
    assert all(older.keys() <= {*rows, "dropped"} for older in found if not isinstance(older, str))


def test_noise_takes_little_memory(databases: Databases, rng: random.Random) -> None:
    """Without checksums, all of a table's counts and lengths can be wrong."""
    (written,) = (written for written in ALL if written.checksum == "kNoChecksum")
    folder, _ = databases[written]
    files = files_of(folder)
    tables = [name for name in files if name.endswith(".sst")]
    errors = 0
    tracemalloc.start()
    try:
        for name in rng.choices(tables, k=FLIPS):
            content = bytearray(files[name].read(0, files[name].size))
            for _ in range(rng.randrange(1, 8)):
                content[rng.randrange(len(content))] = rng.randrange(256)
            errors += isinstance(outcome(files, name, bytes(content)), str)
        assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
    finally:
        tracemalloc.stop()
    assert errors
