from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt.metadata import MetadataFormatError, loads
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


@settings(max_examples=500, deadline=None)
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
    ("content", "reason"),
    [
        ("7574", "type code 0x75"),
        ("71007e0000", "a reference to nothing"),
        ("740001 61", "another class"),
        ("73740001 61", "a class description is needed"),
        ("7370", "an object without a class"),
        ("7372000141 0000000000000000 03 0000 78 70", "writes its own format"),
        ("7372000141 0000000000000000 02 0001 49000161", "fields of type 'I'"),
        ("7372000141 0000000000000000 02 0000 70", "class annotations"),
        ("73" * 100, "within one another"),
    ],
)
def test_other_java_objects_are_refused(content: str, reason: str) -> None:
    with pytest.raises(MetadataFormatError, match=reason):
        decode(bytes.fromhex("aced0005" + content))
