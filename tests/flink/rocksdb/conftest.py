"""Databases that RocksDB has written, and the rows that it reads in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flink.rocksdb.judge import Judge, Rows, Written

CODECS = ("NO", "SNAPPY", "LZ4", "LZ4HC", "ZSTD")
CHECKSUMS = ("kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3")
ALL = (
    *(Written(compression=codec, seed=seed) for seed, codec in enumerate(CODECS)),
    *(Written(checksum=checksum, seed=10 + seed) for seed, checksum in enumerate(CHECKSUMS)),
    *(Written(version=version, seed=20 + version) for version in (2, 3, 4)),
    Written(index="kHashSearch", seed=30),
    Written(index="kTwoLevelIndexSearch", seed=31),
    Written(index="kTwoLevelIndexSearch", version=3, compression="ZSTD", checksum="kXXH3", seed=32),
)


@pytest.fixture(scope="session")
def rocksdb(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    return Judge(tmp_path_factory.mktemp("rocksdb"))


@pytest.fixture(scope="session")
def databases(rocksdb: Judge, tmp_path_factory: pytest.TempPathFactory) -> dict[Written, tuple[Path, Rows]]:
    """Folder and rows of each database of `ALL`."""
    root = tmp_path_factory.mktemp("databases")
    folders = {written: root / str(written) for written in ALL}
    rocksdb.write({folder: written for written, folder in folders.items()})
    rows = rocksdb.rows(list(folders.values()))
    return {written: (folder, there) for (written, folder), there in zip(folders.items(), rows, strict=True)}
