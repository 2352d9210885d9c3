"""Requests in the JVM's wire format, built from the coordinator's message classes."""

from __future__ import annotations

from typing import Any

from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_flags import FLAGS
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.messages import Ack, Decline, EndOffsets, Task, Trigger, Unreadable

Request = tuple[str, dict[str, Any], bytes, bytes]

START: Request = ("start", {"protocol": 4, "spark_version": "4.2.0", "pid": 4242}, b"", b"")


def trigger(message: Trigger) -> Request:
    header = {
        "job": message.job,
        "location": message.location,
        "query_id": message.query_id,
        "query_name": message.query_name,
        "batch_id": message.batch_id,
        "version": message.version,
        "checkpoint_format": message.checkpoint_format,
        "operators": [
            {
                "operator_id": operator.operator_id,
                "name": operator.name,
                "stores": list(operator.stores),
                "parallelism": operator.parallelism,
                "state_format_version": operator.state_format_version,
            }
            for operator in message.operators
        ],
        "sources": [{"name": source.name, "offset": source.offset} for source in message.sources],
        "settings": dict(message.settings),
        "hadoop": {},
        "spark_version": message.spark_version,
        "offset_log": message.offset_log,
    }
    if message.real_time_ms is not None:
        header["real_time_ms"] = message.real_time_ms
    if message.report_details:
        header["report_details"] = True
    return "trigger", header, b"", b""


def ack(message: Ack) -> Request:
    segments = [message.delta, *(sent.segment for sent in (message.base, message.merged) if sent)]
    header = {
        "job": message.job,
        "batch_id": message.batch_id,
        **message.subtask._asdict(),
        "version": message.version,
        "ckpt_id": message.state_id,
        "base_ckpt_id": message.base_state_id,
        "task": _task(message.task),
        "rows": message.rows,
        "rows_updated": 1,
        "rows_removed": 0,
        "delta": _describe(message.delta),
        "base": (
            {**_describe(message.base.segment), "version": message.base.version, "ckpt_id": message.base.state_id}
            if message.base
            else None
        ),
        "timings_us": {"snapshot": 12, "write": 0},
    }
    if message.in_progress:
        header["in_progress"] = [list(one) for one in message.in_progress]
    if message.merged is not None:
        versions = {"first_version": message.merged.first_version, "version": message.merged.version}
        header["merged"] = {**_describe(message.merged.segment), **versions, "inputs": message.merged.inputs}
    if message.base_failure is not None:
        header["base_failure"] = message.base_failure
    return "ack", header, b"".join(map(_index, segments)), b"".join(bytes(s.data) for s in segments)


def end_offsets(message: EndOffsets) -> Request:
    header = {
        "job": message.job,
        "batch_id": message.batch_id,
        "version": message.version,
        "offset_log": message.offset_log,
    }
    return "end_offsets", header, b"", b""


def decline(message: Decline) -> Request:
    header = {
        "job": message.job,
        "batch_id": message.batch_id,
        **message.subtask._asdict(),
        "version": message.version,
        "task": _task(message.task),
        "reason": message.reason,
    }
    return "decline", header, b"", b""


def unreadable(message: Unreadable) -> Request:
    header = {
        "job": message.job,
        **message.subtask._asdict(),
        "version": message.version,
        "reason": message.reason,
    }
    return "unreadable", header, b"", b""


def locate(job: str, subtask: SubtaskKey, version: int, state_id: str | None = None) -> Request:
    return "locate", {"job": job, **subtask._asdict(), "version": version, "ckpt_id": state_id}, b"", b""


def _task(task: Task) -> dict[str, Any]:
    return {
        "stage_id": task.stage_id,
        "stage_attempt": task.stage_attempt,
        "partition": task.partition,
        "attempt_number": task.attempt_number,
        "task_attempt_id": 17,
        "executor": "1",
    }


def _describe(segment: SegmentRef) -> dict[str, Any]:
    described = {"groups": segment.key_groups.size, "bytes": segment.size, "path": segment.path}
    if segment.path is not None and segment.file_size != segment.size:
        described |= {"start": _start(segment), "file_bytes": segment.file_size}
    return described | {flag.name: True for flag in FLAGS if segment.has(flag)}


def _start(segment: SegmentRef) -> int:
    return int(segment.offsets[0]) if segment.offsets.size else 0  # the first block is at the start of the segment


def _index(segment: SegmentRef) -> bytes:
    offsets = segment.offsets - (0 if segment.path is None else _start(segment))
    return segment.key_groups.astype("<u4").tobytes() + offsets.astype("<i8").tobytes()
