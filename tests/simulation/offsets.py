"""Entries of Spark's offset log, for a topic with one partition."""

from __future__ import annotations

import json
from collections.abc import Mapping

from spark_ckpt.spark_files.entries import SHUFFLE_PARTITIONS


def entry(offset: int, metadata: Mapping[str, str | None] | None = None, partitions: int | None = None) -> str:
    """Entry of a batch that reads up to an offset.

    Args:
        offset: end offset.
        metadata: its JSON object.
        partitions: number of partitions of the query; None leaves it out.
    """
    conf = {} if partitions is None else {"batchTimestampMs": offset, "conf": {SHUFFLE_PARTITIONS: str(partitions)}}
    return "\n".join(("v1", json.dumps({**(metadata or {}), **conf}), source_offset(offset)))


def number_in(content: bytes) -> int:
    """Number of partitions in an entry."""
    return int(json.loads(content.splitlines()[1])["conf"][SHUFFLE_PARTITIONS])


def source_offset(offset: int) -> str:
    """End offset of the source, as Spark's JSON text."""
    return json.dumps({"topic": {"0": offset}}, separators=(",", ":"))


def offset_in(content: bytes) -> int:
    """End offset in an entry."""
    return int(json.loads(content.splitlines()[-1])["topic"]["0"])
