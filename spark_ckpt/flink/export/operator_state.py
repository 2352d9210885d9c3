"""Operator state that is not keyed: list states, inline in `_metadata`."""

from __future__ import annotations

from spark_ckpt.flink.export.errors import FlinkRowError
from spark_ckpt.flink.export.headers import operator_header
from spark_ckpt.flink.export.model import FlinkOperator
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.metadata.errors import MetadataValueError
from spark_ckpt.metadata.handles import ByteStreamStateHandle, OperatorStreamStateHandle, StateMetaInfo


def operator_state(operator: FlinkOperator, subtask: int, parallelism: int) -> OperatorStreamStateHandle | None:
    """List states of a subtask, which has each `parallelism`-th element; None if the operator has none.

    Raises:
        FlinkRowError: an element does not fit its serializer.
    """
    if not operator.operator_states:
        return None
    content = bytearray(operator_header(operator.operator_states))
    states = {}
    for state in operator.operator_states:
        offsets = []
        for index in range(subtask, len(state.elements), parallelism):
            out = DataOutput()
            try:
                state.element.write(state.elements[index], out, "element")
            except MetadataValueError as refused:
                raise FlinkRowError(operator.title, state.name, index, "element", refused.reason) from None
            offsets.append(len(content))
            content += out.getvalue()
        states[state.name] = StateMetaInfo(tuple(offsets), state.mode)
    name = f"{operator.operator_id.hex()}-{subtask}-operator"
    return OperatorStreamStateHandle(states, ByteStreamStateHandle(name, bytes(content)))
