"""Errors of the side process."""

from __future__ import annotations

from spark_ckpt.errors import CheckpointError


class JobNotOpenError(CheckpointError):
    """Message for a job that is not yet open or already closed."""

    def __init__(self, job: str) -> None:
        self.job = job
        super().__init__(f"job {job} is not open: it has received no trigger, or its query has ended")
