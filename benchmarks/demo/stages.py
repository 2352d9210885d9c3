"""Stages of a demo whose queries change: an aggregate is added after a third of the feed, and the folder of the
flights is replaced after two thirds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.demo.layout import FLIGHTS, MOVED_FLIGHTS, WEATHER, Layout
from benchmarks.demo.queries import QUERIES, DemoQuery, aircraft_totals_since_july

FIRST, AGGREGATE_ADDED, SOURCE_REPLACED = STAGES = (1, 2, 3)
_HELD = "held"


def queries_of(stage: int | None) -> tuple[DemoQuery, ...]:
    """The queries of a stage; of the demo without changes for None."""
    if stage in (None, FIRST):
        return QUERIES
    return tuple(replace(q, build=aircraft_totals_since_july) if q.name == "aircraft" else q for q in QUERIES)


def files_before(stage: int, files: int) -> int:
    """Number of files of each feed that earlier stages have."""
    return (stage - 1) * files // len(STAGES)


def hold_back(layout: Layout) -> None:
    """Move all files of both feeds to where no query reads them."""
    for feed in (FLIGHTS, WEATHER):
        (layout.feed / _HELD).mkdir(exist_ok=True)
        (layout.feed / feed).rename(layout.feed / _HELD / feed)


def release(layout: Layout, stage: int, files: int) -> Layout:
    """Move the files of a stage to where its queries read them.

    Args:
        layout: layout of the demo.
        stage: the stage.
        files: number of files of each feed in all stages.

    Returns:
        The layout of the stage.
    """
    begin, end = files_before(stage, files), files_before(stage + 1, files)
    moved = stage == SOURCE_REPLACED
    for feed, folder in ((FLIGHTS, MOVED_FLIGHTS if moved else FLIGHTS), (WEATHER, WEATHER)):
        (layout.feed / folder).mkdir(exist_ok=True)
        for path in _in_order(layout.feed / _HELD / feed)[: end - begin]:
            path.rename(layout.feed / folder / path.name)
    return replace(layout, stage=stage, moved=begin if moved else None)


def _in_order(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())
