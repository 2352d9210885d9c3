"""Drivers whose stores merge deltas, without Spark."""

from __future__ import annotations

from pathlib import Path

from spark_ckpt.checkpoint.chains import Chain, chain_of
from spark_ckpt.compaction.merges import digest_of
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import SegmentKind, decode_block
from spark_ckpt.messages import MergedDeltas, Operator
from spark_ckpt.storage import LocalStorage
from tests.support.driver import Driver, faulty_environment, make_segment

ONE = (Operator(0, "dedupe", ("default",), 2),)
KEY, OTHER = SubtaskKey(0, "default", 0), SubtaskKey(0, "default", 1)


def driver_at(location: Path, max_deltas: int = 4, ratio: float = 1000) -> Driver:
    """New run of a query whose bases are never due."""
    return Driver(
        location,
        operators=ONE,
        settings={"chain.maxDeltas": str(max_deltas), "chain.maxDeltaRatio": str(ratio)},
        environment=faulty_environment(LocalStorage(location)),
    )


def chain_at(driver: Driver, key: SubtaskKey = KEY) -> Chain:
    """Chain of a subtask in the newest checkpoint."""
    assert driver.job is not None
    chain = chain_of(driver.job._parent.table, key)
    assert chain is not None
    return chain


def merged(location: Path, deltas: tuple[SegmentRef, ...]) -> MergedDeltas:
    """What an executor sends for these deltas."""
    storage, changes = LocalStorage(location), dict[int, dict[bytes, bytes | None]]()
    for delta in deltas:
        data = delta.data if delta.path is None else storage.read(f"ckpt/{delta.path}")
        for offset in delta.offsets.tolist():
            block = decode_block(bytes(data), offset, "delta")
            for section in block.sections:
                changes.setdefault(block.key_group, {}).update(section.entries)  # type: ignore[arg-type]
    first, last = deltas[0].first_version, deltas[-1].version
    return MergedDeltas(make_segment(SegmentKind.DELTA, last, changes, first_version=first), digest_of(deltas))
