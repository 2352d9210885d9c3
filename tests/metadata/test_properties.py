from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt.metadata import CheckpointMetadata, MetadataFormatError, MetadataValueError, dumps, loads
from spark_ckpt.metadata.properties import NULL_PROPERTIES, decode
from tests.metadata.corpus import FLINK

OF_A_CHECKPOINT, OF_A_SAVEPOINT = (
    loads(next(vector for vector in FLINK if str(vector) == name).content).properties
    for name in ("f120-heap-p1-file", "f120-savepoint-native-rocksdb-p2")
)


def test_no_properties() -> None:
    assert decode(b"") is None
    assert decode(NULL_PROPERTIES) is None


def test_kinds_of_snapshot() -> None:
    checkpoint = decode(OF_A_CHECKPOINT)
    assert checkpoint is not None
    assert checkpoint.checkpoint_type is not None
    assert checkpoint.checkpoint_type.sharing_files_strategy == "FORWARD_BACKWARD"
    assert checkpoint.discard_subsumed
    savepoint = decode(OF_A_SAVEPOINT)
    assert savepoint is not None
    assert savepoint.checkpoint_type is not None
    assert savepoint.checkpoint_type.format_type == "NATIVE"


@pytest.mark.parametrize("properties", [OF_A_CHECKPOINT, OF_A_SAVEPOINT], ids=["checkpoint", "savepoint"])
def test_truncated_at_every_byte(properties: bytes) -> None:
    for length in range(1, len(properties)):
        with pytest.raises(MetadataFormatError):
            decode(properties[:length])


@settings(max_examples=500)
@given(st.sampled_from([OF_A_CHECKPOINT, OF_A_SAVEPOINT]), st.data())
def test_damage_is_an_error_or_another_value(properties: bytes, data: st.DataObject) -> None:
    damaged = bytearray(properties)
    for at in data.draw(st.lists(st.integers(0, len(damaged) - 1), min_size=1, max_size=4)):
        damaged[at] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(damaged))
    except MetadataFormatError as error:
        refused = error
    else:
        return
    assert refused.field.startswith("properties")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"t\x00\x10FORWARD_BACKWARD", b"t\x00\x04BACK", "has no constant 'BACK'"),
        (b"t\x00\x10FORWARD_BACKWARD", b"p", "has no constant None"),
        (b"t\x00\x0aCheckpoint~", b"q\x00~\x00\x03~", "no java.lang.String"),
        (b"t\x00\x0aCheckpoint~", b"q\x00~\x00\x06~", "a dangling reference"),
        (b"sr\x002org.apache.flink.runtime.checkpoint.CheckpointType", b"q\x00~\x00\x02", "a dangling reference"),
        (b"CheckpointType\xd6", b"CheckpointTypf\xd6", "unknown class .*CheckpointTypf"),
        (b"CheckpointType\xd6", b"CheckpointType\xd7", "serial version"),
        (
            b"CheckpointProperties\0\0\0\0\0\0\0\x02\x02",
            b"CheckpointProperties\0\0\0\0\0\0\0\x02\x03",
            "custom format",
        ),
        (b"Z\x00\x06forced", b"Z\x00\x0echeckpointType", "unexpected field checkpointType"),
        (b"Ljava/lang/String;", b"Djava/lang/String;", "not the class of a field"),
        (b"java.lang.Enum", b"java.lang.Fnum", "unknown class java.lang.Fnum"),
        (b"\x12\0\0xr\x00\x0ejava.lang.Enum\0\0\0\0\0\0\0\0\x12\0\0x", b"\x12\0\0x", "unexpected superclass"),
        (b"xp\x00\x00", b"zp\x00\x00", "annotations"),
    ],
)
def test_other_forms_of_the_class_are_refused(old: bytes, new: bytes, reason: str) -> None:
    assert old in OF_A_CHECKPOINT
    with pytest.raises(MetadataFormatError, match=reason):
        decode(OF_A_CHECKPOINT.replace(old, new))


def test_fields_are_matched_by_name_and_may_be_null() -> None:
    original = decode(OF_A_CHECKPOINT)
    assert original is not None and original.checkpoint_type is not None and original.discard_finished
    unknown = OF_A_CHECKPOINT.replace(b"discardFinished", b"discardFinisheD").replace(b"t\x00\x0aCheckpoint~", b"p~")
    kind = replace(original.checkpoint_type, name=None)
    assert decode(unknown) == replace(original, discard_finished=False, checkpoint_type=kind)


def test_an_enum_is_no_type_of_a_checkpoint() -> None:
    enum = OF_A_CHECKPOINT[OF_A_CHECKPOINT.index(b"~r") :]
    kind = OF_A_CHECKPOINT.index(b"sr", 10)
    with pytest.raises(MetadataFormatError, match=r"no org.apache.flink.runtime.checkpoint.SnapshotType"):
        decode(OF_A_CHECKPOINT[:kind] + enum)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("7574", "type code 0x75"),
        ("71007e0000", "a dangling reference"),
        ("740001 61", "not a CheckpointProperties object"),
        ("73740001 61", "a class description is missing"),
        ("7370", "an object without a class"),
        ("7e70", "an enum constant without an enum"),
        ("73" * 100, "nest deeper"),
    ],
)
def test_other_java_objects_are_refused(content: str, reason: str) -> None:
    with pytest.raises(MetadataFormatError, match=reason):
        decode(bytes.fromhex("aced0005" + content))


@pytest.mark.parametrize("properties", [b"\xac\xed\x00\x05", OF_A_CHECKPOINT + b"x", b"text"])
def test_properties_that_no_reader_takes_are_not_written(properties: bytes) -> None:
    with pytest.raises(MetadataValueError) as refused:
        dumps(CheckpointMetadata(1, version=4, properties=properties), 4)
    assert refused.value.field == "properties"
