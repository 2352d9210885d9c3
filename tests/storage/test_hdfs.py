"""Storage on a real HDFS: through the driver-side class that serves it, and by the NameNode's web address."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from spark_ckpt.errors import StorageError
from spark_ckpt.location.file_system import storage_at
from spark_ckpt.storage import CreateOutcome, Storage, hadoop
from spark_ckpt.storage.errors import HadoopError
from tests.storage.contract import StorageContract
from tests.support.clocks import NoClock
from tests.support.hdfs import Hdfs


class TestHdfsStorage(StorageContract):
    @pytest.fixture
    def storages(self, hdfs: Hdfs) -> Callable[[str], Storage]:
        place = hdfs.new_location()
        return lambda name: hdfs.storage(f"{place}/{name}")


@pytest.mark.long  # `tests/cli/test_file_systems.py` has commands there
class TestHdfsByItsWebAddress(StorageContract):
    @pytest.fixture
    def storages(self, hdfs: Hdfs) -> Callable[[str], Storage]:
        place = hdfs.on_the_web(hdfs.new_location())
        return lambda name: storage_at(f"{place}/{name}")


@pytest.fixture
def storage(hdfs: Hdfs) -> Storage:
    return hdfs.storage(hdfs.new_location())


@pytest.fixture(params=["driver", "web"])
def each(request: pytest.FixtureRequest, hdfs: Hdfs) -> Storage:
    """A storage through the driver, and one by the web address."""
    location = hdfs.new_location()
    return hdfs.storage(location) if request.param == "driver" else storage_at(hdfs.on_the_web(location))


def test_of_several_clients_one_wins_each_race(hdfs: Hdfs) -> None:
    """Drivers and commands by the web address, at once."""
    location, rounds, contenders = hdfs.new_location(), 10, 4
    won: list[list[int]] = [[] for _ in range(contenders)]
    barrier = threading.Barrier(contenders)

    def race(contender: int) -> None:
        storage = storage_at(hdfs.on_the_web(location)) if contender % 2 else hdfs.storage(location)
        for round_ in range(rounds):
            barrier.wait()
            result = storage.create_exclusive(f"race/{round_}", b"%d" % contender * 500)
            if result.outcome is CreateOutcome.WON:
                won[contender].append(round_)

    threads = [threading.Thread(target=race, args=(contender,)) for contender in range(contenders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(round_ for rounds_won in won for round_ in rounds_won) == list(range(rounds))
    storage = hdfs.storage(location)
    for contender, rounds_won in enumerate(won):
        for round_ in rounds_won:
            assert storage.read(f"race/{round_}") == b"%d" % contender * 500
    assert len(storage.list("race")) == rounds  # nothing else is left


def test_what_is_long_goes_in_parts(each: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = each
    monkeypatch.setattr(hadoop, "FRAME_BYTES", 1000)
    for size in (999, 1000, 1001, 3000, 3500):
        content = random.Random(size).randbytes(size)
        storage.write_atomic(f"{size}", content)
        assert storage.read(f"{size}") == content
        assert storage.read_range(f"{size}", 990, 1500) == content[990:2490]
        assert storage.read_range(f"{size}", size, 10) == b""
        assert storage.read_range(f"{size}", size + 1, 10) == b""


def test_what_is_written_is_on_the_disk_of_the_datanode(hdfs: Hdfs, storage: Storage) -> None:
    before = hdfs.synced()
    storage.write_atomic("a", b"1")
    storage.create_exclusive("b", b"1")
    assert hdfs.synced() >= before + 2


def test_an_empty_directory_is_removed(storage: Storage) -> None:
    storage.write_atomic("chk-1/_metadata", b"1")
    storage.delete("chk-1/_metadata")
    storage.remove_empty("chk-1")
    assert list(storage.list("")) == []


def test_no_permission(hdfs: Hdfs, storage: Storage) -> None:
    storage.write_atomic("mine/a", b"1")
    with hdfs.user("nobody"):
        others = hdfs.storage(storage.location)
        for write in (others.write_atomic, others.create_exclusive):
            with pytest.raises(StorageError, match="AccessControlException: Permission denied: user=nobody") as caught:
                write("mine/b", b"1")
            assert caught.value.path == f"{storage.location}/mine/b"


def test_a_namenode_in_safe_mode(hdfs: Hdfs) -> None:
    storage = hdfs.storage(hdfs.new_location())
    storage._clock = NoClock()
    with hdfs.safe_mode():
        with pytest.raises(StorageError, match=r"(?s)SafeModeException.*tries\)") as caught:
            storage.write_atomic("a", b"1")
        assert "\tat " not in str(caught.value)
        result = storage.create_exclusive("a", b"1")
    assert result.outcome is CreateOutcome.REFUSED
    assert isinstance(result.cause, HadoopError)
    assert result.cause.java_class == "org.apache.hadoop.hdfs.server.namenode.SafeModeException"
    assert storage.create_exclusive("a", b"1").outcome is CreateOutcome.WON


def test_a_location_below_a_file_is_a_typed_error(hdfs: Hdfs, storage: Storage) -> None:
    storage.write_atomic("file", b"1")
    below = hdfs.storage(f"{storage.location}/file")
    below._clock = NoClock()
    with pytest.raises(StorageError, match="file"):
        below.write_atomic("a", b"1")
    try:
        outcome = below.create_exclusive("a", b"1").outcome
    except StorageError:
        return
    assert outcome is CreateOutcome.REFUSED
