"""Statistics of checkpoints as text."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from spark_ckpt.cli.summary import human_size, iso_time, plain
from spark_ckpt.coordinator.statistics import CheckpointStats, Spread, SubtaskStateStats

_NONE = "-"


def history_table(entries: Iterable[CheckpointStats]) -> Table:
    """A line for each checkpoint; below it why it failed."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("ID", "BATCH"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("STATUS", "TRIGGERED"):
        table.add_column(name, no_wrap=True)
    for name in ("DURATION", "COMPLETING", "ACKS", "RETRIES", "SIZE", "NEW", "STATE ROWS"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("REASON", no_wrap=True)
    for stats in entries:
        size = stats.size
        table.add_row(
            _NONE if stats.checkpoint_id is None else str(stats.checkpoint_id),
            str(stats.batch_id),
            stats.status.value,
            iso_time(stats.triggered_ms),
            f"{stats.duration_ms:,} ms",
            _NONE if stats.completing_ms is None else f"{stats.completing_ms:,} ms",
            f"{stats.acks:,}/{stats.expected:,}",
            f"{sum(stats.failures.values()):,}",
            _NONE if size is None else human_size(size.state_bytes),
            _NONE if size is None else human_size(size.new_bytes),
            _NONE if size is None else f"{size.rows:,}",
            Text(plain(stats.detail or "")),
        )
    return table


def history_tree(stats: CheckpointStats) -> Tree:
    """Everything that is known of one checkpoint."""
    name = "a checkpoint that failed" if stats.checkpoint_id is None else f"checkpoint {stats.checkpoint_id}"
    tree = Tree(
        Text(f"{name}, batch {stats.batch_id}, state version {stats.version}: {stats.status.value}", style="bold")
    )
    if stats.detail:
        tree.add(Text(plain(stats.detail)))
    done = "" if stats.completing_ms is None else f", then {stats.completing_ms:,} ms until it was durable"
    tree.add(Text(f"triggered {iso_time(stats.triggered_ms)}, {stats.duration_ms:,} ms to the last ack{done}"))
    tree.add(Text(f"{stats.acks:,} of {stats.expected:,} subtasks acknowledged"))
    if stats.failures:
        failures = tree.add(Text("went wrong on the way"))
        for reason, count in stats.failures.items():
            failures.add(Text(f"{plain(reason)}: {count:,}"))
    if (size := stats.size) is not None:
        new = human_size(size.new_bytes)
        tree.add(Text(f"state {human_size(size.state_bytes)}, of which {new} are new; {size.rows:,} rows"))
    if (subtasks := stats.subtasks) is not None:
        spread = tree.add(Text("per subtask: least, mean, most"))
        spread.add(Text(f"start delay {_spread(subtasks.start_delay_ms)} ms"))
        spread.add(Text(f"snapshot {_spread(subtasks.snapshot_us)} us"))
        spread.add(Text(f"write {_spread(subtasks.write_us)} us"))
        slowest = tree.add(Text("last to acknowledge"))
        for slow in subtasks.slowest:
            slowest.add(
                Text(
                    f"{plain(str(slow.subtask))}, executor {plain(slow.executor)}: start delay "
                    f"{slow.start_delay_ms:,} ms, snapshot {slow.snapshot_us:,} us, write {slow.write_us:,} us"
                )
            )
    return tree


def subtask_table(subtasks: Iterable[SubtaskStateStats]) -> Table:
    """A line for each store of each subtask."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("OPERATOR", "STORE", "PARTITION", "EXECUTOR"):
        table.add_column(name, no_wrap=True)
    for name in ("START DELAY", "SNAPSHOT", "WRITE", "DELTA", "ROWS"):
        table.add_column(name, justify="right", no_wrap=True)
    for stats in subtasks:
        table.add_row(
            str(stats.subtask.operator_id),
            Text(plain(stats.subtask.store)),
            str(stats.subtask.partition),
            Text(plain(stats.executor)),
            f"{stats.start_delay_ms:,} ms",
            f"{stats.snapshot_us:,} us",
            f"{stats.write_us:,} us",
            human_size(stats.delta_bytes),
            f"{stats.rows:,}",
        )
    return table


def _spread(spread: Spread) -> str:
    return f"{spread.least:,}, {spread.mean:,}, {spread.most:,}"
