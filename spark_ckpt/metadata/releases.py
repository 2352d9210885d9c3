"""Flink releases that can read a file.

A reader must support the version of the file, the codes of its state handles (which do not depend on the version), and
finished operators and subtasks, if the file has any. The tables list the release line that introduced each. Sources:
`MetadataV2Serializer` to `MetadataV6Serializer`, the constants of `MetadataV2V3SerializerBase`, and
`FullyFinishedOperatorState`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from spark_ckpt.metadata.codes import code_of
from spark_ckpt.metadata.model import CheckpointMetadata, FinishedOperatorSubtaskState, FullyFinishedOperatorState
from spark_ckpt.metadata.traversal import parts_of


class FlinkRelease(NamedTuple):
    """Release line of Flink, such as 1.15."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, slots=True)
class RequiredRelease:
    """Oldest release line of Flink that can read a file; all later ones can, too.

    Args:
        release: release line.
        reasons: human-readable features that older ones lack, such as "code 12 (KeyGroupsStateHandle)".
    """

    release: FlinkRelease
    reasons: tuple[str, ...]


_SINCE_VERSION = {
    2: FlinkRelease(1, 3),
    3: FlinkRelease(1, 11),
    4: FlinkRelease(1, 16),
    5: FlinkRelease(2, 0),
    6: FlinkRelease(2, 1),
}

# Codes 1 to 5 are as old as version 2.
_SINCE_CODE = {
    6: FlinkRelease(1, 11),
    7: FlinkRelease(1, 13),
    **dict.fromkeys((8, 9, 10), FlinkRelease(1, 14)),
    **dict.fromkeys((11, 12), FlinkRelease(1, 15)),
    **dict.fromkeys((13, 14), FlinkRelease(1, 16)),
    **dict.fromkeys((15, 16, 17), FlinkRelease(1, 20)),
}

_SINCE_FINISHED = FlinkRelease(1, 14)


def required_release(metadata: CheckpointMetadata) -> RequiredRelease:
    """Oldest release line of Flink that can read the checkpoint as a file of `metadata.version`."""
    needs = set(_needs(metadata))
    newest = max(release for release, _ in needs)
    return RequiredRelease(newest, tuple(sorted(reason for release, reason in needs if release == newest)))


def _needs(metadata: CheckpointMetadata) -> Iterator[tuple[FlinkRelease, str]]:
    yield _SINCE_VERSION[metadata.version], f"version {metadata.version}"
    for part in parts_of(metadata):
        if isinstance(part, FullyFinishedOperatorState):
            yield _SINCE_FINISHED, "finished operators"
        elif isinstance(part, FinishedOperatorSubtaskState):
            yield _SINCE_FINISHED, "finished subtasks"
        elif (code := code_of(part)) in _SINCE_CODE:
            yield _SINCE_CODE[code], f"code {code} ({type(part).__name__})"
