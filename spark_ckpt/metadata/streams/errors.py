"""Errors of state streams, and of finding them."""

from __future__ import annotations

from spark_ckpt.errors import FormatError, SparkCkptError


class StateStreamFormatError(FormatError):
    """A state stream whose bytes are not what Flink writes.

    Attributes:
        path: the file, or the name of the inline state.
        offset: byte position of the offending value, counted from the start of the stream.
        field: dotted path of the offending value, such as `states[2].serializers[0].class_name`.
        reason: what is wrong at that place.
    """


class UnknownSerializerError(StateStreamFormatError):
    """A serializer snapshot of a class that is not known here. It has no length, so nothing behind it can be read.

    Attributes:
        class_name: the snapshot class, as the stream names it.
    """

    def __init__(self, path: str, offset: int, field: str, class_name: str) -> None:
        super().__init__(
            path, offset, field, f"the serializer snapshot {class_name} is not known, so what follows cannot be read"
        )
        self.class_name = class_name


class StateFileSizeError(SparkCkptError, ValueError):
    """A state file that has another size than its handle says.

    Attributes:
        path: the file.
        expected: bytes that the handle says.
        found: bytes that are there.
    """

    def __init__(self, path: str, expected: int, found: int) -> None:
        super().__init__(
            f"{path}: {found} bytes, {expected} were written. The file was cut off or exchanged: restore it from a copy"
        )
        self.path = path
        self.expected = expected
        self.found = found


class StateFileOutsideError(SparkCkptError, ValueError):
    """A path in `_metadata` that leads out of the checkpoint's own storage.

    Attributes:
        path: the path.
        roots: the directories that files may lie in.
    """

    def __init__(self, path: str, roots: tuple[str, ...]) -> None:
        super().__init__(
            f"{path} lies outside of {' and '.join(roots)}, and is not opened. If the checkpoint was moved, say from "
            "where to where (--map OLD=NEW); if you trust what wrote this _metadata, allow files anywhere "
            "(--allow-outside)"
        )
        self.path = path
        self.roots = roots
