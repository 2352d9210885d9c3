"""Spark jobs that run once: a test that repeats an import or export at every step waits for none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from spark_ckpt.format.keys import StoreKey
from spark_ckpt.migrate.state_jobs import (
    DescribedStore,
    ExportedPartition,
    ImportedPartition,
    SourceState,
    StateJobs,
)
from spark_ckpt.progress import Progress

_Result = TypeVar("_Result")


class RecordedJobs:
    """Jobs on one location, whose results and files are repeated (`StateJobs`).

    Args:
        jobs: the jobs to run once.
        folder: keeps their files.
    """

    def __init__(self, jobs: StateJobs, folder: Path) -> None:
        self._jobs = jobs
        self._folder = folder
        self._results: dict[str, object] = {}
        self.spark_version = jobs.spark_version

    def stores(self, source: SourceState) -> Sequence[DescribedStore]:
        return self._once("stores", lambda: self._jobs.stores(source))

    def import_state(
        self, source: SourceState, target: str, key_group_factors: Sequence[int], progress: Progress
    ) -> Mapping[StoreKey, Sequence[ImportedPartition]]:
        def job() -> Mapping[StoreKey, Sequence[ImportedPartition]]:
            return self._jobs.import_state(source, target, key_group_factors, progress)

        return self._once("import", job, Path(target.removeprefix("file:")) / "ckpt" / "shared")

    def export_state(
        self, source: SourceState, target: str, provider: str, checkpoint_format: int, progress: Progress
    ) -> Mapping[StoreKey, Sequence[ExportedPartition]]:
        def job() -> Mapping[StoreKey, Sequence[ExportedPartition]]:
            return self._jobs.export_state(source, target, provider, checkpoint_format, progress)

        return self._once("export", job, Path(target.removeprefix("file:")) / "state")

    def _once(self, name: str, job: Callable[[], _Result], files: Path | None = None) -> _Result:
        kept = self._folder / name
        if name not in self._results:
            self._results[name] = job()
            if files is not None:
                shutil.copytree(files, kept)
        elif files is not None:
            shutil.copytree(kept, files, dirs_exist_ok=True)
        return self._results[name]  # type: ignore[return-value]
