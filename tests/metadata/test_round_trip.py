"""Written metadata reads the same again; writing refuses metadata that the version cannot hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt import metadata as m
from spark_ckpt.metadata.properties import NULL_PROPERTIES
from tests.metadata.strategies import checkpoints

GENEROUS = settings(max_examples=100)
OPERATOR_ID = bytes(range(16))
STREAM = m.ByteStreamStateHandle("inline", b"state")
KEYED = m.KeyGroupsStateHandle(m.KeyGroupRangeOffsets.of(0, [0]), STREAM)


def checkpoint(
    subtask: m.OperatorSubtaskState, coordinator_state: m.ByteStreamStateHandle | None = None
) -> m.CheckpointMetadata:
    return m.CheckpointMetadata(1, (), (m.OperatorState(OPERATOR_ID, 1, 8, {0: subtask}, coordinator_state),))


@pytest.mark.parametrize("version", [2, 3])
@GENEROUS
@given(data=st.data())
def test_what_is_written_is_read_again(version: int, data: st.DataObject) -> None:
    metadata = data.draw(checkpoints(version))
    content = m.dumps(metadata, version)
    again = m.loads(content)
    assert again == metadata
    assert m.dumps(again, version) == content


@settings(GENEROUS, max_examples=25)
@given(checkpoints(3))
def test_version_4_adds_the_properties(metadata: m.CheckpointMetadata) -> None:
    content = m.dumps(metadata, 4)
    assert content.endswith(NULL_PROPERTIES)
    assert m.loads(content) == replace(metadata, version=4, properties=NULL_PROPERTIES)


def test_the_version_written_is_the_argument() -> None:
    metadata = m.CheckpointMetadata(7, version=2)
    assert m.loads(m.dumps(metadata)).version == 3
    assert m.loads(m.dumps(metadata, 2)).version == 2
    with pytest.raises(m.UnsupportedMetadataVersionError):
        m.dumps(metadata, 7)


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        (checkpoint(m.OperatorSubtaskState(), coordinator_state=STREAM), "operator_states[0].coordinator_state"),
        (checkpoint(m.FinishedOperatorSubtaskState()), "operator_states[0].subtask_states[0].index"),
        (
            m.CheckpointMetadata(1, (), (m.FullyFinishedOperatorState(OPERATOR_ID, 1, 1),)),
            "operator_states[0].subtask_states",
        ),
        (
            checkpoint(
                m.OperatorSubtaskState(
                    input_channel_state=(m.InputChannelStateHandle(0, m.InputChannelInfo(0, 0), (), 0, STREAM),)
                )
            ),
            "operator_states[0].subtask_states[0].input_channel_state",
        ),
    ],
)
def test_version_2_refuses_what_it_has_no_place_for(metadata: m.CheckpointMetadata, field: str) -> None:
    with pytest.raises(m.MetadataValueError, match="version 2") as refused:
        m.dumps(metadata, 2)
    assert refused.value.field == field
    assert m.loads(m.dumps(metadata, 3)) == metadata


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        (m.CheckpointMetadata(2**63), "checkpoint_id"),
        (m.CheckpointMetadata(1, (m.MasterState("n" * 65536, b"", 1),)), "name"),
        (m.CheckpointMetadata(1, (), (m.OperatorState(OPERATOR_ID, 1, 2**31),)), "operator_states[0].max_parallelism"),
        (
            checkpoint(
                m.OperatorSubtaskState(
                    managed_operator_state=m.OperatorStreamStateHandle(
                        {"s": m.StateMetaInfo((2**63,), m.DistributionMode.UNION)}, STREAM
                    )
                )
            ),
            "operator_states[0].subtask_states[0].managed_operator_state.state_name_to_partition_offsets[0].offsets",
        ),
        (
            checkpoint(
                m.OperatorSubtaskState(
                    managed_keyed_state=replace(KEYED, delegate_state_handle=replace(KEYED, state_handle_id="id"))
                )
            ),
            "operator_states[0].subtask_states[0].managed_keyed_state.delegate_state_handle.state_handle_id",
        ),
    ],
)
def test_values_that_do_not_fit_are_refused_by_field(metadata: m.CheckpointMetadata, field: str) -> None:
    with pytest.raises(m.MetadataValueError) as refused:
        m.dumps(metadata)
    assert refused.value.field == field


def test_no_writer_makes_what_no_reader_takes() -> None:
    handle = KEYED
    for _ in range(40):
        handle = m.KeyGroupsStateHandle(KEYED.group_range_offsets, handle)
    with pytest.raises(m.MetadataValueError, match="nest deeper"):
        m.dumps(checkpoint(m.OperatorSubtaskState(managed_keyed_state=handle)))


def test_other_handles_in_the_wrong_place_are_refused() -> None:
    wrong = checkpoint(m.OperatorSubtaskState(managed_keyed_state=STREAM))  # type: ignore[arg-type]
    with pytest.raises(m.MetadataValueError, match="ByteStreamStateHandle is not allowed here"):
        m.dumps(wrong)


def test_offsets_come_back_in_the_byte_order_of_the_machine() -> None:
    metadata = m.loads(m.dumps(checkpoint(m.OperatorSubtaskState(managed_keyed_state=KEYED))))
    handle = metadata.operator_states[0].subtask_states[0].managed_keyed_state
    assert isinstance(handle, m.KeyGroupsStateHandle)
    assert handle.group_range_offsets.offsets.dtype == np.int64
    assert handle.group_range_offsets.offsets.dtype.isnative
