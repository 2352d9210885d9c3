"""The log of a file source, by Spark's rules for its compaction."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from spark_ckpt.spark_files import source_log
from spark_ckpt.spark_files.errors import SparkLogFormatError
from spark_ckpt.spark_files.source_log import FileSourceLog
from spark_ckpt.storage import LocalStorage
from tests.support.checksum_files import checksums_of


def listing(*entries: int) -> bytes:
    """An entry with a file of each of these entries."""
    lines = [json.dumps({"path": f"file:/in/{at}.json", "timestamp": 7, "batchId": at}) for at in entries]
    return "\n".join(["v1", *lines]).encode()


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def log_of(storage: LocalStorage, *names: str) -> FileSourceLog:
    for name in names:
        storage.write_atomic(f"sources/0/{name}", listing(int(name.partition(".")[0])))
    return FileSourceLog(storage, 0)


def plain(*entries: int) -> list[str]:
    return [str(entry) for entry in entries]


@pytest.mark.parametrize(
    ("names", "first", "missing"),
    [
        ([], 0, []),
        (plain(0, 1, 2), 0, []),
        (plain(0, 2), 0, ["1"]),
        ([*plain(*range(9)), "9.compact", *plain(10, 11)], 9, []),
        (["9.compact", *plain(10, 12)], 9, ["11"]),
        (plain(*range(9), 10, 11), 0, ["9"]),
        (["2.compact", "5.compact", "6"], 5, []),
        (["2.compact", "5.compact", *plain(6, 7), "8.compact"], 8, []),
        # The interval is that of the last two: without the fifth entry, Spark looks for it.
        (["2.compact", "8.compact", "9"], 5, ["5.compact", "6", "7", "8"]),
        (["2.compact", "5.compact", *plain(6, 7, 9)], 8, ["8.compact"]),
        (["5.compact", "8.compact", "9"], 8, []),
    ],
)
def test_the_entries_that_a_start_reads(
    storage: LocalStorage, names: list[str], first: int, missing: list[str]
) -> None:
    log = log_of(storage, *names)
    assert log.first_read == first
    needed = range(log.first_read, log.latest + 1)
    assert [log.name_of(entry).removeprefix("sources/0/") for entry in needed if not log.has(entry)] == missing


def test_other_files_are_no_entries(storage: LocalStorage) -> None:
    storage.write_atomic("sources/0/7.tmp", b"")
    storage.write_atomic("sources/0/.9.crc", b"")
    assert log_of(storage, "3").latest == 3


@pytest.mark.parametrize("chunk", [1, 7, 100, 1 << 20])
def test_files_of_a_large_entry(storage: LocalStorage, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read in chunks, and compared with its checksums on the way."""
    monkeypatch.setattr(source_log, "_CHUNK", chunk)
    content = listing(*range(40))
    storage.write_atomic("sources/0/2.compact", content)
    storage.write_atomic("sources/0/.2.compact.crc", checksums_of(content))
    assert [file["batchId"] for file in FileSourceLog(storage, 0).files_of(2)] == [*range(40)]
    storage.write_atomic("sources/0/2.compact", content.replace(b"/in/33.", b"/ir/33."))
    with pytest.raises(SparkLogFormatError, match=r"differs from the checksums in \.2\.compact\.crc"):
        list(FileSourceLog(storage, 0).files_of(2))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"v",
        b"v2\n",
        b"v1\n{",
        b"v1\n[]",
        b'v1\n{"path":"x","timestamp":1}',
        b'v1\n{"path":1,"timestamp":1,"batchId":0}',
        b'v1\n{"path":"x","timestamp":true,"batchId":0}',
        listing(0)[:-1],
    ],
)
def test_malformed_entries(storage: LocalStorage, content: bytes) -> None:
    storage.write_atomic("sources/0/0", content)
    with pytest.raises(SparkLogFormatError, match="sources/0/0"):
        list(FileSourceLog(storage, 0).files_of(0))


def test_any_changed_byte_is_found_by_its_checksum(storage: LocalStorage, rng: random.Random) -> None:
    content = listing(0, 1, 2)
    storage.write_atomic("sources/0/.0.crc", checksums_of(content))
    for at in rng.sample(range(len(content)), 50):
        changed = bytearray(content)
        changed[at] ^= 1 << rng.randrange(8)
        storage.write_atomic("sources/0/0", bytes(changed))
        with pytest.raises(SparkLogFormatError):
            list(FileSourceLog(storage, 0).files_of(0))
