"""Tags on checkpoints: a tagged checkpoint stays readable when newer ones have subsumed it."""

from __future__ import annotations

from dataclasses import dataclass

from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.completed import CheckpointRecord, RecordFiles
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.location.errors import CheckpointNotFoundError, NoCheckpointError
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.listing import list_completed, recorded
from spark_ckpt.location.tags import Tag, Tags, check_tag_name
from spark_ckpt.operations.errors import TagRefusedError
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class TaggedCheckpoint:
    """A checkpoint and its tag.

    Args:
        location: the checkpoint location.
        tag: name of the tag.
        checkpoint: record of the checkpoint.
    """

    location: str
    tag: str
    checkpoint: CheckpointRecord


def tag_checkpoint(storage: Storage, checkpoint_id: int | None, name: str) -> TaggedCheckpoint:
    """Gives a checkpoint a tag. The query may be running.

    As long as it has a tag, its `_metadata` and state files stay, and it can be read. Spark purges its logs even so,
    and a query can go back only to batches that these have: to start from a checkpoint later, take a savepoint.

    Args:
        storage: storage of the checkpoint location.
        checkpoint_id: the checkpoint; by default the newest.
        name: name of the tag: a letter, then up to 99 letters, digits, dots, hyphens and underscores.

    Raises:
        TagNameError: no tag can have this name.
        TagExistsError: a checkpoint has this tag already.
        TagRefusedError: the location has no log of completed checkpoints.
        CheckpointNotFoundError: no such checkpoint, or a newer one has subsumed it meanwhile.
        NoCheckpointError: no batch has completed yet.
        DamagedCheckpointError: the checkpoint is damaged.
        StorageError: the storage does not answer. The tag may exist even so: remove it, or try another name.
    """
    check_tag_name(name)
    records = list_completed(storage).records
    if checkpoint_id is None:
        if not records:
            raise NoCheckpointError(storage.location)
        checkpoint_id = records[-1].id
    record = recorded(storage, records, checkpoint_id)
    if not record.attempt:
        raise TagRefusedError(
            storage.location,
            "it has no log of completed checkpoints (setting store=standalone), and only a log tells whether a "
            "checkpoint is still there. Take a savepoint instead",
        )
    tags = Tags(storage)
    if record not in records:
        # Another command may be creating that tag, and find the checkpoint gone.
        names = ", ".join(tag.name for tag in tags.list() if tag.checkpoint_id == record.id)
        raise TagRefusedError(
            storage.location, f"newer checkpoints have subsumed checkpoint {record.id}, which has the tag {names} only"
        )
    tag = tags.create(name, record)
    try:
        if not _is_logged(storage, record):
            raise CheckpointNotFoundError(
                storage.location, record.id, [each.id for each in list_completed(storage).records]
            )
        read_checkpoint(storage, record)  # its files are there
    except SparkCkptError:
        tags.delete(tag)
        raise
    return TaggedCheckpoint(storage.location, name, record)


def _is_logged(storage: Storage, record: CheckpointRecord) -> bool:
    """True if the log has a record. A listing may show one that is deleted."""
    return RecordFiles(storage).read(record.id) == record


def untag_checkpoint(storage: Storage, name: str) -> Tag:
    """Removes a tag. If nothing else needs the files of the checkpoint, the query deletes them at one of its next
    batches, and `spark-ckpt gc` otherwise.

    Args:
        storage: storage of the checkpoint location.
        name: name of the tag.

    Raises:
        TagNameError, TagNotFoundError: no checkpoint has this tag.
        StorageError: the tag cannot be deleted.
    """
    tags = Tags(storage)
    tag = tags.find(name)
    tags.delete(tag)
    return tag


def with_tags(location: CheckpointLocation) -> tuple[list[CheckpointRecord], dict[int, list[str]]]:
    """Completed checkpoints together with those that only tags retain, ascending by id, and the tags by checkpoint. A
    savepoint has no tags.

    Raises:
        DamagedRecordError: a tag is damaged.
        StorageError: the tags cannot be read.
        SparkCkptError: as in `CheckpointLocation.checkpoints`.
    """
    records = location.checkpoints()
    if location.is_savepoint:
        return records, {}
    by_id = {record.id: record for record in records}
    tags, names = Tags(location.storage), dict[int, list[str]]()
    for tag in tags.list():
        if tag.checkpoint_id not in by_id:
            if (record := tags.read(tag)) is None:
                continue
            by_id[record.id] = record
        names.setdefault(tag.checkpoint_id, []).append(tag.name)
    return [record for _, record in sorted(by_id.items())], names
