"""Contents of a checkpoint location, read without Spark and, where possible, without the code under test."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from spark_ckpt.checkpoint.batch import SPARK_OFFSETS
from spark_ckpt.checkpoint.compose import spark_batch_of
from spark_ckpt.metadata import load
from spark_ckpt.recovery.start_check import Start, check_start
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.storage import LocalStorage
from tests.support.invariants import assert_invariants
from tests.support.provider import ProviderUnderTest
from tests.support.waiting import eventually


def numbers(folder: Path) -> list[int]:
    """Numeric file names in one of Spark's logs, ascending."""
    if not folder.is_dir():
        return []
    return sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit())


def committed_batches(location: Path) -> list[int]:
    """Ids of the batches committed by Spark."""
    return numbers(location / "commits")


def log_records(location: Path) -> list[dict[str, Any]]:
    """Records of the completed-checkpoint log, by id. A running coordinator may delete some during the read."""
    records = []
    for file in sorted((location / "ckpt" / "completed").glob("*.json"), key=lambda file: int(file.stem)):
        with suppress(FileNotFoundError):
            records.append(json.loads(file.read_text()) | {"id": int(file.stem)})
    return records


def completed_checkpoints(location: Path) -> list[int]:
    """Ids of the retained completed checkpoints, ascending."""
    return [record["id"] for record in log_records(location) if record["kind"] == "checkpoint"]


def metadata_files(location: Path) -> list[Path]:
    """Path of each retained checkpoint's `_metadata`, by id."""
    records = [record for record in log_records(location) if record["kind"] == "checkpoint"]
    return [location / "ckpt" / record["metadata"]["path"] for record in records]


def _can_start(location: Path, record: dict[str, Any]) -> None:
    """Asserts that `verify` and `doctor` find no damage in Spark's files: no test breaks them on purpose before."""
    storage = LocalStorage(location)
    start = Start.next_of(SparkBatches.of(SparkLog(storage)))
    assert start is not None
    batch = spark_batch_of(load(str(location / "ckpt" / record["metadata"]["path"])))
    damages = list(check_start(storage, start, batch))
    assert not damages, f"a start of {location} would fail: {damages}"


class CheckpointJudge:
    """Judges checkpoint locations, and keeps a copy of every `_metadata` for a single run of real Flink at the end."""

    def __init__(self, provider: ProviderUnderTest, keep: Path) -> None:
        self.provider = provider
        self.seen: dict[Path, Path] = {}
        """Original path of each `_metadata`, by the path of its copy."""
        self._keep = keep

    def check(
        self, location: Path, *, all_retained: bool = True, orphans: bool = False, real_time: bool = False
    ) -> None:
        """Asserts that the invariants hold and that every committed batch has its completed checkpoint.

        With `all_retained` false, only the last committed batch needs one. With `orphans` true, unreferenced files are
        allowed. A batch stopped between its checkpoint and Spark's commit either has a second checkpoint, from the
        start that ran it again, or is the last batch and not committed.

        With `real_time` true, offsets are compared for the newest checkpoint of each committed batch only: in real-time
        mode a run that did not commit its batch may have completed it with other offsets.
        """
        committed = committed_batches(location)
        assert committed, f"no batch was committed in {location}"
        if not self.provider.is_ours:
            return
        self._check_invariants(location, orphans)
        records = [record for record in log_records(location) if record["kind"] == "checkpoint"]
        batches = [record["batch_id"] for record in records]
        assert batches == sorted(batches), f"batches out of order: {batches}"
        assert set(batches) - set(committed) <= {committed[-1] + 1}, f"committed {committed}, completed {batches}"
        if all_retained:
            assert set(committed) <= set(batches), f"committed {committed}, but completed checkpoints of {batches}"
        else:
            assert committed[-1] in batches, f"batch {committed[-1]} has no checkpoint among {batches}"
        for earlier, later in pairwise(records):
            if earlier["batch_id"] == later["batch_id"]:
                assert earlier["generation"] < later["generation"], f"batch {later['batch_id']} completed twice"
        newest = {record["batch_id"]: record for record in records if record["batch_id"] in committed}
        for record in newest.values() if real_time else records:
            self._check_offsets(location, record)
        _can_start(location, newest[committed[-1]])
        self._keep_metadata(location)

    def _check_offsets(self, location: Path, record: dict[str, Any]) -> None:
        """Asserts that `_metadata` carries Spark's own text of the offsets, from which a new run starts."""
        metadata = load(str(location / "ckpt" / record["metadata"]["path"]))
        written = (location / "offsets" / str(record["batch_id"])).read_bytes()
        assert [state.payload for state in metadata.master_states if state.name == SPARK_OFFSETS] == [written]

    def _check_invariants(self, location: Path, orphans: bool) -> None:
        """Checks all invariants; allows the cleaner, which deletes in the background, a moment to finish."""

        def hold() -> bool:
            with suppress(AssertionError):
                assert_invariants(location, orphans=orphans)
                return True
            return False

        with suppress(TimeoutError):
            eventually(hold)
            return
        assert_invariants(location, orphans=orphans)

    def _keep_metadata(self, location: Path) -> None:
        for file in metadata_files(location):
            copy = self._keep / f"{len(self.seen):05}-{file.parent.name}" / file.name
            copy.parent.mkdir(parents=True)
            shutil.copyfile(file, copy)
            self.seen[copy] = file
