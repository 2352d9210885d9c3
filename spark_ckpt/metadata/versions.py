"""Contents that each version of the file can hold, and conversion between versions.

Versions differ only in the structure around the state handles; these are the same in all (`MetadataV2Serializer` to
`MetadataV6Serializer`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spark_ckpt.metadata.errors import Loss, MetadataLossError, UnsupportedMetadataVersionError
from spark_ckpt.metadata.model import CheckpointMetadata, OperatorState
from spark_ckpt.metadata.properties import NULL_PROPERTIES

SUPPORTED_VERSIONS = (2, 3, 4, 5, 6)
"""Supported versions."""


def convert(metadata: CheckpointMetadata, version: int) -> CheckpointMetadata:
    """Checkpoint as `loads(dumps(metadata, version))` returns it.

    Files have properties since version 4. For other versions, Flink assumes null. So a conversion to 2 or 3 drops the
    properties, and a conversion to 4 or later adds a null object if there are none. Before version 5 operators have no
    names and uids. Flink finds operators by their ids, so these are dropped as well.

    Args:
        metadata: checkpoint of any version.
        version: 2 to 6.

    Raises:
        UnsupportedMetadataVersionError: another version.
        MetadataLossError: the checkpoint has state that the version cannot hold.
    """
    check_version(metadata, version)
    properties = (metadata.properties or NULL_PROPERTIES) if version >= 4 else b""
    operators = metadata.operator_states if version >= 5 else tuple(map(_without_name, metadata.operator_states))
    return replace(metadata, version=version, properties=properties, operator_states=operators)


def _without_name(operator: OperatorState) -> OperatorState:
    return operator if operator.name is operator.uid is None else replace(operator, name=None, uid=None)


def check_version(metadata: CheckpointMetadata, version: int) -> None:
    """Check that a file of `version` can hold the checkpoint, apart from its properties.

    Raises:
        UnsupportedMetadataVersionError, MetadataLossError: as in `convert`.
    """
    if version not in SUPPORTED_VERSIONS:
        raise UnsupportedMetadataVersionError("<to be written>", version)
    # Version 4 only adds the properties to version 3, version 5 the names of operators, version 6
    # the types of channel state.
    if version == 2 and (losses := tuple(_not_in_version_2(metadata))):
        raise MetadataLossError(version, losses)


def _not_in_version_2(metadata: CheckpointMetadata) -> Iterator[Loss]:
    for number, operator in enumerate(metadata.operator_states):
        within = f"operator_states[{number}]"
        operator_id = operator.operator_id.hex()
        if operator.coordinator_state is not None:
            yield Loss(f"{within}.coordinator_state", "coordinator state", operator_id)
        if operator.is_fully_finished:
            yield Loss(f"{within}.subtask_states", "a finished operator", operator_id)
        yield from _of_subtasks(operator, within)


def _of_subtasks(operator: OperatorState, within: str) -> Iterator[Loss]:
    operator_id = operator.operator_id.hex()
    for position, (index, subtask) in enumerate(operator.subtask_states.items()):
        at = f"{within}.subtask_states[{position}]"
        if subtask.is_finished:
            yield Loss(f"{at}.index", "finished subtasks", operator_id, index)
        if subtask.input_channel_state:
            yield Loss(f"{at}.input_channel_state", "channel state", operator_id, index)
        if subtask.result_subpartition_state:
            yield Loss(f"{at}.result_subpartition_state", "channel state", operator_id, index)
