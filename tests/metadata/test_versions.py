from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt import metadata as m
from spark_ckpt.metadata.properties import NULL_PROPERTIES
from tests.metadata.corpus import FLINK, Vector
from tests.metadata.strategies import checkpoints

STREAM = m.ByteStreamStateHandle("inline", b"state")
INPUT = m.InputChannelStateHandle(0, m.InputChannelInfo(0, 0), (), 0, STREAM)
RESULT = m.ResultSubpartitionStateHandle(0, m.ResultSubpartitionInfo(0, 0), (), 0, STREAM)
FIRST, SECOND, THIRD = (bytes([number]) * 16 for number in (1, 2, 3))


@settings(max_examples=60)
@given(st.data())
def test_a_converted_checkpoint_is_what_the_file_holds(data: st.DataObject) -> None:
    source, target = data.draw(st.sampled_from([(2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (4, 3), (4, 4)]))
    metadata = data.draw(checkpoints(source))
    if source == 4:
        metadata = replace(metadata, properties=NULL_PROPERTIES)
    converted = m.convert(metadata, target)
    assert m.loads(m.dumps(converted, target)) == converted
    assert replace(converted, version=source, properties=metadata.properties) == metadata


@pytest.mark.parametrize("vector", FLINK, ids=str)
@pytest.mark.parametrize("version", [2, 3])
def test_files_of_flink(vector: Vector, version: int) -> None:
    metadata = m.loads(vector.content)
    later = any(
        operator.coordinator_state is not None
        or operator.is_fully_finished
        or any(
            subtask.is_finished or subtask.input_channel_state or subtask.result_subpartition_state
            for subtask in operator.subtask_states.values()
        )
        for operator in metadata.operator_states
    )
    if version == 2 and later:
        with pytest.raises(m.MetadataLossError):
            m.convert(metadata, version)
        return
    converted = m.convert(metadata, version)
    assert (converted.version, converted.properties) == (version, b"")
    assert converted.operator_states == metadata.operator_states
    assert converted.master_states == metadata.master_states


def test_the_properties_of_version_4() -> None:
    with_properties = next(metadata for metadata in map(read, FLINK) if len(metadata.properties) > 100)
    assert m.convert(with_properties, 4) == with_properties
    assert m.convert(with_properties, 3).properties == b""
    assert m.convert(m.CheckpointMetadata(1), 4).properties == NULL_PROPERTIES


def read(vector: Vector) -> m.CheckpointMetadata:
    return m.loads(vector.content)


LOSSY = m.CheckpointMetadata(
    1,
    (),
    (
        m.OperatorState(FIRST, 2, 8, {1: m.FinishedOperatorSubtaskState(), 0: m.OperatorSubtaskState()}),
        m.FullyFinishedOperatorState(SECOND, 1, 8),
        m.OperatorState(
            THIRD,
            3,
            8,
            {
                0: m.OperatorSubtaskState(input_channel_state=(INPUT,), result_subpartition_state=(RESULT,)),
                2: m.OperatorSubtaskState(result_subpartition_state=(RESULT,)),
            },
            STREAM,
        ),
    ),
)


@pytest.mark.parametrize("write", [m.convert, m.dumps])
def test_everything_that_version_2_has_no_place_for_is_listed(write: object) -> None:
    with pytest.raises(m.MetadataLossError) as refused:
        write(LOSSY, 2)  # type: ignore[operator]
    third = "operator_states[2]"
    assert [(loss.field, loss.operator_id, loss.subtask) for loss in refused.value.losses] == [
        ("operator_states[0].subtask_states[0].index", FIRST.hex(), 1),
        ("operator_states[1].subtask_states", SECOND.hex(), None),
        (f"{third}.coordinator_state", THIRD.hex(), None),
        (f"{third}.subtask_states[0].input_channel_state", THIRD.hex(), 0),
        (f"{third}.subtask_states[0].result_subpartition_state", THIRD.hex(), 0),
        (f"{third}.subtask_states[1].result_subpartition_state", THIRD.hex(), 2),
    ]
    assert refused.value.version == 2
    assert refused.value.field == "operator_states[0].subtask_states[0].index"
    assert str(refused.value) == (
        "operator_states[0].subtask_states[0].index: version 2 cannot hold "
        f"finished subtasks (operator {FIRST.hex()}, subtask 1); a finished operator (operator {SECOND.hex()}); "
        f"coordinator state (operator {THIRD.hex()}); channel state (operator {THIRD.hex()}, subtask 0, subtask 2). "
        "Write version 3 or later"
    )


@pytest.mark.parametrize("version", [1, 7])
def test_other_versions_are_refused(version: int) -> None:
    with pytest.raises(m.UnsupportedMetadataVersionError) as refused:
        m.convert(m.CheckpointMetadata(1), version)
    assert refused.value.version == version


def test_names_and_uids_of_operators_are_of_version_5() -> None:
    named = m.OperatorState(bytes(16), 1, 1, name="counts", uid="c")
    finished = m.FullyFinishedOperatorState(bytes(16), 1, 1, name="counts")
    metadata = m.convert(m.CheckpointMetadata(1, operator_states=(named, finished)), 5)
    assert m.loads(m.dumps(metadata, 5)) == metadata
    for version in (3, 4):
        converted = m.convert(metadata, version)
        assert [(operator.name, operator.uid) for operator in converted.operator_states] == [(None, None)] * 2
        assert m.loads(m.dumps(metadata, version)) == converted
