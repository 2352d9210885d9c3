"""A command that is killed before each of its changes in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import FaultyStorage

_CHANGES = ("write", "create", "delete", "make durable", "remove empty")


class KilledError(BaseException):
    """The end of the process: no handler of errors runs."""


def kills(
    run: Callable[[FaultyStorage], object], storage: Callable[[], LocalStorage]
) -> Iterator[tuple[int, FaultyStorage]]:
    """Runs a command on a new location again and again, and kills it before its first change, its second, and so on.

    Args:
        run: runs the command.
        storage: makes a new location.

    Yields:
        Number of the change, and the location after the kill; the last run is not killed, and yields nothing.
    """
    number = 0
    while True:
        faulty, changes = FaultyStorage(storage()), 0

        def kill(operation: str, name: str, at: int = number) -> None:
            nonlocal changes
            if operation in _CHANGES:
                if changes == at:
                    raise KilledError
                changes += 1

        faulty.before = kill
        try:
            run(faulty)
        except KilledError:
            faulty.before = lambda operation, name: None
            yield number, faulty
            number += 1
            continue
        assert number > 0, "the command has changed nothing"
        return
