"""Files of tags."""

from __future__ import annotations

import pytest

from spark_ckpt.completed import ClaimRecord, encode_record
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.location.errors import TagExistsError, TagNameError, TagNotFoundError
from spark_ckpt.location.tags import Tag, Tags, check_tag_name
from spark_ckpt.storage import MemoryStorage, Storage
from tests.completed.records import owner, record
from tests.support.memory_storage import memory_storage


@pytest.fixture
def storage() -> MemoryStorage:
    return memory_storage()


def test_a_tag_holds_the_record_of_its_checkpoint(storage: Storage) -> None:
    tags = Tags(storage)
    for checkpoint_id in (3, 17):
        storage.write_atomic(f"ckpt/chk-{checkpoint_id}/_metadata", b"x")
    assert tags.list() == []
    assert tags.create("later", record(17, 16)) == Tag("later", 17)
    tags.create("v1.2-rc_1", record(3, 2))
    tags.create("again", record(17, 16))
    assert tags.list() == [Tag("v1.2-rc_1", 3), Tag("again", 17), Tag("later", 17)]
    assert tags.find("v1.2-rc_1") == Tag("v1.2-rc_1", 3)
    assert tags.read(Tag("v1.2-rc_1", 3)) == record(3, 2)
    assert tags.records() == {3: record(3, 2), 17: record(17, 16)}
    tags.delete(Tag("later", 17))
    tags.delete(Tag("later", 17))
    assert tags.list() == [Tag("v1.2-rc_1", 3), Tag("again", 17)]
    assert tags.read(Tag("later", 17)) is None
    with pytest.raises(TagNotFoundError, match=r"no tag 'later'; available: v1.2-rc_1, again"):
        tags.find("later")


def test_a_tag_without_its_checkpoint_is_no_reason_to_keep_anything(storage: Storage) -> None:
    tags = Tags(storage)
    tags.create("a", record(3, 2))
    assert tags.records() == {}
    assert tags.read(Tag("a", 3)) == record(3, 2)


def test_no_two_checkpoints_have_the_same_tag(storage: Storage) -> None:
    tags = Tags(storage)
    tags.create("a", record(3, 2))
    with pytest.raises(TagExistsError, match="checkpoint 3 has the tag 'a' already"):
        tags.create("a", record(4, 3))
    assert tags.list() == [Tag("a", 3)]


def test_of_two_commands_at_once_none_takes_the_name_of_the_other(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags, rival = Tags(storage), record(4, 3)
    create = type(storage).create_exclusive

    def and_the_rival(self: Storage, name: str, data: bytes) -> object:
        result = create(self, name, data)
        storage.write_atomic(Tag("a", 4).file, encode_record(rival))
        return result

    monkeypatch.setattr(type(storage), "create_exclusive", and_the_rival)
    with pytest.raises(TagExistsError, match="checkpoint 4 has the tag 'a' already"):
        tags.create("a", record(3, 2))
    assert tags.list() == [Tag("a", 4)]


@pytest.mark.parametrize("name", ["", "17", "-a", "a/b", "../a", "a b", "a" * 101, "ä", "a\n"])
def test_other_names(name: str) -> None:
    with pytest.raises(TagNameError, match="cannot be the name of a tag"):
        check_tag_name(name)


def test_other_files_are_no_tags(storage: Storage) -> None:
    for name in ("a.json", "a.x.json", ".tmp-1", "7.json", "a.7.txt"):
        storage.write_atomic(f"ckpt/tags/{name}", b"x")
    assert Tags(storage).list() == []


@pytest.mark.parametrize(
    "data",
    [b"x", encode_record(record(4, 3)), encode_record(ClaimRecord(3, 1, owner(), "attempt", 0))],
    ids=["no record", "another checkpoint", "a claim"],
)
def test_a_damaged_tag(storage: Storage, data: bytes) -> None:
    storage.write_atomic(Tag("a", 3).file, data)
    with pytest.raises(DamagedRecordError, match=r"ckpt/tags/a\.3\.json.*Delete the tag") as caught:
        Tags(storage).read(Tag("a", 3))
    assert caught.value.path.endswith("ckpt/tags/a.3.json")
