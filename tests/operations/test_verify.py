"""Verification finds and locates every damage, and lists the restorable checkpoints."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import google_crc32c
import pytest

from spark_ckpt.completed import CheckpointRecord, RecordFiles, decode_record, encode_record
from spark_ckpt.errors import DamagedCheckpointError, StorageError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.location.errors import CheckpointNotFoundError, NoCheckpointError
from spark_ckpt.messages import Operator
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.operations.verify import Verification, verify
from spark_ckpt.storage import FileInfo, LocalStorage
from tests.operations.damaged import LEFT, change, newest_entry, state_of
from tests.storage.faulty import FaultyStorage
from tests.support.queries import Query, make_query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return make_query(tmp_path / "q")


@pytest.fixture
def storage(query: Query) -> LocalStorage:
    assert isinstance(query.storage, LocalStorage)
    return query.storage


class Beside(FaultyStorage):
    """Storage that calls `do` once, after the first listing of the offset log."""

    def __init__(self, storage: LocalStorage, do: Callable[[], None]) -> None:
        super().__init__(storage)
        self.is_done = False
        self._do = do

    def list(self, path: str) -> Sequence[FileInfo]:
        entries = super().list(path)
        if path == "offsets" and not self.is_done:
            self.is_done = True
            self._do()
        return entries


@pytest.mark.parametrize("directory", ["ckpt/completed", "state", "offsets", "commits", "sources", "metadata"])
def test_what_is_gone(storage: LocalStorage, directory: str) -> None:
    """Everything but `sources` is required; only some kinds of sources need that directory, not this query's."""
    path = Path(storage.describe(directory))
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert verify(storage).is_whole == (directory == "sources")


@pytest.mark.parametrize("directory", ["ckpt", "ckpt/completed"])
def test_all_checkpoints_are_gone(storage: LocalStorage, directory: str) -> None:
    for checkpoint in Path(storage.describe("ckpt")).glob("chk-*"):
        shutil.rmtree(checkpoint)
    shutil.rmtree(storage.describe(directory))
    found = verify(storage)
    assert (found.is_whole, found.restorable) == (False, ())
    (damage,) = found.damages
    assert damage.path == storage.describe("ckpt")
    assert "needs the checkpoint of batch 5" in damage.reason


def test_only_claims_are_left_of_the_checkpoints(storage: LocalStorage) -> None:
    files = RecordFiles(storage)
    for record in files.read_all().values():
        if isinstance(record, CheckpointRecord):
            storage.delete(files.name(record.id))
    assert "needs the checkpoint of batch 5" in "; ".join(map(str, verify(storage).damages))


def test_a_first_batch_that_is_not_complete(tmp_path: Path) -> None:
    query = Query(LocalStorage(tmp_path))
    for begun in (False, True):
        if begun:
            query.start(0)
        with pytest.raises(NoCheckpointError):
            verify(query.storage)


def test_a_query_that_completes_its_first_checkpoints_while_it_is_read(tmp_path: Path) -> None:
    query = Query(LocalStorage(tmp_path))
    beside = Beside(LocalStorage(tmp_path), lambda: query.run(range(2)))
    assert verify(beside).is_whole


def only_reason(verification: Verification) -> str:
    (damage,) = verification.checkpoints[0].damages
    return str(damage)


def test_a_whole_location_is_whole(query: Query, storage: LocalStorage) -> None:
    found = verify(storage, everything=True)
    assert found.is_whole
    assert [verdict.record.batch_id for verdict in found.checkpoints] == [5, 4, 3, 2]
    assert found.restorable == tuple(verdict.record.id for verdict in found.checkpoints)
    newest = found.checkpoints[0]
    state = state_of(storage)
    segments = [entry for chains in state.table.values() for chain in chains for entry in chain.entries]
    assert newest.blocks == sum(entry.offsets.size for entry in segments)
    assert newest.size == newest.record.state_bytes == sum(entry.size for entry in segments)
    assert newest.rows == sum(len(rows) for groups in query.driver.rows.values() for rows in groups.values())


