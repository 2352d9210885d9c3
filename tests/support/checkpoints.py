"""What a checkpoint location holds, read without Spark and without the code under test where that is possible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.provider import ProviderUnderTest


def numbers(folder: Path) -> list[int]:
    """The numbers that name files in one of Spark's logs, ascending."""
    if not folder.is_dir():
        return []
    return sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit())


def committed_batches(location: Path) -> list[int]:
    """The batches that Spark has committed."""
    return numbers(location / "commits")


def log_records(location: Path) -> list[dict[str, Any]]:
    """The records of the completed-checkpoint log, by id."""
    files = sorted((location / "ckpt" / "completed").glob("*.json"), key=lambda file: int(file.stem))
    return [json.loads(file.read_text()) | {"id": int(file.stem)} for file in files]


def completed_checkpoints(location: Path) -> list[int]:
    """Ids of the retained completed checkpoints, ascending."""
    return [record["id"] for record in log_records(location) if record["kind"] == "checkpoint"]


def metadata_files(location: Path) -> list[Path]:
    """`_metadata` of every retained checkpoint, by id."""
    return [location / "ckpt" / f"chk-{number}" / "_metadata" for number in completed_checkpoints(location)]


class CheckpointJudge:
    """Judges checkpoint locations, and remembers every `_metadata` for the one run of real Flink at the end."""

    def __init__(self, provider: ProviderUnderTest) -> None:
        self.provider = provider
        self.seen: list[Path] = []
        self.locations: list[Path] = []

    def check(self, location: Path, *, all_retained: bool = True) -> None:
        """The invariants hold, and every committed batch has its completed checkpoint.

        With `all_retained` false only the last committed batch must have one.
        """
        committed = committed_batches(location)
        assert committed, f"no batch was committed in {location}"
        if not self.provider.is_ours:
            return
        from tests.support.invariants import check_location

        check_location(location)
        batches = self.batches(location)
        if all_retained:
            assert batches == committed, f"committed {committed}, but completed checkpoints of {batches}"
        else:
            assert committed[-1] in batches, f"batch {committed[-1]} has no checkpoint among {batches}"
        self.locations.append(location)
        self.seen += metadata_files(location)

    def batches(self, location: Path) -> list[int]:
        """The batch of each retained completed checkpoint, in the order of their ids."""
        return [record["batch_id"] for record in log_records(location) if record["kind"] == "checkpoint"]
