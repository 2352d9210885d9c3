"""The history of a location as one HTML page, for a ticket: no script, and nothing from elsewhere."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from spark_ckpt import __version__
from spark_ckpt.checkpoint.statistics import CheckpointStats, CheckpointStatus
from spark_ckpt.cli.results.charts import Bar, Series, bar_chart, line_chart, text, timeline
from spark_ckpt.cli.results.checkpoint_figures import CHECKPOINT_FIGURES
from spark_ckpt.cli.terminal import Column, cells_of
from spark_ckpt.errors import StorageError
from spark_ckpt.figures import count, human_duration, human_size, iso_time
from spark_ckpt.location.errors import TargetExistsError
from spark_ckpt.location.file_system import storage_at
from spark_ckpt.redaction import redacted
from spark_ckpt.storage import create_or_find
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError

_STYLE = """
:root { color-scheme: light dark; --one: #2a6fbb; --two: #e08a1e; --three: #3b8f5a; --bad: #c8322b; --grid: #8884; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
figure { margin: 1rem 0; }
figcaption { font-weight: 600; }
svg { width: 100%; height: auto; }
svg text { font-size: 11px; fill: currentColor; }
.grid { stroke: var(--grid); }
rect.one, circle.one, .swatch.one { fill: var(--one); background: var(--one); }
rect.two, circle.two, .swatch.two { fill: var(--two); background: var(--two); }
rect.three, circle.three, .swatch.three { fill: var(--three); background: var(--three); }
rect.failed, .swatch.failed { fill: var(--bad); background: var(--bad); }
polyline { fill: none; stroke-width: 1.5; }
polyline.one { stroke: var(--one); }
polyline.two { stroke: var(--two); }
polyline.three { stroke: var(--three); }
.key { font-weight: 400; margin-left: 1rem; white-space: nowrap; }
.swatch { display: inline-block; width: .8em; height: .8em; margin-right: .3em; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--grid); vertical-align: top; }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
tr.failed td { color: var(--bad); }
"""
_COLUMNS = (*CHECKPOINT_FIGURES, Column("REASON"))


def history_page(location: str, entries: Sequence[CheckpointStats], now_ms: int) -> str:
    """The page of a location: a summary, a timeline, plots, and a table.

    Args:
        location: the location.
        entries: statistics of its checkpoints, oldest first.
        now_ms: time of the page, in milliseconds since 1970 UTC.
    """
    title = redacted(location)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        # No script and no request, whatever a name in the page contains.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width">',
        f"<title>Checkpoints of {text(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Checkpoints of {text(title)}</h1>",
        f"<p>{text(_summary(entries))}. Written {text(iso_time(now_ms))} by spark-ckpt {__version__}. Times: UTC.</p>",
    ]
    if entries:
        parts += ["<h2>Timeline</h2>", _timeline(entries), "<h2>Plots</h2>", *_plots(entries)]
        parts += ["<h2>Checkpoints</h2>", _table(entries)]
    return "\n".join([*parts, "</body></html>", ""])


def write_page(target: str, page: str, *, force: bool) -> None:
    """Writes a page as a file.

    Args:
        target: path or URL of the file.
        page: the page.
        force: True to replace an existing file.

    Raises:
        TargetExistsError: the file exists already, without `force`.
        StorageError: it cannot be written.
    """
    directory, slash, name = target.rpartition("/")
    storage, content = storage_at(directory or slash or "."), page.encode()
    if force:
        storage.write_atomic(name, content)
        return
    if storage.exists(name):
        raise TargetExistsError(target)
    try:
        is_written = create_or_find(storage, name, content)
    except ExclusiveCreateUnsupportedError as e:
        reason = "this storage has no exclusive create. Write the file elsewhere, or pass --force"
        raise StorageError(target, "create", reason) from e
    if not is_written:
        raise TargetExistsError(target)


def _summary(entries: Sequence[CheckpointStats]) -> str:
    if not entries:
        return "no checkpoint has completed yet"
    aborted = sum(_is_failed(stats) for stats in entries)
    durations = [stats.duration_ms for stats in entries if not _is_failed(stats)]
    parts = [count(len(entries), "checkpoint"), f"{aborted:,} aborted"]
    if durations:
        parts.append(f"median duration {human_duration(round(statistics.median(durations)))}")
        parts.append(f"longest {human_duration(max(durations))}")
    return ", ".join(parts)


def _timeline(entries: Sequence[CheckpointStats]) -> str:
    return timeline(TIMELINE, timeline_bars(entries), tick)


TIMELINE = "Each checkpoint from its trigger until it is durable; aborted ones are red"
"""Description of a timeline of checkpoints."""


def tick(time_ms: int) -> str:
    """A time at the axis of a timeline, in UTC: without fractions, so that neighbours do not overlap."""
    return iso_time(time_ms)[: len("2026-01-01T00:00:00")].replace("T", " ")


def timeline_bars(entries: Sequence[CheckpointStats]) -> list[Bar]:
    """The bar of each checkpoint in a timeline; the style of an aborted one is `failed`."""
    return [
        Bar(
            stats.triggered_ms,
            stats.duration_ms + (stats.completing_ms or 0),
            "failed" if _is_failed(stats) else "one",
            f"{_label(stats)}, {stats.status.value}: {iso_time(stats.triggered_ms)}, "
            f"{human_duration(stats.duration_ms)}",
        )
        for stats in entries
    ]


def _plots(entries: Sequence[CheckpointStats]) -> Iterator[str]:
    labels = [_label(stats) for stats in entries]
    yield bar_chart(
        "Time until the last acknowledgement, and from there until durable",
        labels,
        (
            Series("duration", "one", [None if _is_failed(stats) else stats.duration_ms for stats in entries]),
            Series("completing", "two", [stats.completing_ms for stats in entries]),
            Series("aborted after", "failed", [stats.duration_ms if _is_failed(stats) else None for stats in entries]),
        ),
        human_duration,
    )
    sizes = [stats.size for stats in entries]
    yield line_chart(
        "State that a checkpoint refers to",
        labels,
        (Series("state", "one", [None if size is None else size.state_bytes for size in sizes]),),
        human_size,
    )
    yield bar_chart(
        "Bytes written for a checkpoint",
        labels,
        (Series("new", "three", [None if size is None else size.new_bytes for size in sizes]),),
        human_size,
    )
    yield line_chart(
        "Rows of all stores",
        labels,
        (Series("rows", "one", [None if size is None else size.rows for size in sizes]),),
        _number,
    )
    slowest = [stats.subtasks for stats in entries]
    delays = [None if each is None else each.start_delay_ms.most * 1000 for each in slowest]
    yield line_chart(
        "Slowest subtask of each checkpoint",
        labels,
        (
            Series("snapshot", "one", [None if each is None else each.snapshot_us.most for each in slowest]),
            Series("write", "two", [None if each is None else each.write_us.most for each in slowest]),
            Series("start delay", "three", delays),
        ),
        _microseconds,
    )
    if any(stats.failures for stats in entries):
        retries = [sum(stats.failures.values()) for stats in entries]
        yield bar_chart("Failures and retries", labels, (Series("retries", "two", retries),), _number)


def _table(entries: Sequence[CheckpointStats]) -> str:
    header = "".join(f"<th>{column.name.lower().removeprefix('state ')}</th>" for column in _COLUMNS)
    return f'<div class="table"><table><tr>{header}</tr>{"".join(map(_row, reversed(entries)))}</table></div>'


def _row(stats: CheckpointStats) -> str:
    reasons = [f"{reason}: {number:,}" for reason, number in stats.failures.items()]
    reason = redacted("; ".join([*reasons, *([stats.detail] if stats.detail else [])]))
    cells = [
        f'<td class="number">{text(value)}</td>' if column.is_number else f"<td>{text(value)}</td>"
        for column, value in zip(_COLUMNS, (*cells_of(CHECKPOINT_FIGURES, stats), reason), strict=True)
    ]
    return f'<tr class="{"failed" if _is_failed(stats) else "completed"}">{"".join(cells)}</tr>'


def _label(stats: CheckpointStats) -> str:
    return f"batch {stats.batch_id}"


def _is_failed(stats: CheckpointStats) -> bool:
    return stats.status is CheckpointStatus.FAILED


def _number(value: int) -> str:
    return f"{value:,}"


def _microseconds(value: int) -> str:
    return f"{value:,} us" if value < 1000 else human_duration(value // 1000)
