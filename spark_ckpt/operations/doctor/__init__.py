"""Examination of a checkpoint location for the on-call: what is wrong, and what to do next."""

from __future__ import annotations

from spark_ckpt.operations.doctor.examination import examine
from spark_ckpt.operations.doctor.findings import Finding, Report, Status, Verdict

__all__ = ["Finding", "Report", "Status", "Verdict", "examine"]
