"""Errors of state streams and their files."""

from __future__ import annotations

from spark_ckpt.errors import FormatError, SparkCkptError


class StateStreamFormatError(FormatError):
    """State stream that Flink cannot have written.

    Attributes:
        path: file, or name of the inline state.
        offset: byte position of the offending value, counted from the start of the stream.
        field: dotted path of the offending value, such as `states[2].serializers[0].class_name`.
        reason: description of the problem.
    """


class UnknownSerializerError(StateStreamFormatError):
    """Serializer snapshot of an unknown class. It has no length prefix, so the rest of the stream is unreadable.

    Attributes:
        class_name: snapshot class in the stream.
    """

    def __init__(self, path: str, offset: int, field: str, class_name: str) -> None:
        super().__init__(
            path, offset, field, f"unknown serializer snapshot {class_name}; the bytes after it are unreadable"
        )
        self.class_name = class_name


class UnsupportedStateKindError(StateStreamFormatError):
    """State of a kind that cannot be read, such as one of Flink's asynchronous state API.

    Attributes:
        state: name of the state.
    """

    def __init__(self, path: str, offset: int, field: str, state: str) -> None:
        reason = f"state {state!r} is of kind KEY_VALUE_V2, of the asynchronous state API: not supported"
        super().__init__(path, offset, field, reason)
        self.state = state


class StateFileSizeError(SparkCkptError, ValueError):
    """State file with another size than in its handle.

    Attributes:
        path: state file.
        expected: bytes according to the handle.
        found: bytes of the file.
    """

    def __init__(self, path: str, expected: int, found: int) -> None:
        super().__init__(
            f"{path}: {found} bytes instead of {expected}. The file was truncated or replaced: restore it from a copy"
        )
        self.path = path
        self.expected = expected
        self.found = found


class StateFileOutsideError(SparkCkptError, ValueError):
    """Path in `_metadata` outside the checkpoint's own storage.

    Attributes:
        path: rejected path.
        roots: allowed directories.
    """

    def __init__(self, path: str, roots: tuple[str, ...]) -> None:
        super().__init__(
            f"{path} is outside {' and '.join(roots)} and is not opened. If the checkpoint was moved, give its old and "
            "new prefix (--map OLD=NEW); if you trust the writer of this _metadata, allow files anywhere "
            "(--allow-outside)"
        )
        self.path = path
        self.roots = roots
