"""Disks that POSIX allows after a power loss.

Synced data is there. Of the rest, each directory entry may have any of its values since the last sync of its directory,
independent of the others; each file may have any content since its last sync, a part of one, or none. Journalling file
systems allow fewer disks, so results here hold for them as well.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tests.power.recorder import Content, Entry, Inode, Made, Mark, Operation, Recorder

Slot: TypeAlias = tuple[Inode, str]


@dataclass
class Disk:
    """Possible states of a disk after some operations.

    Args:
        names: possible targets by directory and name, the durable one first, the newest last.
        contents: possible bytes by file, the durable ones first, the newest last.
        promised: the newest value of each mark.
        removals_last: whether a removed name stays removed, as with a journal that keeps the order of removals.
    """

    names: dict[Slot, list[Inode | None]] = field(default_factory=dict)
    contents: dict[Inode, list[bytes]] = field(default_factory=dict)
    directories: set[Inode] = field(default_factory=lambda: {Recorder.ROOT})
    promised: dict[str, int] = field(default_factory=dict)
    removals_last: bool = False

    def apply(self, operation: Operation) -> None:
        """Adds the effect of one more operation."""
        if isinstance(operation, Entry):
            values = self.names.setdefault((operation.directory, operation.name), [None])
            values.append(operation.target)
            if operation.target is None and self.removals_last:
                del values[:-1]
        elif isinstance(operation, Made):
            self.directories.add(operation.directory)
        elif isinstance(operation, Content):
            self.contents.setdefault(operation.file, [b""]).append(operation.data)
        elif isinstance(operation, Mark):
            self.promised[operation.label] = operation.value
        elif operation.inode in self.directories:
            for slot, values in self.names.items():
                if slot[0] == operation.inode:
                    del values[:-1]
        elif operation.inode in self.contents:
            del self.contents[operation.inode][:-1]

    def undecided(self) -> list[Slot | Inode]:
        """Names and files whose state after a power loss is uncertain."""
        names = [slot for slot, values in self.names.items() if len(values) > 1]
        return [*names, *(file for file, values in self.contents.items() if len(values) > 1)]


@dataclass(frozen=True)
class Tree:
    """A disk found after a power loss.

    Args:
        files: content by path.
        directories: paths of all directories.
    """

    files: dict[str, bytes]
    directories: frozenset[str]

    def write(self, root: Path) -> None:
        """Writes the disk's content below a directory."""
        for directory in sorted(self.directories):
            (root / directory).mkdir(parents=True, exist_ok=True)
        for path, data in self.files.items():
            (root / path).write_bytes(data)


def trees(disk: Disk, rng: random.Random, samples: int) -> Iterator[tuple[str, Tree]]:
    """Distinct disks possible after a power loss, each with a description of its losses.

    Nothing lost, everything lost, each undecided item lost alone, each kept alone, and random combinations.

    Args:
        disk: the possible states.
        rng: draws the random combinations.
        samples: number of random combinations.
    """
    undecided = disk.undecided()
    lost: list[tuple[str, set[Slot | Inode]]] = [("nothing", set()), ("all", set(undecided))]
    lost += [(f"only {_name(thing)}", {thing}) for thing in undecided]
    lost += [(f"all but {_name(thing)}", set(undecided) - {thing}) for thing in undecided]
    lost += [("some", {thing for thing in undecided if rng.random() < 0.5}) for _ in range(samples)]
    seen: set[frozenset[tuple[str, bytes]]] = set()
    for label, things in lost:
        tree = _tree(disk, things, rng)
        key = frozenset(tree.files.items()) | {(directory, b"/") for directory in tree.directories}
        if key not in seen:
            seen.add(key)
            yield f"{label} lost", tree


def prefixes(operations: Sequence[Operation], removals_last: bool = False) -> Iterator[tuple[int, Disk]]:
    """The disk after each number of operations, as a single object that changes from one step to the next."""
    disk = Disk(removals_last=removals_last)
    yield 0, disk
    for number, operation in enumerate(operations, 1):
        disk.apply(operation)
        yield number, disk


def _name(thing: Slot | Inode) -> str:
    return f"file {thing}" if isinstance(thing, int) else thing[1]


def _tree(disk: Disk, lost: set[Slot | Inode], rng: random.Random) -> Tree:
    below: dict[Inode, list[tuple[str, Inode]]] = defaultdict(list)
    for slot, values in disk.names.items():
        target = values[-1] if slot not in lost else values[rng.randrange(len(values) - 1)] if len(values) > 1 else None
        if target is not None:
            below[slot[0]].append((slot[1], target))
    files: dict[str, bytes] = {}
    directories: set[str] = set()

    def walk(directory: Inode, path: str) -> None:
        for name, target in below[directory]:
            if target in disk.directories:
                directories.add(f"{path}{name}")
                walk(target, f"{path}{name}/")
            else:
                files[f"{path}{name}"] = _content(disk.contents.get(target, [b""]), target in lost, rng)

    walk(Recorder.ROOT, "")
    return Tree(files, frozenset(directories))


def _content(values: Sequence[bytes], is_lost: bool, rng: random.Random) -> bytes:
    if not is_lost:
        return values[-1]
    newest = values[-1]
    return rng.choice((values[0], values[0], newest[: len(newest) // 2], bytes(len(newest))))
