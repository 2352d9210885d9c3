"""Benchmark of the codec on a `_metadata` file as the number of subtasks grows.

python -m benchmarks.metadata.codec
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from spark_ckpt import metadata as m

STORES, KEY_GROUPS = 4, 128
SUBTASKS = (50, 100, 200, 400, 1000, 2500, 10_000)
RUNS = 7


def checkpoint(subtasks: int) -> m.CheckpointMetadata:
    """Checkpoint of four stores with one segment per subtask, all in one shared file."""
    offsets = np.arange(KEY_GROUPS) * 1000
    operators = []
    for store in range(STORES):
        states = {}
        for index in range(subtasks):
            groups = m.KeyGroupRangeOffsets.of(index * KEY_GROUPS, offsets + index)
            stream = m.RelativeFileStateHandle(f"../shared/{store:032x}-{index}", 1 << 20)
            states[index] = m.OperatorSubtaskState(managed_keyed_state=m.KeyGroupsStateHandle(groups, stream))
        operators.append(m.OperatorState(bytes([store]) * 16, subtasks, subtasks * KEY_GROUPS, states))
    return m.CheckpointMetadata(1, (), tuple(operators))


def milliseconds(work: Callable[[], object]) -> tuple[float, float]:
    """Median and minimum duration of several runs, in milliseconds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times), min(times)


def main() -> None:
    """Print the table."""
    table = Table(title=f"{STORES} stores, {KEY_GROUPS} key groups a subtask: median (shortest) of {RUNS} runs")
    for column in ("subtasks", "size kB", "encode ms", "decode ms"):
        table.add_column(column, justify="right")
    for subtasks in SUBTASKS:
        metadata = checkpoint(subtasks)
        content = m.dumps(metadata)
        encode, decode = milliseconds(lambda: m.dumps(metadata)), milliseconds(lambda: m.loads(content))  # noqa: B023
        table.add_row(
            f"{subtasks:,}",
            f"{len(content) / 1000:,.0f}",
            f"{encode[0]:.1f} ({encode[1]:.1f})",
            f"{decode[0]:.1f} ({decode[1]:.1f})",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
