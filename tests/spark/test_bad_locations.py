"""Bad input: a fault of a checkpoint location raises a typed error that names it, and repairing the fault is enough."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.checkpoints import committed_batches, log_records, metadata_files
from tests.support.counts import RunningCount
from tests.support.provider import CKPT, CKPT_PREFIX, PROVIDER_KEY, ROCKSDB, ProviderUnderTest


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers, which have errors of their own."""
    if not provider.is_ours:
        pytest.skip("about our checkpoints")


def rename_provider(location: Path, class_name: str) -> None:
    """Makes Spark's offset log name another provider, as a user might after bad advice."""
    for file in (location / "offsets").glob("[0-9]*"):
        version, metadata, *offsets = file.read_text().split("\n")
        fields = json.loads(metadata)
        fields["conf"][PROVIDER_KEY] = class_name
        file.write_text("\n".join([version, json.dumps(fields), *offsets]))
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)


def test_location_without_our_files(count: RunningCount, tmp_path: Path) -> None:
    """Spark's logs without `ckpt/`: the error names location and version; with `ckpt/` back, the query continues."""
    count.drain()
    shutil.move(count.location / "ckpt", tmp_path / "aside")
    count.drop(1)
    count.fails("[VersionNotFoundError]", str(count.location), "version 2")
    shutil.rmtree(count.location / "ckpt", ignore_errors=True)
    shutil.move(tmp_path / "aside", count.location / "ckpt")
    count.recovers()


def test_location_of_another_provider(count: RunningCount) -> None:
    """Spark keeps the provider with which a query was started; ours is not used, and the query continues."""
    count.spark.conf.set(PROVIDER_KEY, ROCKSDB.class_name)
    count.drain()
    count.spark.conf.set(PROVIDER_KEY, CKPT.class_name)
    count.drop(2)
    count.drain()
    assert not (count.location / "ckpt").exists()
    assert committed_batches(count.location)[-1] == 3


@pytest.mark.parametrize("other", ["rocksdb", pytest.param("hdfs", marks=pytest.mark.long)])
def test_state_of_another_provider_forced_on_ours(other: str, count: RunningCount) -> None:
    """Spark is made to use our provider on another one's state: the error names a file, and the state is unharmed."""
    from tests.support.provider import PROVIDERS

    count.spark.conf.set(PROVIDER_KEY, PROVIDERS[other].class_name)
    count.drain()
    state = sorted((count.location / "state").rglob("*"))
    rename_provider(count.location, CKPT.class_name)
    count.spark.conf.set(PROVIDER_KEY, CKPT.class_name)
    count.drop(1)
    count.fails("[ForeignStateError]", str(count.location / "state"), "provider")
    assert sorted((count.location / "state").rglob("*")) == state
    rename_provider(count.location, PROVIDERS[other].class_name)
    count.drain()
    expected = [tuple(row) for row in count.plan(count.feed.table(count.spark)).collect()]
    assert sorted(count.sink.rows()) == sorted(expected)


def test_changed_provider(count: RunningCount) -> None:
    """A query of ours, restarted with RocksDB configured: Spark keeps our provider, and checkpoints continue."""
    count.drain()
    count.spark.conf.set(PROVIDER_KEY, ROCKSDB.class_name)
    count.recovers()


@pytest.fixture
def with_files(spark: SparkSession) -> None:
    """Stores all state in files of its own, however small."""
    spark.conf.set(CKPT_PREFIX + "inlineThreshold", "0")


def test_deleted_state_file(count: RunningCount, tmp_path: Path, rng: random.Random, with_files: None) -> None:
    """A missing state file: the error names it; with the file back, the query continues."""
    count.drain()
    shared = count.location / "ckpt" / "shared"
    lost = rng.choice(sorted(shared.glob("[!.]*")))
    shutil.move(lost, tmp_path / "lost")
    count.drop(1)
    count.fails("[DamagedCheckpointError]", lost.name)
    shutil.move(tmp_path / "lost", lost)
    count.recovers()


def test_damaged_state_file(count: RunningCount, rng: random.Random, with_files: None) -> None:
    """A flipped bit in a state file: the checksum detects it, and the error names the file."""
    count.drain()
    damaged = rng.choice(sorted((count.location / "ckpt" / "shared").glob("[!.]*")))
    whole = damaged.read_bytes()
    position = rng.randrange(len(whole))
    print(f"bit of byte {position} of {len(whole)}")
    damaged.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
    count.drop(1)
    count.fails("[DamagedCheckpointError]", damaged.name)
    damaged.write_bytes(whole)
    count.recovers()


@pytest.mark.parametrize(
    "part", [pytest.param(0.0, marks=pytest.mark.long), 0.5, pytest.param(0.99, marks=pytest.mark.long)]
)
def test_truncated_metadata(part: float, count: RunningCount) -> None:
    """A truncated newest `_metadata`: the error names it and the newest intact checkpoint."""
    count.drain()
    *_, older, newest = metadata_files(count.location)
    whole = newest.read_bytes()
    newest.write_bytes(whole[: int(len(whole) * part)])
    count.drop(1)
    count.fails("[DamagedCheckpointError]", str(newest), older.parent.name.removeprefix("chk-"))
    newest.write_bytes(whole)
    count.recovers()


def test_truncated_metadata_of_an_older_checkpoint(count: RunningCount) -> None:
    """The query needs the newest checkpoint only: it continues, and keeps a damaged older one for repair."""
    count.drain()
    older, *_ = metadata_files(count.location)
    whole = older.read_bytes()
    older.write_bytes(whole[:-10])
    count.drop(1)
    count.drain()
    assert older.read_bytes() == whole[:-10]
    older.write_bytes(whole)
    count.recovers()


def test_damaged_record(count: RunningCount) -> None:
    """A truncated record of the completed-checkpoint log: the error names it."""
    count.drain()
    newest = count.location / "ckpt" / "completed" / f"{log_records(count.location)[-1]['id']:020}.json"
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-20])
    count.drop(1)
    committed = committed_batches(count.location)
    with pytest.raises(Exception, match="DamagedRecordError") as raised:
        count.drain()
    assert newest.name in str(raised.value)
    assert committed_batches(count.location) == committed
    newest.write_bytes(whole)
    count.recovers()


def test_second_query_on_the_location_in_one_driver(count: RunningCount) -> None:
    """Spark stops the first query when a second one starts on its location; the second continues from its state."""
    first = count.runner.start(count.stream(), count.sink)
    first.processAllAvailable()
    count.drop(1)
    second = count.runner.start(count.stream(), count.sink)
    second.processAllAvailable()
    assert not first.isActive
    second.stop()
    count.recovers()


def test_spark_logs_deleted_but_not_ours(count: RunningCount) -> None:
    """Spark starts again at batch 0: the result covers all input and nothing of the old state."""
    count.drain()
    for name in ("offsets", "commits", "sources", "state", "metadata"):
        target = count.location / name
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    for file in count.sink.folder.iterdir():
        file.unlink()
    (count.location / ".metadata.crc").unlink(missing_ok=True)
    count.drain()
    expected = [tuple(row) for row in count.plan(count.feed.table(count.spark)).collect()]
    assert sorted(count.sink.rows()) == sorted(expected)
