"""Headers of the streams of a savepoint; `spark_ckpt.flink.streams.headers` describes and reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_ckpt.flink.export.model import FlinkOperatorState, FlinkState, StateKind
from spark_ckpt.flink.streams.headers import NAMESPACE_SERIALIZER, VALUE_SERIALIZER, BackendStateType
from spark_ckpt.flink.streams.serializers import write_serializer
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.composites import ListSerializer, MapSerializer, TimerSerializer
from spark_ckpt.metadata.data_output import DataOutput

_KEYED_VERSION = 6
_OPERATOR_VERSION = 5
"""Version without compression, which every release since 1.8 reads."""


def keyed_header(key: Serializer, states: Sequence[FlinkState]) -> bytes:
    """Header of a keyed stream that is not compressed (`KeyedBackendSerializationProxy`)."""
    out = DataOutput()
    out.i32(_KEYED_VERSION, "version")
    out.i8(False, "compressed")
    write_serializer(key, out, "key_serializer")
    _count(out, len(states))
    for state in states:
        if state.kind.is_timer:
            timer = TimerSerializer((key, state.namespace))
            _meta(out, state.name, BackendStateType.PRIORITY_QUEUE, {}, {VALUE_SERIALIZER: timer})
        else:
            options = {"KEYED_STATE_TYPE": state.kind.value}
            serializers = {NAMESPACE_SERIALIZER: state.namespace, VALUE_SERIALIZER: _value_serializer(state)}
            _meta(out, state.name, BackendStateType.KEY_VALUE, options, serializers)
    return out.getvalue()


def operator_header(states: Sequence[FlinkOperatorState]) -> bytes:
    """Header of a stream of list states that are not keyed (`OperatorBackendSerializationProxy`)."""
    out = DataOutput()
    out.i32(_OPERATOR_VERSION, "version")
    _count(out, len(states))
    for state in states:
        options = {"OPERATOR_STATE_DISTRIBUTION_MODE": state.mode.name}
        _meta(out, state.name, BackendStateType.OPERATOR, options, {VALUE_SERIALIZER: state.element})
    _count(out, 0)
    return out.getvalue()


def _value_serializer(state: FlinkState) -> Serializer:
    if state.kind is StateKind.LIST:
        return ListSerializer((state.value,))
    if state.kind is StateKind.MAP:
        assert state.map_key is not None
        return MapSerializer((state.map_key, state.value))
    return state.value


def _meta(
    out: DataOutput,
    name: str,
    kind: BackendStateType,
    options: Mapping[str, str],
    serializers: Mapping[str, Serializer],
) -> None:
    """`StateMetaInfoSnapshot`."""
    out.utf(name, "name")
    out.i32(kind.value, "kind")
    out.i32(len(options), "options")
    for option, value in options.items():
        out.utf(option, "options")
        out.utf(value, "options")
    out.i32(len(serializers), "serializers")
    for key, serializer in serializers.items():
        out.utf(key, "serializers")
        write_serializer(serializer, out, f"serializers[{key}]")


def _count(out: DataOutput, count: int) -> None:
    out.raw(count.to_bytes(2, "big"))
