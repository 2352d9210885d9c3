from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from spark_ckpt import __version__
from spark_ckpt.clock import SystemClock
from spark_ckpt.errors import UnsupportedFormatError
from spark_ckpt.operations.doctor import Status, Verdict
from spark_ckpt.operations.doctor.evidence import Evidence
from spark_ckpt.operations.mirror.following import LocationMirror
from spark_ckpt.storage import CreateOutcome, CreateResult, LocalStorage
from tests.golden.locations import golden_locations
from tests.operations.doctor.examined import examined, only, refusing
from tests.storage.faulty import Fault, FaultyStorage
from tests.support.locations import FIRST_COMPLETED_MS, make_location
from tests.support.memory_storage import memory_storage
from tests.support.provider import ROCKSDB
from tests.support.queries import make_query
from tests.support.waiting import PATIENCE


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    make_query(tmp_path)
    return LocalStorage(tmp_path)


def test_a_query_that_starts_with_another_state_store(storage: LocalStorage) -> None:
    assert only(examined(storage), "kind").status is Status.OK
    content = storage.read("offsets/5").decode()
    ours = "org.apache.spark.sql.ckpt.CheckpointStateStoreProvider"
    assert ours in content
    storage.write_atomic("offsets/5", content.replace(ours, ROCKSDB.class_name).encode())
    found = only(examined(storage), "kind")
    assert (found.status, found.data["provider"]) == (Status.WARNING, ROCKSDB.class_name)


def test_a_mirror_names_its_source(storage: LocalStorage, tmp_path: Path) -> None:
    target = LocalStorage(tmp_path / "mirror")
    mirror = LocationMirror.open(storage, target)
    mirror.step()
    found = only(examined(target), "kind")
    assert (found.status, found.data) == (Status.OK, {"kind": "mirror", "source": storage.location})
    mirror.promote()
    assert only(examined(target), "kind").data == {"kind": "location"}


def test_versions(storage: LocalStorage) -> None:
    found = only(examined(storage), "versions")
    assert found.status is Status.OK
    assert found.data == {
        "spark_ckpt": __version__,
        "features": ["seen-records"],
        "claimed_by": __version__,
        "written_by": __version__,
        "spark": "4.2.0",
        "checkpoint_format": 1,
        "log": "filesystem",
    }
    assert f"newest checkpoint by spark-ckpt {__version__} under Spark 4.2.0" in found.answer


def test_a_location_of_a_release_that_does_not_name_itself() -> None:
    (golden,) = [each for each in golden_locations() if (each.release, each.query.name) == ("0.1.0", "files")]
    found = only(examined(LocalStorage(golden.folder / golden.query.root)), "versions")
    assert (found.status, found.data["claimed_by"], found.data["written_by"]) == (Status.OK, None, None)
    assert "newest checkpoint by a release that does not name itself under Spark 4" in found.answer


