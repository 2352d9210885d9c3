"""The input: Parquet files, one per batch, identical for every provider and every run with the same seed.

The size of the state is constant across batches: in the windowed workloads, as many rows expire as arrive. The event
time of the load spans one `HORIZON`; that of a batch spans the fraction of it that its new keys are of all keys.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.stores.workloads import Workload

HORIZON_SECONDS = 3600
"""Event time covered by the state, in seconds."""

_EPOCH = 1_700_000_000
_ROW_GROUP = 65_536  # several row groups per large file, so that all cores can read it

Ints = np.ndarray[Any, np.dtype[np.int64]]


def prepare(folder: Path, workload: Workload, seed: int) -> Path:
    """Writes the workload's input below `folder` if missing; returns its directory, with one folder per stream."""
    target = folder / name_of(workload, seed)
    if target.exists():
        return target
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for number, streams in enumerate(batches(workload, seed)):
        for stream, table in streams.items():
            file = partial / stream / f"{number:06}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, file, row_group_size=_ROW_GROUP)
            os.utime(file, (_EPOCH + number,) * 2)  # the file source reads the oldest file first
    partial.rename(target)
    return target


def name_of(workload: Workload, seed: int) -> str:
    """Name of the directory of a workload's input, without a character that a URL escapes."""
    loads = f"{workload.loads[0]}_{workload.keys}"  # the other ones follow from these
    skew = "" if workload.skew is None else f"-zipf{workload.skew:g}"
    return f"{workload.query}-{loads}-{workload.changes}x{workload.changed}{skew}-seed{seed}"


def batches(workload: Workload, seed: int) -> Iterator[Mapping[str, pa.Table]]:
    """Rows of each batch by stream; the first batches load the state."""
    make = {"count": _counted, "totals": _counted, "join": _joined, "dedup": _repeated, "session": _repeated}[
        workload.query
    ]
    return make(workload, np.random.default_rng(seed))


def _counted(workload: Workload, rng: np.random.Generator) -> Iterator[Mapping[str, pa.Table]]:
    """Each key once, then a new random sample of the keys in each batch."""
    for begin, end in _spans(workload.loads):
        yield {"events": _table(np.arange(begin, end))}
    draw = _uniform(workload, rng) if workload.skew is None else _zipf(workload, workload.skew, rng)
    for _ in range(workload.changes):
        yield {"events": _table(draw())}


def _uniform(workload: Workload, rng: np.random.Generator) -> Callable[[], Ints]:
    """Draws distinct keys that are equally likely."""
    return lambda: rng.choice(workload.keys, workload.changed, replace=False)


def _zipf(workload: Workload, exponent: float, rng: np.random.Generator) -> Callable[[], Ints]:
    """Draws distinct keys: the probability of the n-th likeliest, a random key, is proportional to n ** -exponent."""
    cumulated = np.cumsum(np.arange(1, workload.keys + 1, dtype=np.float64) ** -exponent)
    keys = rng.permutation(workload.keys)

    def draw() -> Ints:
        seen = np.empty(0, dtype=np.int64)
        while len(seen) < workload.changed:
            ranks = np.searchsorted(cumulated, rng.random(2 * workload.changed) * cumulated[-1])
            both = np.concatenate([seen, keys[ranks]])
            seen = both[np.sort(np.unique(both, return_index=True)[1])]  # distinct, in the order of the draws
        return seen[: workload.changed]

    return draw


def _joined(workload: Workload, rng: np.random.Generator) -> Iterator[Mapping[str, pa.Table]]:
    """Each key once on both sides, at most half a horizon apart."""
    sizes = (*workload.loads, *[workload.changed] * workload.changes)
    keys = np.arange(sum(sizes))
    partners = keys.copy()
    for begin in range(0, len(keys), max(workload.keys // 2, 1)):
        rng.shuffle(partners[begin : begin + workload.keys // 2])
    for begin, end in _spans(sizes):
        times = _times(keys[begin:end], workload.keys)
        yield {"left": _table(keys[begin:end], times), "right": _table(partners[begin:end], times)}


def _repeated(workload: Workload, rng: np.random.Generator) -> Iterator[Mapping[str, pa.Table]]:
    """Each key of the load once; then, per batch, new keys and as many from the younger half of the state."""
    for begin, end in _spans(workload.loads):
        keys = np.arange(begin, end)
        yield {"events": _table(keys, _times(keys, workload.keys))}
    fresh = workload.changed // 2
    for begin, end in _spans([fresh] * workload.changes, workload.keys):
        keys = np.arange(begin, end)
        seen = rng.integers(begin - workload.keys // 2, begin, workload.changed - fresh)
        times = _times(np.concatenate([keys, rng.integers(begin, end, len(seen))]), workload.keys)
        yield {"events": _table(np.concatenate([keys, seen]), times)}


def _spans(sizes: tuple[int, ...] | list[int], begin: int = 0) -> Iterator[tuple[int, int]]:
    for size in sizes:
        yield begin, begin + size
        begin += size


def _times(numbers: Ints, keys: int) -> Ints:
    """Event times in microseconds; a range of `keys` numbers spans one horizon."""
    return _EPOCH * 1_000_000 + numbers * (HORIZON_SECONDS * 1_000_000) // keys


def _table(keys: Ints, times: Ints | None = None) -> pa.Table:
    columns = {"key": pa.array(keys, pa.int64())}
    if times is not None:
        columns["time"] = pa.array(times, pa.timestamp("us", tz="UTC"))
    return pa.table(columns)
