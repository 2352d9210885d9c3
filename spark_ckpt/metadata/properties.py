"""Checkpoint properties: a serialised Java object at the end of a version 4 file.

Flink: `MetadataV4Serializer`, `CheckpointProperties`.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.java_objects import BOOLEAN, STRING, Constant, Instance, KnownClass, read_object

NULL_PROPERTIES = bytes.fromhex("aced000570")
"""Serialised null, for a file without properties. Flink loads it."""


@dataclass(frozen=True, slots=True)
class SnapshotType:
    """Kind of snapshot (`CheckpointType`, `SavepointType`). Names of enum constants are kept as text.

    Args:
        class_name: "CheckpointType" or "SavepointType".
        name: display name, such as "Checkpoint" or "Savepoint".
        sharing_files_strategy: strategy of a checkpoint, such as "FORWARD_BACKWARD".
        format_type: format of a savepoint, "CANONICAL" or "NATIVE".
        post_checkpoint_action: action after a savepoint, "NONE", "SUSPEND" or "TERMINATE".
    """

    class_name: str
    name: str | None
    sharing_files_strategy: str | None = None
    format_type: str | None = None
    post_checkpoint_action: str | None = None


@dataclass(frozen=True, slots=True)
class CheckpointProperties:
    """Properties that govern how Flink handles a checkpoint (`CheckpointProperties`)."""

    forced: bool
    checkpoint_type: SnapshotType | None
    discard_subsumed: bool
    discard_finished: bool
    discard_cancelled: bool
    discard_failed: bool
    discard_suspended: bool
    unclaimed: bool


_CHECKPOINT = "org.apache.flink.runtime.checkpoint."
_PROPERTIES = _CHECKPOINT + "CheckpointProperties"
_SNAPSHOT_TYPE = _CHECKPOINT + "SnapshotType"
_SHARING_FILES_STRATEGY = _CHECKPOINT + "SnapshotType$SharingFilesStrategy"
_POST_CHECKPOINT_ACTION = _CHECKPOINT + "SavepointType$PostCheckpointAction"
_FORMAT_TYPE = "org.apache.flink.core.execution.SavepointFormatType"

# These serial versions are the same in releases 1.16 to 1.20.
_CLASSES = {
    _PROPERTIES: KnownClass(
        2,
        {
            "checkpointType": _SNAPSHOT_TYPE,
            "discardCancelled": BOOLEAN,
            "discardFailed": BOOLEAN,
            "discardFinished": BOOLEAN,
            "discardSubsumed": BOOLEAN,
            "discardSuspended": BOOLEAN,
            "forced": BOOLEAN,
            "unclaimed": BOOLEAN,
        },
    ),
    _CHECKPOINT + "CheckpointType": KnownClass(
        -2963844630364414662,
        {"name": STRING, "sharingFilesStrategy": _SHARING_FILES_STRATEGY},
        interface=_SNAPSHOT_TYPE,
    ),
    _CHECKPOINT + "SavepointType": KnownClass(
        -6879297871714708296,
        {"name": STRING, "formatType": _FORMAT_TYPE, "postCheckpointAction": _POST_CHECKPOINT_ACTION},
        interface=_SNAPSHOT_TYPE,
    ),
    _SHARING_FILES_STRATEGY: KnownClass(is_enum=True, constants=("FORWARD_BACKWARD", "FORWARD", "NO_SHARING")),
    _POST_CHECKPOINT_ACTION: KnownClass(is_enum=True, constants=("NONE", "SUSPEND", "TERMINATE")),
    _FORMAT_TYPE: KnownClass(is_enum=True, constants=("CANONICAL", "NATIVE")),
}


def read(data: DataInput) -> bytes:
    """Read the properties at the position, and return their bytes. Leaves the position after them.

    Raises:
        MetadataFormatError: not a serialised object, or neither null nor an instance of `CheckpointProperties` as in
            Flink 1.16 to 1.20.
    """
    start = data.position
    _read(data)
    length = data.position - start
    data.position = start
    return data.raw(length, "properties")


def decode(properties: bytes) -> CheckpointProperties | None:
    """Properties from the bytes of `CheckpointMetadata.properties`; None for no bytes or a null object.

    Raises:
        MetadataFormatError: as in `read`.
    """
    return _read(DataInput(properties, "<properties>")) if properties else None


def _read(data: DataInput) -> CheckpointProperties | None:
    data.enter("properties")
    at = data.position
    content = read_object(data, _CLASSES)
    if content is not None and not (isinstance(content, Instance) and content.class_name == _PROPERTIES):
        data.fail("", "the properties are not a CheckpointProperties object", at)
    data.leave()
    return None if content is None else _checkpoint_properties(content)


def _checkpoint_properties(instance: Instance) -> CheckpointProperties:
    fields = instance.fields
    kind = fields.get("checkpointType")
    return CheckpointProperties(
        forced=fields.get("forced") is True,
        checkpoint_type=_snapshot_type(kind) if isinstance(kind, Instance) else None,
        discard_subsumed=fields.get("discardSubsumed") is True,
        discard_finished=fields.get("discardFinished") is True,
        discard_cancelled=fields.get("discardCancelled") is True,
        discard_failed=fields.get("discardFailed") is True,
        discard_suspended=fields.get("discardSuspended") is True,
        unclaimed=fields.get("unclaimed") is True,
    )


def _snapshot_type(instance: Instance) -> SnapshotType:
    name = instance.fields.get("name")

    def constant(field: str) -> str | None:
        value = instance.fields.get(field)
        return value.name if isinstance(value, Constant) else None

    return SnapshotType(
        class_name=instance.class_name.rpartition(".")[2],
        name=name if isinstance(name, str) else None,
        sharing_files_strategy=constant("sharingFilesStrategy"),
        format_type=constant("formatType"),
        post_checkpoint_action=constant("postCheckpointAction"),
    )
