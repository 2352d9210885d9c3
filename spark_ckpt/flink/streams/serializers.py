"""Serializer snapshots: description of the serializers of a stream.

    SER     i32 2, then a snapshot                                 `TypeSerializerSnapshotSerializationUtil`
    SNAP    utf class, i32 version, fields of the class            `TypeSerializerSnapshot.writeVersionedSnapshot`

A snapshot has no length prefix: only its class determines its end. So a class outside the table of
`spark_ckpt.flink.streams.types` makes the rest of the stream unreadable.
"""

from __future__ import annotations

from spark_ckpt.flink.streams.errors import UnknownSerializerError
from spark_ckpt.flink.streams.recovery import GuidedInput
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.flink.streams.types import (
    accumulators,
    arrays,
    avro,
    big_numbers,
    cep,
    composites,
    enums,
    pojo,
    primitives,
    row_data,
    text,
    times,
)
from spark_ckpt.flink.streams.types.base import (
    NESTED_MAGIC,
    NESTED_VERSION,
    ConfiguredSerializer,
    Serializer,
    SimpleSerializer,
    expect,
    write_snapshot,
)
from spark_ckpt.flink.streams.types.logical_types import UnknownLogicalTypeError
from spark_ckpt.flink.streams.types.opaque import OpaqueSerializer
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

_SERIALIZER_VERSION = 2
_SIMPLE_VERSION_WITH_NAME = 2
_MIN_SNAPSHOT = 2 + 4

_SIMPLE: dict[str, SimpleSerializer] = {
    serializer.class_name: serializer
    for serializers in (
        primitives.SERIALIZERS,
        text.SERIALIZERS,
        big_numbers.SERIALIZERS,
        times.SERIALIZERS,
        arrays.SERIALIZERS,
        cep.SIMPLE,
    )
    for serializer in serializers
}
_CONFIGURED: dict[str, type[ConfiguredSerializer]] = {
    kind.class_name: kind
    for kinds in (
        composites.SERIALIZERS,
        enums.SERIALIZERS,
        row_data.SERIALIZERS,
        pojo.SERIALIZERS,
        avro.SERIALIZERS,
        accumulators.SERIALIZERS,
        cep.SERIALIZERS,
    )
    for kind in kinds
}

CLASS_NAMES = frozenset((*_SIMPLE, *_CONFIGURED))
"""Snapshot classes that can be read and written."""


def read_serializer(data: StreamInput, field: str) -> Serializer:
    """Read `SER`.

    Raises:
        UnknownSerializerError: unknown snapshot class, or a logical type outside the table.
        StateStreamFormatError: malformed snapshot.
    """
    data.enter(field)
    expect(data, "version", _SERIALIZER_VERSION)
    try:
        serializer = _read_snapshot(data)
    except (_UnknownClassError, UnknownLogicalTypeError) as unknown:
        raise UnknownSerializerError(data.path, unknown.offset, data.where("class_name"), unknown.class_name) from None
    data.leave()
    return serializer


def write_serializer(serializer: Serializer, out: DataOutput, field: str) -> None:
    """Write `SER`.

    Raises:
        MetadataValueError: a configuration that cannot be written.
    """
    out.enter(field)
    out.i32(_SERIALIZER_VERSION, "version")
    write_snapshot(serializer, out)
    out.leave()


class _UnknownClassError(Exception):
    def __init__(self, class_name: str, offset: int) -> None:
        super().__init__(class_name)
        self.class_name = class_name
        self.offset = offset


def _read_snapshot(data: DataInput) -> Serializer:
    at = data.position
    name = data.utf("class_name")
    simple, configured = _SIMPLE.get(name), _CONFIGURED.get(name)
    if simple is None and configured is None:
        if isinstance(data, GuidedInput):
            return data.opaque(name)
        raise _UnknownClassError(name, at)
    at = data.position
    version = data.i32("snapshot_version")
    if simple is not None:
        if version == _SIMPLE_VERSION_WITH_NAME:
            data.utf("serializer_class")
        elif version != simple.snapshot_version:
            data.fail("snapshot_version", f"unknown version {version} of {name}", at)
        return simple
    assert configured is not None
    if version != configured.snapshot_version:
        data.fail("snapshot_version", f"unknown version {version} of {name}", at)
    try:
        return configured.read_content(data, _NESTED)
    except UnknownLogicalTypeError:
        if not isinstance(data, GuidedInput):
            raise
        data.position = at
        return data.opaque(name, is_known=True)


class _Nested:
    """Reader of nested snapshots."""

    def __call__(self, data: DataInput) -> tuple[Serializer, ...]:
        expect(data, "nested_magic_number", NESTED_MAGIC)
        expect(data, "nested_version", NESTED_VERSION)
        return tuple([_read_snapshot(data) for _ in data.each("nested", _MIN_SNAPSHOT)])

    def framed(self, data: DataInput, field: str) -> Serializer:
        at = data.position
        content = data.byte_array(field)
        inside = StreamInput(iter([content]), data.path, at + 4, data.position)
        inside.enter_within(data, field)
        try:
            serializer = _read_snapshot(inside)
        except (_UnknownClassError, UnknownLogicalTypeError) as unknown:
            return OpaqueSerializer(unknown.class_name, content[inside.position - at - 4 :])
        if inside.remaining:
            inside.fail(field, f"{inside.remaining} trailing bytes")
        return serializer


_NESTED = _Nested()
