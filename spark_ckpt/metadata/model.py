"""Model of a `_metadata` file: the checkpoint, its master states, and the state of each operator.

Names and rules are those of `org.apache.flink.runtime.checkpoint`. `spark_ckpt.metadata.handles` has the handles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_ckpt.metadata.errors import MetadataValueError
from spark_ckpt.metadata.handles import ByteStreamStateHandle, KeyedStateHandle, OperatorStateHandle, StreamStateHandle

OPERATOR_ID_BYTES = 16
"""Length of an operator id."""


@dataclass(frozen=True, slots=True)
class MasterState:
    """State of the coordinating process, opaque to Flink (`MasterState`).

    Args:
        name: name of the writer; not necessarily unique.
        payload: bytes of the state.
        version: version of the payload's format.
    """

    name: str
    payload: bytes
    version: int


@dataclass(frozen=True, slots=True)
class InputChannelInfo:
    """Input channel of a subtask (`checkpoint.channel.InputChannelInfo`)."""

    gate_idx: int
    input_channel_idx: int


@dataclass(frozen=True, slots=True)
class ResultSubpartitionInfo:
    """Result subpartition of a subtask (`checkpoint.channel.ResultSubpartitionInfo`)."""

    partition_idx: int
    sub_partition_idx: int


@dataclass(frozen=True, slots=True)
class InputChannelStateHandle:
    """In-flight data to a subtask (`state.InputChannelStateHandle`).

    Args:
        subtask_index: index of the subtask.
        info: input channel.
        offsets: start of each buffer in the stream.
        state_size: bytes of the buffers, including their length prefixes.
        delegate: handle of the stream, which several handles may share.
    """

    subtask_index: int
    info: InputChannelInfo
    offsets: tuple[int, ...]
    state_size: int
    delegate: StreamStateHandle


@dataclass(frozen=True, slots=True)
class ResultSubpartitionStateHandle:
    """In-flight data from a subtask (`state.ResultSubpartitionStateHandle`); fields as in `InputChannelStateHandle`."""

    subtask_index: int
    info: ResultSubpartitionInfo
    offsets: tuple[int, ...]
    state_size: int
    delegate: StreamStateHandle


@dataclass(frozen=True, slots=True)
class OperatorSubtaskState:
    """State of one subtask of an operator (`OperatorSubtaskState`), with at most one handle per kind of state."""

    managed_operator_state: OperatorStateHandle | None = None
    raw_operator_state: OperatorStateHandle | None = None
    managed_keyed_state: KeyedStateHandle | None = None
    raw_keyed_state: KeyedStateHandle | None = None
    input_channel_state: tuple[InputChannelStateHandle, ...] = ()
    result_subpartition_state: tuple[ResultSubpartitionStateHandle, ...] = ()

    @property
    def is_finished(self) -> bool:
        """True if the subtask had finished when the checkpoint was taken."""
        return False

    @property
    def state_size(self) -> int:
        """Number of bytes of all state of the subtask."""
        operator = (self.managed_operator_state, self.raw_operator_state)
        keyed = (self.managed_keyed_state, self.raw_keyed_state)
        return (
            sum(handle.state_size for handle in operator if handle is not None)
            + sum(handle.state_size for handle in keyed if handle is not None)
            + sum(handle.state_size for handle in self.input_channel_state)
            + sum(handle.state_size for handle in self.result_subpartition_state)
        )


@dataclass(frozen=True, slots=True)
class FinishedOperatorSubtaskState(OperatorSubtaskState):
    """Finished subtask, without state (`FinishedOperatorSubtaskState`).

    Raises:
        MetadataValueError: it has state.
    """

    def __post_init__(self) -> None:
        states = (self.managed_operator_state, self.raw_operator_state, self.managed_keyed_state, self.raw_keyed_state)
        if any(states) or self.input_channel_state or self.result_subpartition_state:
            raise MetadataValueError("subtask_states", "a finished subtask has no state")

    @property
    def is_finished(self) -> bool:
        """Always true."""
        return True


@dataclass(frozen=True, slots=True)
class OperatorState:
    """State of one operator: its subtasks and its coordinator (`OperatorState`).

    Args:
        operator_id: 16 bytes, in the order of the printed id.
        parallelism: number of subtasks.
        max_parallelism: number of key groups. Flink does not enforce its limit of 32768 when it loads a file.
        subtask_states: states by subtask index; subtasks without state may be missing.
        coordinator_state: state of the operator coordinator, always inline; None without a coordinator state.
        name: name of the operator; None if it has none, and in versions before 5.
        uid: uid that the user gave, of which the id is a hash; None likewise.

    Raises:
        MetadataValueError: the id does not have 16 bytes, the parallelism is negative or above the max parallelism, or
            a subtask index is not below the parallelism.
    """

    operator_id: bytes
    parallelism: int
    max_parallelism: int
    subtask_states: Mapping[int, OperatorSubtaskState] = field(default_factory=dict)
    coordinator_state: ByteStreamStateHandle | None = None
    name: str | None = None
    uid: str | None = None

    def __post_init__(self) -> None:
        if len(self.operator_id) != OPERATOR_ID_BYTES:
            raise MetadataValueError("operator_id", f"{len(self.operator_id)} bytes instead of {OPERATOR_ID_BYTES}")
        if not 0 <= self.parallelism <= self.max_parallelism:
            reason = f"{self.parallelism} is not in 0 to the max parallelism {self.max_parallelism}"
            raise MetadataValueError("parallelism", reason)
        for index in self.subtask_states:
            if not 0 <= index < self.parallelism:
                reason = f"no subtask {index} at parallelism {self.parallelism}"
                raise MetadataValueError("subtask_states", reason)

    @property
    def is_fully_finished(self) -> bool:
        """True if all subtasks had finished when the checkpoint was taken."""
        return False

    @property
    def state_size(self) -> int:
        """Number of bytes of all state of the operator."""
        coordinator = self.coordinator_state.state_size if self.coordinator_state else 0
        return coordinator + sum(subtask.state_size for subtask in self.subtask_states.values())


@dataclass(frozen=True, slots=True)
class FullyFinishedOperatorState(OperatorState):
    """Operator with only finished subtasks, without state (`FullyFinishedOperatorState`).

    Raises:
        MetadataValueError: it has state, or as in `OperatorState`.
    """

    def __post_init__(self) -> None:
        OperatorState.__post_init__(self)
        if self.subtask_states or self.coordinator_state:
            raise MetadataValueError("subtask_states", "a fully finished operator has no state")

    @property
    def is_fully_finished(self) -> bool:
        """Always true."""
        return True


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """Everything in one `_metadata` file (`checkpoint.metadata.CheckpointMetadata`).

    Args:
        checkpoint_id: checkpoint id, not negative.
        master_states: states of the coordinating process.
        operator_states: states of the operators. Flink restores the last of several with the same id.
        version: version of the decoded file: 2 to 6. Encoding has its own argument.
        properties: since version 4, one serialised Java object (`spark_ckpt.metadata.properties.decode`); else empty.

    Raises:
        MetadataValueError: the checkpoint id is negative.
    """

    checkpoint_id: int
    master_states: tuple[MasterState, ...] = ()
    operator_states: tuple[OperatorState, ...] = ()
    version: int = 3
    properties: bytes = b""

    def __post_init__(self) -> None:
        if self.checkpoint_id < 0:
            raise MetadataValueError("checkpoint_id", f"{self.checkpoint_id} is negative")

    @property
    def state_size(self) -> int:
        """Number of bytes of all state. A stream that several handles share counts once per handle."""
        return sum(operator.state_size for operator in self.operator_states)