def test_a_log_in_zookeeper(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    state = Evidence(storage, SystemClock(), False, lambda done, of: None).state
    assert state is not None
    assert state.batch is not None
    elsewhere = replace(state, batch=replace(state.batch, log="zookeeper"))
    monkeypatch.setattr(Evidence, "state", property(lambda evidence: elsewhere))
    found = only(examined(storage), "versions")
    assert "mirror of the log in ZooKeeper, which may lag" in found.answer
    assert found.data["log"] == "zookeeper"


def test_a_location_of_a_later_release(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(evidence: Evidence) -> None:
        raise UnsupportedFormatError("/x/_metadata", "the features new", ("new",))

    monkeypatch.setattr(Evidence, "state", property(refuse))
    report = examined(storage)
    found = only(report, "versions")
    assert (report.verdict, found.error) == (Verdict.IN_DOUBT, "UnsupportedFormatError")
    assert found.advice is not None
    assert "Upgrade spark-ckpt" in found.advice


@pytest.mark.parametrize(("ahead_ms", "status"), [(0, Status.OK), (4_000, Status.OK), (3_600_000, Status.WARNING)])
def test_records_from_the_future(tmp_path: Path, ahead_ms: int, status: Status) -> None:
    make_location(tmp_path, batches=1)
    report = examined(LocalStorage(tmp_path), FIRST_COMPLETED_MS - ahead_ms)
    # The claim has the real time, which is later than that of the made-up checkpoint.
    (record,) = [each for each in (tmp_path / "ckpt" / "completed").iterdir() if each.name.endswith("1.json")]
    assert only(report, "clock").status is Status.WARNING
    record.unlink()
    found = only(examined(LocalStorage(tmp_path), FIRST_COMPLETED_MS - ahead_ms), "clock")
    assert (found.status, found.data["ahead_ms"]) == (status, ahead_ms)


def test_free_space(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStorage, "free_bytes", lambda self: 1 << 40)
    assert only(examined(storage), "free space").data == {"bytes": 1 << 40}
    monkeypatch.setattr(LocalStorage, "free_bytes", lambda self: 1000)
    assert only(examined(storage), "free space").status is Status.WARNING


def test_a_storage_that_does_not_tell_its_free_space() -> None:
    assert only(examined(memory_storage()), "free space").status is Status.UNKNOWN


def test_the_probe(storage: LocalStorage, tmp_path: Path) -> None:
    assert only(examined(storage), "exclusive create").data == {"tested": False}
    report = examined(storage, probe=True)
    assert only(report, "exclusive create").data == {"tested": True, "works": True}
    # By the clock of this test, the files of the storage come from a distant future.
    _, second = [finding for finding in report.findings if finding.name == "clock"]
    assert (second.status, "ahead of" in second.answer) == (Status.WARNING, True)
    assert not list(tmp_path.rglob("probe-*"))


def test_the_probe_of_a_location_without_files_of_ours(tmp_path: Path) -> None:
    examined(LocalStorage(tmp_path), probe=True)
    assert not (tmp_path / "ckpt").exists()


def replacing(storage: LocalStorage, name: str, data: bytes) -> CreateResult:
    storage.write_atomic(name, data)
    return CreateResult(CreateOutcome.WON)


class LooksFirst(LocalStorage):
    """Storage that looks for a file, and writes it when two callers have looked."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.looked: Counter[str] = Counter()
        self.both = threading.Condition()

    def create_exclusive(self, name: str, data: bytes) -> CreateResult:
        if self.exists(name) or data in (b"1", b"2"):
            return super().create_exclusive(name, data)
        with self.both:
            self.looked[name] += 1
            self.both.notify_all()
            assert self.both.wait_for(lambda: self.looked[name] > 1, PATIENCE)
        self.write_atomic(name, data)
        return CreateResult(CreateOutcome.WON)


def test_a_storage_that_looks_and_then_writes(storage: LocalStorage, tmp_path: Path) -> None:
    found = only(examined(LooksFirst(tmp_path), probe=True), "exclusive create")
    assert (found.status, found.data["works"]) == (Status.WARNING, False)
    assert "several creates of one file at the same time" in found.answer
    assert not list(tmp_path.rglob("probe-*"))


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.LOST_REQUEST, Fault.LATE])
def test_a_storage_that_is_too_busy_to_say(storage: LocalStorage, fault: Fault) -> None:
    busy = FaultyStorage(storage)
    busy.fail("create", "probe-", fault, times=2)
    assert only(examined(busy, probe=True), "exclusive create").status is Status.UNKNOWN


@pytest.mark.parametrize("create", [replacing, refusing])
def test_a_storage_without_exclusive_create(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, create: object
) -> None:
    monkeypatch.setattr(LocalStorage, "create_exclusive", create)
    found = only(examined(storage, probe=True), "exclusive create")
    assert (found.status, found.data["works"]) == (Status.WARNING, False)
    assert not list(tmp_path.rglob("probe-*"))
