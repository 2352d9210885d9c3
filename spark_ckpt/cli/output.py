"""Where commands put their results: as text for people, or as JSON for programs."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import click

from spark_ckpt.cli.collecting import describe_collection
from spark_ckpt.cli.copies import describe_copy
from spark_ckpt.cli.describe import describe, describe_error, describe_record
from spark_ckpt.cli.going_back import describe_rollback
from spark_ckpt.cli.history import describe_stats
from spark_ckpt.cli.inspection import Inspection
from spark_ckpt.cli.rescaled import describe_rescaling
from spark_ckpt.cli.rewriting import Rewriting
from spark_ckpt.cli.rewriting_json import describe_conversion, describe_relocation
from spark_ckpt.cli.state_json import describe_diff, describe_export, describe_rows, describe_state
from spark_ckpt.cli.state_rows import Exported, ShownDiff, ShownRows
from spark_ckpt.cli.stream_json import describe_stream
from spark_ckpt.cli.stream_report import StreamReport
from spark_ckpt.cli.verification import describe_verification
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.coordinator.collection import Collection
from spark_ckpt.coordinator.statistics import CheckpointStats, SubtaskStateStats
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.metadata import Relocation
from spark_ckpt.operations.copying import CheckpointCopy
from spark_ckpt.operations.rescaling import Rescaling
from spark_ckpt.operations.rollback import Rollback
from spark_ckpt.operations.verifying import Verification
from spark_ckpt.state.catalog import StateCatalog

FORMAT = 1
"""Shape of the JSON that this release writes, as docs/json.md describes it."""

_NUMBERS = re.compile(r"\[\n\s+(-?[0-9]+(?:,\n\s+-?[0-9]+)*)\n\s+\]")


class Output(ABC):
    """One method for each kind of result. Results go to standard output, errors to standard error."""

    @abstractmethod
    def checkpoints(self, location: str, checkpoints: Sequence[CheckpointRecord]) -> None:
        """The completed checkpoints of a location, ascending by id."""

    @abstractmethod
    def inspection(self, inspection: Inspection, streams: Sequence[StreamReport] | None = None) -> None:
        """Everything in one checkpoint's metadata, and what was found in its streams if they were opened."""

    @abstractmethod
    def conversion(self, rewriting: Rewriting) -> None:
        """Metadata of another version."""

    @abstractmethod
    def relocation(self, rewriting: Rewriting, relocation: Relocation) -> None:
        """Metadata for state files in another place."""

    @abstractmethod
    def collection(self, collection: Collection) -> None:
        """Orphans that were found, and deleted or not."""

    @abstractmethod
    def verification(self, verification: Verification) -> None:
        """What is damaged, and what can still be restored."""

    @abstractmethod
    def rollback(self, rollback: Rollback) -> None:
        """The checkpoint that a query has gone back to, and what was moved aside."""

    @abstractmethod
    def savepoint(self, copy: CheckpointCopy) -> None:
        """A savepoint."""

    @abstractmethod
    def restored(self, copy: CheckpointCopy) -> None:
        """A new checkpoint location."""

    @abstractmethod
    def rescaling(self, rescaling: Rescaling) -> None:
        """Another number of partitions."""

    @abstractmethod
    def history(self, location: str, entries: Sequence[CheckpointStats]) -> None:
        """Statistics of the last checkpoints of a location, oldest first."""

    @abstractmethod
    def history_entry(
        self, location: str, stats: CheckpointStats, by_subtask: Sequence[SubtaskStateStats] | None
    ) -> None:
        """Statistics of one checkpoint, and of its subtasks if they were asked for."""

    @abstractmethod
    def state(self, catalog: StateCatalog) -> None:
        """The stores of a checkpoint and the types of their rows."""

    @abstractmethod
    def rows(self, shown: ShownRows) -> None:
        """Rows of state."""

    @abstractmethod
    def export(self, exported: Exported) -> None:
        """Rows of state that were written to a place."""

    @abstractmethod
    def difference(self, shown: ShownDiff) -> None:
        """What changed in the state between two checkpoints."""

    @abstractmethod
    def error(self, error: SparkCkptError) -> None:
        """Why a command failed."""