def test_only_the_newest_is_read_unless_it_is_damaged(storage: LocalStorage) -> None:
    assert [verdict.record.batch_id for verdict in verify(storage).checkpoints] == [5]
    storage.delete(f"ckpt/{newest_entry(storage).path}")
    found = verify(storage)
    assert [(verdict.record.batch_id, verdict.is_whole) for verdict in found.checkpoints] == [(5, False), (4, True)]
    assert found.restorable == (found.checkpoints[1].record.id,)


def test_one_checkpoint(storage: LocalStorage) -> None:
    newest = verify(storage).checkpoints[0].record.id
    assert [verdict.record.id for verdict in verify(storage, newest - 1).checkpoints] == [newest - 1]
    with pytest.raises(CheckpointNotFoundError) as caught:
        verify(storage, 99)
    assert caught.value.available == tuple(range(newest - 3, newest + 1))


def test_the_progress_ends_at_all_bytes(storage: LocalStorage) -> None:
    seen: list[tuple[int, int]] = []
    found = verify(storage, progress=lambda done, of: seen.append((done, of)))
    assert seen[-1] == (found.checkpoints[0].size,) * 2
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_every_byte_counts(storage: LocalStorage, rng: random.Random) -> None:
    """For any changed byte of the state, verification names the block that contains it."""
    whole = state_of(storage)
    for _ in range(40):
        key = rng.choice([SubtaskKey(0, "default", 3), LEFT, SubtaskKey(1, "right", 1)])
        entry = rng.choice(whole.table[key.of_operator][key.partition].entries)
        block = rng.randrange(entry.offsets.size)
        start = int(entry.offsets[block])
        end = int(entry.offsets[block + 1]) if block + 1 < entry.offsets.size else int(entry.offsets[0]) + entry.size
        at = rng.randrange(start, end)
        name = f"ckpt/{entry.path}"
        before = storage.read(name)
        change(storage, name, at, bytes((before[at] ^ (1 << rng.randrange(8)),)))
        damages = verify(storage).checkpoints[0].damages
        storage.write_atomic(name, before)
        assert [(d.path, d.subtask, d.key_group) for d in damages] == [
            (storage.describe(name), key, int(entry.key_groups[block]))
        ], at
        assert damages[0].offset is not None
        assert start <= damages[0].offset < end
    assert verify(storage).is_whole


def test_a_file_that_is_missing_or_cut_off_is_named_once(storage: LocalStorage) -> None:
    name = f"ckpt/{newest_entry(storage).path}"
    content = storage.read(name)
    storage.write_atomic(name, content[:-1])
    assert f"{len(content) - 1} bytes instead of {len(content)}" in only_reason(verify(storage))
    storage.delete(name)
    assert only_reason(verify(storage)) == f"{storage.describe(name)}: the state file is missing"


def sealed(content: bytes, at: int, **fields: tuple[int, bytes]) -> bytes:
    """Content with changed header fields of the block at `at`, and a valid checksum."""
    data = bytearray(content)
    for offset, value in fields.values():
        data[at + offset : at + offset + len(value)] = value
    (length,) = struct.unpack_from(">i", data, at + 24)
    crc = google_crc32c.extend(google_crc32c.value(bytes(data[at : at + 28])), bytes(data[at + 32 : at + 32 + length]))
    struct.pack_into(">I", data, at + 28, crc)
    return bytes(data)


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ((5, b"\x01"), "a base of key group"),
        ((8, struct.pack(">i", 1023)), "a delta of key group 1023"),
        ((12, struct.pack(">q", 77)), "version 77; expected a delta of version 6"),
    ],
)
def test_a_block_that_is_whole_but_another_one(storage: LocalStorage, field: tuple[int, bytes], found: str) -> None:
    entry = newest_entry(storage)
    name = f"ckpt/{entry.path}"
    storage.write_atomic(name, sealed(storage.read(name), int(entry.offsets[0]), field=field))
    assert found in only_reason(verify(storage))


def test_metadata_that_is_not_what_was_recorded(storage: LocalStorage) -> None:
    record = state_of(storage).record
    assert record is not None
    name = f"ckpt/{record.metadata.path}"
    change(storage, name, 30, b"\xff")
    assert "its digest differs from the recorded one" in only_reason(verify(storage))
    storage.delete(name)
    assert only_reason(verify(storage)) == f"{storage.describe(name)}: the file is missing"


