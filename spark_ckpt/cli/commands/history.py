"""`spark-ckpt history`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import click
from rich.text import Text
from rich.tree import Tree

from spark_ckpt.checkpoint.statistics import CheckpointStats, Spread, SubtaskStateStats
from spark_ckpt.checkpoint.statistics_state import SPARK_HISTORY, SPARK_SUBTASKS, history_of, subtasks_of
from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import Session, complete_path, json_option, pass_session, path_argument
from spark_ckpt.cli.output import Part, Result
from spark_ckpt.cli.results.checkpoint_figures import CHECKPOINT_FIGURES, status_of
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.history_page import history_page, write_page
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.terminal import Table, number_column, text_column
from spark_ckpt.cli.watch import Watchable, follow, last_option, newest, watch_option
from spark_ckpt.clock import SystemClock
from spark_ckpt.figures import count, human_size, iso_time
from spark_ckpt.location.errors import CheckpointNotFoundError, ForeignLocationError
from spark_ckpt.location.find import CheckpointLocation

_CHECKPOINT_COLUMNS = (*CHECKPOINT_FIGURES, text_column("REASON", lambda stats: stats.detail or ""))
_SUBTASK_COLUMNS = (
    text_column("OPERATOR", lambda stats: str(stats.subtask.operator_id)),
    text_column("STORE", lambda stats: stats.subtask.store),
    text_column("PARTITION", lambda stats: str(stats.subtask.partition)),
    text_column("EXECUTOR", lambda stats: stats.executor),
    number_column("START DELAY", lambda stats: f"{stats.start_delay_ms:,} ms"),
    number_column("SNAPSHOT", lambda stats: f"{stats.snapshot_us:,} us"),
    number_column("WRITE", lambda stats: f"{stats.write_us:,} us"),
    number_column("DELTA", lambda stats: human_size(stats.delta_bytes)),
    number_column("ROWS", lambda stats: f"{stats.rows:,}"),
)


@dataclass(frozen=True, slots=True)
class History(Watchable):
    """Statistics of the recent checkpoints of a location.

    Args:
        location: the location, as given by the user.
        checkpoints: the statistics, oldest first.
        printed: number of the first checkpoints that are on the screen already.
    """

    location: str
    checkpoints: Sequence[CheckpointStats]
    printed: int = 0

    def to_json(self) -> JsonObject:
        """`{"location", "history": [the statistics of each checkpoint]}`."""
        return {"location": self.location, "history": [_stats(stats) for stats in self.checkpoints[self.printed :]]}

    def entries(self) -> Mapping[object, object]:
        """The statistics by batch and trigger time: a failed checkpoint has no id."""
        return {_key(stats): stats for stats in self.checkpoints}

    def only(self, keys: Collection[object], *, continues: bool) -> History:
        """The checkpoints with these keys."""
        old = [stats for stats in self.checkpoints if continues and _key(stats) not in keys]
        new = [stats for stats in self.checkpoints if _key(stats) in keys]
        return replace(self, checkpoints=[*old, *new], printed=len(old))

    def render(self) -> Iterator[Part]:
        """A table with one record per checkpoint."""
        if self.checkpoints:
            yield Table.of(_CHECKPOINT_COLUMNS, self.checkpoints, self.printed)
        else:
            yield f"{self.location}: no checkpoint has completed yet"


@dataclass(frozen=True, slots=True)
class HistoryReport(Result):
    """The page with the statistics of a location.

    Args:
        history: the statistics.
        file: the page.
    """

    history: History
    file: str

    def to_json(self) -> JsonObject:
        """The object of `History`."""
        return self.history.to_json()

    def render(self) -> Iterator[Part]:
        """A line with the name of the page."""
        yield plain(f"{self.file}: {count(len(self.history.checkpoints), 'checkpoint')}")


@dataclass(frozen=True, slots=True)
class HistoryEntry(Result):
    """Statistics of one checkpoint.

    Args:
        location: the location, as given by the user.
        stats: the statistics.
        by_subtask: statistics of each subtask, in the order of acknowledgement; None unless requested.
    """

    location: str
    stats: CheckpointStats
    by_subtask: Sequence[SubtaskStateStats] | None = None

    def to_json(self) -> JsonObject:
        """The object of `History` with one entry."""
        return {"location": self.location, "history": [_stats(self.stats, self.by_subtask)]}

    def render(self) -> Iterator[Part]:
        """A tree, and a table of the subtasks."""
        yield _tree(self.stats)
        if self.by_subtask is not None:
            yield Table.of(_SUBTASK_COLUMNS, self.by_subtask)


def read_history(location: str) -> tuple[CheckpointStats, ...]:
    """The statistics in the newest checkpoint of a location, oldest first.

    Raises:
        ForeignLocationError: it has none.
        CheckpointError: they are damaged.
        SparkCkptError: no checkpoint, or it cannot be read (see `CheckpointLocation.find`).
    """
    found = CheckpointLocation.open(location).find()
    entries = history_of(found.metadata)
    if entries is None:
        raise ForeignLocationError(found.path, f"no readable master state {SPARK_HISTORY} for this release")
    return entries


def select(location: str, entries: tuple[CheckpointStats, ...], checkpoint_id: int) -> CheckpointStats:
    """The statistics of one checkpoint.

    Raises:
        CheckpointNotFoundError: it has none.
    """
    by_id = {stats.checkpoint_id: stats for stats in entries if stats.checkpoint_id is not None}
    if checkpoint_id not in by_id:
        raise CheckpointNotFoundError(location, checkpoint_id, sorted(by_id))
    return by_id[checkpoint_id]


def read_subtasks(location: str, checkpoint_id: int) -> tuple[SubtaskStateStats, ...]:
    """The statistics of the subtasks of a checkpoint, in the order of acknowledgement.

    Raises:
        CheckpointNotFoundError: no longer retained, or never existed.
        ForeignLocationError: its `_metadata` has none.
        CheckpointError: they are damaged.
        SparkCkptError: it cannot be read (see `CheckpointLocation.find`).
    """
    found = CheckpointLocation.open(location).find(checkpoint_id)
    subtasks = subtasks_of(found.metadata)
    if subtasks is None:
        raise ForeignLocationError(found.path, f"no readable master state {SPARK_SUBTASKS} for this release")
    return subtasks


def _stats(stats: CheckpointStats, by_subtask: Sequence[SubtaskStateStats] | None = None) -> JsonObject:
    """All fields by name, with the trigger time also as text; `by_subtask` is optional."""
    optional = {} if by_subtask is None else {"by_subtask": by_subtask}
    return described("checkpoint_stats", stats, triggered=iso_time(stats.triggered_ms), **optional)


def _key(stats: CheckpointStats) -> tuple[int, int]:
    return stats.batch_id, stats.triggered_ms


def _tree(stats: CheckpointStats) -> Tree:
    name = "failed checkpoint" if stats.checkpoint_id is None else f"checkpoint {stats.checkpoint_id}"
    tree = Tree(
        Text(f"{name}, batch {stats.batch_id}, state version {stats.version}: {plain(status_of(stats))}", style="bold")
    )
    if stats.detail:
        tree.add(Text(plain(stats.detail)))
    completing = "" if stats.completing_ms is None else f", then {stats.completing_ms:,} ms until durable"
    tree.add(Text(f"triggered {iso_time(stats.triggered_ms)}, {stats.duration_ms:,} ms until the last ack{completing}"))
    tree.add(Text(f"{stats.acks:,} of {stats.expected:,} subtasks acknowledged"))
    if stats.failures:
        failures = tree.add(Text("retried failures"))
        for reason, number in stats.failures.items():
            failures.add(Text(f"{plain(reason)}: {number:,}"))
    if (size := stats.size) is not None:
        new = human_size(size.new_bytes)
        tree.add(Text(f"state {human_size(size.state_bytes)}, {size.rows:,} rows; {new} new"))
    if (subtasks := stats.subtasks) is not None:
        spread = tree.add(Text("per subtask: minimum, mean, maximum"))
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


def _spread(spread: Spread) -> str:
    return f"{spread.least:,}, {spread.mean:,}, {spread.most:,}"


@click.command("history")
@path_argument("location")
@click.option("--id", "checkpoint_id", type=click.IntRange(min=0), help="Show all statistics of this checkpoint.")
@click.option("--subtasks", is_flag=True, help="With --id: show each subtask, in the order of acknowledgement.")
@last_option
@watch_option
@click.option(
    "--html",
    metavar="FILE",
    shell_complete=complete_path,
    help="Write one self-contained page with the timeline and plots, for a ticket. FILE is a path or URL.",
)
@click.option("--force", is_flag=True, help="With --html: replace an existing FILE.")
@json_option
@pass_session
def show_history(
    session: Session,
    location: str,
    checkpoint_id: int | None,
    subtasks: bool,
    last: int | None,
    watch_seconds: float | None,
    html: str | None,
    force: bool,
) -> None:
    """Show recent checkpoint durations and failures.

    LOCATION is the checkpointLocation of a query, as a path or URL. Checkpoints are listed oldest first. The statistics
    are part of the newest completed checkpoint, so a failure appears once a later checkpoint completes.

    DURATION is the time from the trigger to the last acknowledgement. COMPLETING is the time from then until the
    checkpoint is durable; only the next checkpoint records it.

    \b
    Examples:
      spark-ckpt history /data/query --last 5
      spark-ckpt history /data/query --watch
      spark-ckpt history /data/query --id 17 --subtasks
      spark-ckpt history /data/query --html report.html
    """
    if subtasks and checkpoint_id is None:
        raise click.UsageError("--subtasks requires --id")
    if checkpoint_id is not None and (last is not None or watch_seconds is not None):
        raise click.UsageError("--id and --last or --watch are mutually exclusive")
    if html is not None and (checkpoint_id is not None or watch_seconds is not None):
        raise click.UsageError("--html and --id or --watch are mutually exclusive")
    if force and html is None:
        raise click.UsageError("--force requires --html")
    if html is not None:
        history = History(location, newest(read_history(location), last))
        write_page(html, history_page(location, history.checkpoints, SystemClock().now_ms()), force=force)
        session.output.show(HistoryReport(history, html))
    elif watch_seconds is not None:
        follow(session, watch_seconds, lambda: History(location, newest(_read_or_wait(location), last)))
    elif checkpoint_id is None:
        session.output.show(History(location, newest(read_history(location), last)))
    else:
        entries = read_history(location)
        by_subtask = read_subtasks(location, checkpoint_id) if subtasks else None
        session.output.show(HistoryEntry(location, select(location, entries, checkpoint_id), by_subtask))


def _read_or_wait(location: str) -> Sequence[CheckpointStats]:
    """As `read_history`, but empty before the first checkpoint, which a watch waits for."""
    return read_history(location) if CheckpointLocation.open(location).checkpoints() else ()
