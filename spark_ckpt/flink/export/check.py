"""Types that a savepoint of ours can have."""

from __future__ import annotations

from collections import Counter

from spark_ckpt.flink.export.errors import UnsupportedForFlinkError
from spark_ckpt.flink.export.model import FlinkOperator, FlinkState, StateKind
from spark_ckpt.flink.streams.serializers import write_serializer
from spark_ckpt.flink.streams.types import primitives
from spark_ckpt.flink.streams.types.base import Serializer, SimpleSerializer
from spark_ckpt.flink.streams.types.composites import RowSerializer, TupleSerializer
from spark_ckpt.flink.streams.types.enums import EnumSerializer
from spark_ckpt.flink.streams.types.pojo import PojoSerializer
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.flink.types.lookup import flink_type
from spark_ckpt.flink.types.row_writer import has_writer
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.metadata.errors import MetadataValueError
from spark_ckpt.metadata.handles import DistributionMode
from spark_ckpt.metadata.model import OPERATOR_ID_BYTES

MAX_KEY_GROUPS = 1 << 15
"""Largest max parallelism (`KeyGroupRangeAssignment.UPPER_BOUND_MAX_PARALLELISM`)."""

_MAX_STATES = (1 << 15) - 1


def check(operator: FlinkOperator) -> None:
    """Check that an operator can be written.

    Raises:
        UnsupportedForFlinkError: a type cannot be written, a key has no hash that is the same in each JVM, or the
            operator is inconsistent.
    """

    def refuse(state: str | None, reason: str) -> None:
        raise UnsupportedForFlinkError(operator.title, state, reason)

    if len(operator.operator_id) != OPERATOR_ID_BYTES:
        refuse(None, f"an id of {len(operator.operator_id)} bytes instead of {OPERATOR_ID_BYTES}")
    if not 1 <= operator.max_parallelism <= MAX_KEY_GROUPS:
        refuse(None, f"the max parallelism {operator.max_parallelism} is not 1 to {MAX_KEY_GROUPS}")
    for names in ([state.name for state in operator.states], [state.name for state in operator.operator_states]):
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            refuse(min(twice), "two states have this name")
        if len(names) > _MAX_STATES:
            refuse(None, f"{len(names)} states; Flink has at most {_MAX_STATES}")
    if operator.key is None:
        if operator.states:
            refuse(None, "it has keyed states, but no serializer of keys")
    elif reason := why_not_a_key(operator.key):
        refuse(None, f"keys of type {operator.key}: {reason}")
    for state in operator.states:
        if reason := _why_not_a_state(state):
            refuse(state.name, reason)
    for operator_state in operator.operator_states:
        if operator_state.mode is DistributionMode.BROADCAST:
            refuse(operator_state.name, "a list state cannot be broadcast; use UNION")
        if reason := why_not(operator_state.element):
            refuse(operator_state.name, f"elements of type {operator_state.element}: {reason}")


def _why_not_a_state(state: FlinkState) -> str | None:
    """Reason why a state cannot be written; None if it can."""
    if (state.kind is StateKind.MAP) != (state.map_key is not None):
        return "a map has a serializer of its keys, and no other kind of state has one"
    if state.kind.is_timer and not state.name.startswith(state.kind.value):
        return f"the name of timers begins with {state.kind.value}"
    parts = {"values": state.value, "map keys": state.map_key, "namespaces": state.namespace}
    for what, serializer in parts.items():
        if serializer is not None and (reason := why_not(serializer)):
            return f"{what} of type {serializer}: {reason}"
    return None


def why_not(serializer: Serializer) -> str | None:
    """Reason why values of a serializer cannot be written; None if they can."""
    if serializer.is_opaque:
        return "only the Java class can write such values (Kryo is one of them); choose another type in the job"
    if flink_type(serializer).write is None:
        return "such values can be read, but not written; choose another type in the job"
    if isinstance(serializer, RowDataSerializer) and not all(map(has_writer, serializer.types)):
        return "a row with ARRAY, MAP, ROW or RAW in it can be read, but not written; give it plain columns"
    for part in () if isinstance(serializer, RowDataSerializer) else serializer.nested:
        if reason := why_not(part):
            return f"{part} in it: {reason}"
    try:
        write_serializer(serializer, DataOutput(), "serializer")
    except MetadataValueError as refused:
        return str(refused)
    return None


def why_not_a_key(serializer: Serializer) -> str | None:
    """Reason why values of a serializer cannot be keys; None if they can."""
    if reason := why_not(serializer):
        return reason
    if serializer == primitives.BYTES:
        return "an array has another hash in each JVM, so Flink cannot restore such keys either; use a string"
    if isinstance(serializer, EnumSerializer):
        return "an enum has another hash in each JVM, so Flink cannot restore such keys either; use a string"
    if isinstance(serializer, PojoSerializer):
        return "the hash is that of the Java class, which is unknown here; use a tuple or a row"
    if isinstance(serializer, (TupleSerializer, RowSerializer)):
        for part in serializer.nested:
            if reason := why_not_a_key(part):
                return f"{part} in it: {reason}"
        if isinstance(serializer, TupleSerializer) and serializer != TupleSerializer.of(*serializer.parts):
            return f"the hash is that of the Java class {serializer.tuple_class}; use Flink's own tuple"
        return None
    if isinstance(serializer, RowDataSerializer) or (isinstance(serializer, SimpleSerializer) and serializer.hashes):
        return None
    return "the hash of such keys is unknown; use a long, a string, a tuple or a row"