def rewrite_record(storage: LocalStorage, record_id: int, **changes: int) -> None:
    files = RecordFiles(storage)
    record = files.read(record_id)
    assert isinstance(record, CheckpointRecord)
    fields = {name: getattr(record, name) for name in CheckpointRecord.__slots__} | changes
    storage.write_atomic(files.name(record_id), encode_record(CheckpointRecord(**fields)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rows": 1}, "its record says 1"),
        ({"state_bytes": 1}, "its record says 1"),
        ({"version": 5}, "its record has batch 5 and version 5"),
    ],
)
def test_a_record_that_says_something_else(storage: LocalStorage, changes: dict[str, int], reason: str) -> None:
    rewrite_record(storage, verify(storage).checkpoints[0].record.id, **changes)
    assert reason in only_reason(verify(storage))


def test_rows_that_do_not_add_up(tmp_path: Path) -> None:
    query = Query(LocalStorage(tmp_path))
    query.run(range(3))
    key = SubtaskKey(0, "default", 1)
    query.driver.rows[key] = {}  # the store then acknowledges fewer rows than its segments have
    query.run(range(3, 4))
    reason = only_reason(verify(query.storage))
    assert "operator 0, store default has" in reason
    assert "rows in its segments, but its subtasks list" in reason


def test_a_damaged_record_and_one_of_another_driver(storage: LocalStorage) -> None:
    files = RecordFiles(storage)
    newest = max(files.ids())
    rewrite_record(storage, newest - 1, generation=0)
    change(storage, files.name(newest), 40, b"\xff")
    found = verify(storage)
    assert [damage.path for damage in found.damages] == [files.path(newest), files.path(newest - 1)]
    assert found.checkpoints[0].record.id == newest - 1
    assert not found.is_whole


def test_a_checkpoint_whose_record_is_damaged(storage: LocalStorage) -> None:
    files = RecordFiles(storage)
    newest = max(files.ids())
    change(storage, files.name(newest), 40, b"\xff")
    found = verify(storage, newest)
    assert (found.checkpoints, [damage.path for damage in found.damages]) == ((), [files.path(newest)])


class TestAStartThatRepeatsTheLastBatch:
    """It reads the offsets of this batch and of the one before, and the newest commit."""

    @pytest.fixture(autouse=True)
    def uncommitted(self, storage: LocalStorage) -> None:
        storage.delete("commits/5")
        assert verify(storage, everything=True).is_whole

    def test_no_earlier_offsets(self, storage: LocalStorage) -> None:
        storage.write_atomic("offsets/3", b"")
        assert verify(storage).is_whole

    def test_an_earlier_newest_commit(self, storage: LocalStorage) -> None:
        storage.delete("commits/4")
        assert verify(storage).is_whole

    @pytest.mark.parametrize("name", ["offsets/4", "offsets/5", "commits/4"])
    def test_what_it_reads(self, storage: LocalStorage, name: str) -> None:
        storage.write_atomic(name, b"")
        assert not verify(storage).is_whole


@pytest.mark.parametrize("name", ["metadata", "offsets/5", "commits/5", "ckpt/shared/"])
def test_a_storage_that_does_not_answer_is_no_damage(storage: LocalStorage, name: str) -> None:
    faulty = FaultyStorage(storage)
    faulty.fail("read", f"^{name}", times=1000)
    with pytest.raises(StorageError, match="injected"):
        verify(faulty)


def test_a_record_of_the_wrong_owner(storage: LocalStorage) -> None:
    files = RecordFiles(storage)
    newest, claim = max(files.ids()), min(files.ids())
    record = decode_record(storage.read(files.name(claim)), "", claim)
    fields = {name: getattr(record, name) for name in ("id", "generation", "attempt", "timestamp_ms")}
    other = type(record)(**fields, owner=type(record.owner)("elsewhere", 1, "", "", ""))
    storage.write_atomic(files.name(claim), encode_record(other))
    (*_, damage) = verify(storage, newest).damages
    assert damage.path == files.path(newest)
    assert "process 1 on elsewhere" in damage.reason


