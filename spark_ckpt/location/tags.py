"""Tags: names of checkpoints, which stay readable as long as they have one.

A tag is a file `ckpt/tags/<name>.<id>.json` with the record of checkpoint `<id>`. The owner of the location deletes the
record of a checkpoint first, then lists the tags, and deletes only files that no tagged checkpoint needs. A tag is
created first, and then the record is looked for. So one of the two sees the other.
"""

from __future__ import annotations

import logging
import re
from typing import NamedTuple

from spark_ckpt.checkpoint.layout import CKPT, TAGS, in_location
from spark_ckpt.completed import CheckpointRecord, decode_record, encode_record
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.location.errors import TagExistsError, TagNameError, TagNotFoundError
from spark_ckpt.storage import Storage, create_or_find

_log = logging.getLogger(__name__)

_DIRECTORY = f"{CKPT}/{TAGS}"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")
_FILE = re.compile(rf"({_NAME.pattern})\.([0-9]{{1,19}})\.json")
_WAY_OUT = "Delete the tag, or restore the file from a backup"


class Tag(NamedTuple):
    """A tag.

    Args:
        name: its name.
        checkpoint_id: id of its checkpoint.
    """

    name: str
    checkpoint_id: int

    @property
    def file(self) -> str:
        """Its file, relative to the location."""
        return f"{_DIRECTORY}/{self.name}.{self.checkpoint_id}.json"


class Tags:
    """The tags of a location.

    Args:
        storage: storage of the checkpoint location.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def list(self) -> list[Tag]:
        """The tags in the order of checkpoints. Other files in their directory are ignored.

        Raises:
            StorageError: they cannot be listed.
        """
        matches = (_FILE.fullmatch(file.name) for file in self._storage.list(_DIRECTORY))
        tags = (Tag(match[1], int(match[2])) for match in matches if match)
        return sorted(tags, key=lambda tag: (tag.checkpoint_id, tag.name))

    def find(self, name: str) -> Tag:
        """The tag with a name.

        Raises:
            TagNameError: no tag can have this name.
            TagNotFoundError: no tag has it.
            StorageError: the tags cannot be listed.
        """
        check_tag_name(name)
        tags = self.list()
        for tag in tags:
            if tag.name == name:
                return tag
        raise TagNotFoundError(self._storage.location, name, [tag.name for tag in tags])

    def read(self, tag: Tag) -> CheckpointRecord | None:
        """The record of the checkpoint with a tag; None if the tag is gone.

        Raises:
            DamagedRecordError: the tag is damaged.
            StorageError: the tag cannot be read.
        """
        try:
            data = self._storage.read(tag.file)
        except StateFileNotFoundError:
            return None
        path = self._storage.describe(tag.file)
        record = decode_record(data, path, tag.checkpoint_id, way_out=_WAY_OUT)
        if not isinstance(record, CheckpointRecord):
            raise DamagedRecordError(path, "it is a claim, not a checkpoint", _WAY_OUT)
        return record

    def records(self) -> dict[int, CheckpointRecord]:
        """The records of all tagged checkpoints, ascending by id. A checkpoint without `_metadata` is left out: a tag
        without a checkpoint remains if the command that created it fails.

        Raises:
            DamagedRecordError: a tag is damaged.
            StorageError: the tags cannot be read.
        """
        found: dict[int, CheckpointRecord] = {}
        for tag in self.list():
            if tag.checkpoint_id in found or (record := self.read(tag)) is None:
                continue
            if self._storage.exists(in_location(record.metadata.path)):
                found[record.id] = record
            else:
                _log.warning("%s: tag %s is of a checkpoint that is gone", self._storage.location, tag.name)
        return found

    def create(self, name: str, record: CheckpointRecord) -> Tag:
        """Gives a checkpoint a tag. Whether the checkpoint is still there is for the caller to check afterwards.

        Raises:
            TagNameError: no tag can have this name.
            TagExistsError: a checkpoint has this tag already.
            StorageError: the tag cannot be created.
        """
        check_tag_name(name)
        tag = Tag(name, record.id)
        data = encode_record(record)
        self._check_free(name)
        if not create_or_find(self._storage, tag.file, data):
            raise TagExistsError(self._storage.location, name, record.id)
        try:
            self._check_free(name, tag)
        except TagExistsError:
            self.delete(tag)
            raise
        return tag

    def delete(self, tag: Tag) -> None:
        """Deletes a tag. Deleting a missing one is no error.

        Raises:
            StorageError: it cannot be deleted.
        """
        self._storage.delete(tag.file)
        self._storage.sync_deletions(_DIRECTORY)  # a power loss must not bring back a tag without its files

    def _check_free(self, name: str, own: Tag | None = None) -> None:
        for tag in self.list():
            if tag.name == name and tag != own:
                raise TagExistsError(self._storage.location, name, tag.checkpoint_id)


def check_tag_name(name: str) -> None:
    """Checks a name.

    Raises:
        TagNameError: no tag can have it.
    """
    if not _NAME.fullmatch(name):
        raise TagNameError(name)
