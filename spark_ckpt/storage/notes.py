"""Small JSON files with the number of their format."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from spark_ckpt.errors import CheckpointError
from spark_ckpt.storage.base import Storage

_Note = TypeVar("_Note")


def read_note(
    storage: Storage,
    name: str,
    note_format: int,
    what: str,
    parse: Callable[[dict[str, Any]], _Note],
    *,
    way_out: str = "",
) -> _Note:
    """Content of a note.

    Args:
        storage: storage of the checkpoint location.
        name: name of the file.
        note_format: the only format that this release reads.
        what: what the file should be, for people.
        parse: makes the content from the fields; a KeyError, TypeError, ValueError or AttributeError means damage.
        way_out: more text for the error.

    Raises:
        CheckpointError: the note is damaged, or of a later release.
        StateFileNotFoundError: there is none.
        StorageError: it cannot be read.
    """
    data = storage.read(name)
    try:
        fields = json.loads(data)
        if fields["format"] != note_format:
            raise ValueError(f"format {fields['format']}; {note_format} is supported")
        return parse(fields)
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise CheckpointError(f"{storage.describe(name)} is not {what}: {e}{way_out}") from e