class TestAgreementWithSpark:
    def check(self, storage: LocalStorage, name: str, reason: str) -> None:
        damages = verify(storage).checkpoints[0].damages
        assert storage.describe(name) in {damage.path for damage in damages}
        assert reason in "; ".join(map(str, damages))

    def test_other_offsets(self, storage: LocalStorage) -> None:
        storage.write_atomic("offsets/5", storage.read("offsets/4"))
        self.check(storage, "offsets/5", "the offsets differ from those in the checkpoint")
        self.check(storage, "offsets/5", "the source offsets differ")

    def test_missing_offsets(self, storage: LocalStorage) -> None:
        storage.delete("offsets/5")
        self.check(storage, "offsets/5", "are missing")
        assert verify(storage, everything=True).restorable == (6, 5, 4)

    def test_offsets_that_are_none(self, storage: LocalStorage) -> None:
        storage.write_atomic("offsets/5", b"v9")
        self.check(storage, "offsets/5", "version 9")

    def test_another_query(self, storage: LocalStorage) -> None:
        storage.write_atomic("metadata", b'{"id":"another"}')
        self.check(storage, "metadata", "names query another")
        storage.delete("metadata")
        self.check(storage, "metadata", "no such file")

    def test_a_commit_that_is_missing_in_the_middle(self, storage: LocalStorage) -> None:
        storage.delete("commits/4")
        assert verify(storage).is_whole
        (_, before, *_) = verify(storage, everything=True).checkpoints
        assert [damage.path for damage in before.damages] == [storage.describe("commits/4")]

    def test_the_last_batch_need_not_be_committed(self, storage: LocalStorage) -> None:
        storage.delete("commits/5")
        found = verify(storage)
        assert found.is_whole
        assert not found.checkpoints[0].can_go_back
        assert found.restorable == (6,)

    def test_the_checkpoint_that_a_start_begins_from_is_read(self, storage: LocalStorage) -> None:
        """A start uses an older checkpoint if Spark has not committed the newest one's batch."""
        storage.delete("commits/5")
        storage.write_atomic("ckpt/chk-6/_metadata", b"damaged")
        found = verify(storage)
        assert [verdict.is_whole for verdict in found.checkpoints] == [True, False, True]
        assert not found.is_whole

    def test_entries_that_spark_has_purged(self, storage: LocalStorage) -> None:
        for batch in range(4):
            storage.delete(f"offsets/{batch}")
            storage.delete(f"commits/{batch}")
        found = verify(storage, everything=True)
        assert found.is_whole
        assert [verdict.can_go_back for verdict in found.checkpoints] == [True, False, False, False]

    def test_a_committed_batch_without_a_checkpoint(self, storage: LocalStorage) -> None:
        storage.write_atomic("offsets/6", storage.read("offsets/5"))
        storage.write_atomic("commits/6", storage.read("commits/5"))
        (damage,) = verify(storage).damages
        what = "batch 6 is committed, but batch 6 has no completed checkpoint, which the next start needs"
        assert str(damage) == f"{storage.describe('commits/6')}: {what}"

    def test_a_batch_begun_without_the_checkpoint_before(self, storage: LocalStorage) -> None:
        for batch in (6, 7):
            storage.write_atomic(f"offsets/{batch}", storage.read("offsets/5"))
        (damage,) = verify(storage).damages
        what = "batch 7 has begun, but batch 6 has no completed checkpoint, which the next start needs"
        assert str(damage) == f"{storage.describe('offsets/7')}: {what}"

    def test_a_batch_begun_is_no_damage(self, storage: LocalStorage) -> None:
        storage.write_atomic("offsets/6", storage.read("offsets/5"))
        assert verify(storage).is_whole

    def test_no_offsets(self, storage: LocalStorage) -> None:
        for batch in range(6):
            storage.delete(f"offsets/{batch}")
        assert "a start would begin with batch 0" in "; ".join(map(str, verify(storage).damages))

    def test_a_commit_without_offsets(self, storage: LocalStorage) -> None:
        storage.write_atomic("commits/6", storage.read("commits/5"))
        assert "batch 6 is committed, but its offsets are missing" in "; ".join(map(str, verify(storage).damages))

    def test_a_file_source_without_its_log(self, storage: LocalStorage) -> None:
        """Offsets of a file source are numbers of entries in its log."""
        entry = storage.read("offsets/5").decode().rpartition("\n")[0]
        for batch in (6, 7):
            storage.write_atomic(f"offsets/{batch}", f'{entry}\n{{"logOffset":{batch}}}'.encode())
        storage.write_atomic("commits/6", storage.read("commits/5"))

        def damages() -> str:
            return "; ".join(str(damage) for damage in verify(storage).damages if "sources" in str(damage))

        assert "entry 7 of the source is missing" in damages()
        storage.write_atomic("sources/0/7.compact", b"v1")
        assert not damages()

    def test_another_description_of_an_operator(self, storage: LocalStorage, tmp_path: Path) -> None:
        """Spark compares the operators with their descriptions if it can read all of them, and skips it if not."""
        name = "state/1/_metadata/metadata"
        whole = storage.read(name)
        storage.write_atomic(name, whole.replace(b"symmetricHashJoin", b"symmetricHashJoio"))
        (damage,) = verify(storage).checkpoints[0].damages
        assert "'symmetricHashJoio'), but the checkpoint has (1, 'symmetricHashJoin')" in str(damage)
        with pytest.raises(DamagedCheckpointError, match="symmetricHashJoio"):
            take_savepoint(storage, LocalStorage(tmp_path / "savepoint"))
        for content in (whole[:-20], b""):
            storage.write_atomic(name, content)
            assert verify(storage).is_whole
        storage.delete(name)
        assert verify(storage).is_whole

    def test_a_query_that_commits_meanwhile(self, query: Query, storage: LocalStorage) -> None:
        """Retention drops the last logged batch's checkpoint between the reads of Spark's logs and of the records."""
        beside = Beside(storage, lambda: query.run(range(6, 12)))
        assert verify(beside).is_whole
        assert beside.is_done

    def test_states_that_spark_does_not_count(self, tmp_path: Path) -> None:
        query = make_query(tmp_path, checkpoint_format=2)
        assert verify(query.storage, everything=True).is_whole
        query.driver.ids[LEFT] = "0" * 32
        query.commit(5)
        (damage,) = verify(query.storage).checkpoints[0].damages
        assert (damage.subtask, damage.path) == (LEFT, query.storage.describe("commits/5"))


