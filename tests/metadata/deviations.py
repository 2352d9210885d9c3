"""Intended deviations of our verdict on a file from that of Flink's loader, with reasons."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from spark_ckpt.metadata import (
    CheckpointMetadata,
    FileStateHandle,
    MetadataFormatError,
    RelativeFileStateHandle,
    loads,
)
from spark_ckpt.metadata.traversal import parts_of
from tests.support.flink_check import Verdict, check, different_content


class Outcome(NamedTuple):
    """Our verdict and Flink's verdict on a file."""

    content: bytes
    ours: CheckpointMetadata | MetadataFormatError
    flink: Verdict

    @classmethod
    def of(cls, content: bytes, flink: Verdict) -> Outcome:
        try:
            return cls(content, loads(content), flink)
        except MetadataFormatError as refused:
            return cls(content, refused, flink)

    def differences(self) -> list[str]:
        """Differences between our verdict and Flink's, as readable text."""
        if isinstance(self.ours, MetadataFormatError):
            return [f"we refuse what Flink loads: {self.ours}"] if self.flink.loads else []
        if not self.flink.loads:
            return [f"we load what Flink refuses: {self.flink.exception}: {self.flink.message}"]
        return different_content(self.ours, self.flink)


def outcomes(directory: Path, contents: Iterable[bytes]) -> list[Outcome]:
    """Verdicts on each content, which is written to a file below the directory. The directory must be empty."""
    paths = {}
    for number, content in enumerate(contents):
        path = directory / f"{number}" / "_metadata"
        path.parent.mkdir()
        path.write_bytes(content)
        paths[path] = content
    verdicts = check(paths)
    return [Outcome.of(content, verdicts[path]) for path, content in paths.items()]


class Deviation(NamedTuple):
    """Intended difference."""

    reason: str
    explains: Callable[[Outcome], bool]


def _refused_for(outcome: Outcome, field: str = "", reason: str = "") -> bool:
    ours = outcome.ours
    return (
        isinstance(ours, MetadataFormatError)
        and ours.field.startswith(field)
        and re.search(reason, ours.reason) is not None
    )


def _has_odd_relative_path(outcome: Outcome) -> bool:
    return not isinstance(outcome.ours, MetadataFormatError) and any(
        isinstance(part, RelativeFileStateHandle) and re.match(r"[/\\]|[A-Za-z]:", part.relative_path)
        for part in parts_of(outcome.ours)
    )


def _has_zone_behind_a_user(outcome: Outcome) -> bool:
    return not isinstance(outcome.ours, MetadataFormatError) and any(
        isinstance(part, FileStateHandle) and re.search(r"//[^/]*@\[[^/\]]*%", part.file_path)
        for part in parts_of(outcome.ours)
    )


DEVIATIONS = {
    "memory": Deviation(
        "Flink sizes its hash maps by the parallelism in the file, so what it loads depends on its heap; ours does not",
        lambda outcome: outcome.flink.exception == "java.lang.OutOfMemoryError",
    ),
    "nesting": Deviation(
        "We take a bounded number of handles within one another, Flink as many as its stack has room for",
        lambda outcome: _refused_for(outcome, reason="nest deeper"),
    ),
    "properties": Deviation(
        "Java leaves much of a serialised object unread that it has no use for; we read what a release of Flink writes",
        lambda outcome: _refused_for(outcome, field="properties"),
    ),
    "cut path": Deviation(
        "Flink cuts a path at a ? or # in front of its first colon, and would open another file",
        lambda outcome: _refused_for(outcome, reason="^'[^']*[?#].*' is not a path scheme$"),
    ),
    "zone": Deviation(
        "Behind the name of a user Flink escapes the % of an IPv6 zone, and would open another file",
        lambda outcome: outcome.flink.loads and _has_zone_behind_a_user(outcome),
    ),
    "absolute relative path": Deviation(
        "Flink makes relative paths of absolute ones, and refuses some for what is left of them; no release writes any",
        lambda outcome: not outcome.flink.loads and _has_odd_relative_path(outcome),
    ),
}
"""Intended differences by name. All other differences are errors."""


def unexplained(outcome: Outcome) -> list[str]:
    """Differences not explained by a deviation."""
    differences = outcome.differences()
    return [] if any(deviation.explains(outcome) for deviation in DEVIATIONS.values()) else differences