class JsonOutput(Output):
    """One JSON object for each result; `format` comes first in each."""

    def checkpoints(self, location: str, checkpoints: Sequence[CheckpointRecord]) -> None:
        """`{"location", "checkpoints": [each record]}`."""
        self._write({"location": location, "checkpoints": [describe_record(record) for record in checkpoints]})

    def inspection(self, inspection: Inspection, streams: Sequence[StreamReport] | None = None) -> None:
        """The object that `spark_ckpt.cli.describe` describes, and `streams` if they were opened."""
        described = describe(inspection)
        if streams is not None:
            described["streams"] = [describe_stream(report) for report in streams]
        self._write(described)

    def conversion(self, rewriting: Rewriting) -> None:
        """The object that `spark_ckpt.cli.rewriting_json` describes."""
        self._write(describe_conversion(rewriting))

    def relocation(self, rewriting: Rewriting, relocation: Relocation) -> None:
        """The object that `spark_ckpt.cli.rewriting_json` describes."""
        self._write(describe_relocation(rewriting, relocation))

    def collection(self, collection: Collection) -> None:
        """The object that `spark_ckpt.cli.collecting` describes."""
        self._write(describe_collection(collection))

    def verification(self, verification: Verification) -> None:
        """The object that `spark_ckpt.cli.verification` describes."""
        self._write(describe_verification(verification))

    def rollback(self, rollback: Rollback) -> None:
        """The object that `spark_ckpt.cli.going_back` describes."""
        self._write(describe_rollback(rollback))

    def savepoint(self, copy: CheckpointCopy) -> None:
        """The object that `spark_ckpt.cli.copies` describes."""
        self._write(describe_copy(copy))

    def restored(self, copy: CheckpointCopy) -> None:
        """The object that `spark_ckpt.cli.copies` describes."""
        self._write(describe_copy(copy))

    def rescaling(self, rescaling: Rescaling) -> None:
        """The object that `spark_ckpt.cli.rescaled` describes."""
        self._write(describe_rescaling(rescaling))

    def history(self, location: str, entries: Sequence[CheckpointStats]) -> None:
        """`{"location", "history": [what `spark_ckpt.cli.history` describes, for each]}`."""
        self._write({"location": location, "history": [describe_stats(stats) for stats in entries]})

    def history_entry(
        self, location: str, stats: CheckpointStats, by_subtask: Sequence[SubtaskStateStats] | None
    ) -> None:
        """As `history`, with the one entry."""
        self._write({"location": location, "history": [describe_stats(stats, by_subtask)]})

    def state(self, catalog: StateCatalog) -> None:
        """The object that `spark_ckpt.cli.state_json` describes."""
        self._write(describe_state(catalog))

    def rows(self, shown: ShownRows) -> None:
        """The object that `spark_ckpt.cli.state_json` describes."""
        self._write(describe_rows(shown))

    def export(self, exported: Exported) -> None:
        """The object that `spark_ckpt.cli.state_json` describes."""
        self._write(describe_export(exported))

    def difference(self, shown: ShownDiff) -> None:
        """The object that `spark_ckpt.cli.state_json` describes."""
        self._write(describe_diff(shown))

    def error(self, error: SparkCkptError) -> None:
        """`{"error": name of the class, "message", and the attributes of the error}`."""
        self._write(describe_error(error), to_stderr=True)

    def _write(self, value: dict[str, Any], *, to_stderr: bool = False) -> None:
        text = json.dumps({"format": FORMAT, **value}, indent=2, default=_fields_or_text)
        # A line for each offset of each key group would be most of the output. No string has a line break in it here.
        click.echo(_NUMBERS.sub(lambda numbers: f"[{' '.join(numbers[1].split())}]", text), err=to_stderr)


def _fields_or_text(value: object) -> dict[str, Any] | str:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)