def test_a_location_without_a_log(tmp_path: Path) -> None:
    query = make_query(tmp_path, settings={"store": "standalone", "inlineThreshold": "0"})
    found = verify(query.storage)
    assert (found.is_whole, found.restorable) == (True, (7,))
    storage = query.storage
    storage.write_atomic("ckpt/chk-7/_metadata", b"damaged")
    found = verify(storage)
    assert [damage.path for damage in found.damages] == [storage.describe("ckpt/chk-7/_metadata")]
    assert [verdict.record.id for verdict in found.checkpoints] == [6]


def test_a_store_without_a_query(tmp_path: Path) -> None:
    query = Query(LocalStorage(tmp_path), operators=(Operator(0, "standalone", ("default",), 1),))
    query.driver.run_id = f"standalone:{tmp_path}"
    query.driver.sources = ()
    query.driver.batch(1)
    for name in ("metadata", "sources/0/0"):
        query.storage.delete(name)
    assert verify(query.storage).is_whole


def test_nothing_to_verify(tmp_path: Path) -> None:
    with pytest.raises(NoCheckpointError):
        verify(LocalStorage(tmp_path))


class Subsuming(LocalStorage):
    """Storage whose query runs four batches, once, during the read of a state file."""

    query: Query | None = None

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        query, self.query = self.query, None
        if query is not None:
            query.run(range(6, 10))
        return super().read_range(name, offset, length)


def test_what_is_subsumed_while_it_is_read_is_left_out(query: Query, storage: LocalStorage) -> None:
    meanwhile = Subsuming(storage.location)
    meanwhile.query = query
    found = verify(meanwhile, everything=True)
    assert found.is_whole
    assert [verdict.record.batch_id for verdict in found.checkpoints] == [5]
