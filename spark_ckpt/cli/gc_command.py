"""`spark-ckpt gc`."""

from __future__ import annotations

import re

import click

from spark_ckpt.cli.options import Session, json_option, pass_session
from spark_ckpt.cli.progress import progress_bar
from spark_ckpt.coordinator.collection import DEFAULT_GRACE_SECONDS, collect_garbage
from spark_ckpt.locations.location import storage_of

_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 24 * 3600}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")

NOT_ALL_DELETED = 1
"""Exit status if an orphan could not be deleted."""


def _seconds(_: click.Context, __: click.Parameter, text: str) -> float:
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise click.BadParameter(f"'{text}' is no duration such as 90, 30m, 12h or 7d")
    return float(match[1]) * _UNITS[match[2]]


@click.command("gc")
@click.argument("location")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option(
    "--grace",
    default=f"{DEFAULT_GRACE_SECONDS / 3600:g}h",
    show_default=True,
    callback=_seconds,
    help="How old an orphan must be, in seconds or as 30m, 12h, 7d. 0 only while no query runs there.",
)
@json_option
@pass_session
def collect_orphans(session: Session, location: str, dry_run: bool, grace: float) -> None:
    """Delete files of LOCATION that no completed checkpoint refers to.

    LOCATION is the checkpointLocation of a query, as a path or URL. The query may be running. Crashes leave such files;
    a new run of the query deletes most of them by itself.
    """
    storage = storage_of(location)
    with progress_bar("deleting") as progress:
        collection = collect_garbage(storage, grace_seconds=grace, dry_run=dry_run, progress=progress)
    session.output.collection(collection)
    if collection.failed:
        click.get_current_context().exit(NOT_ALL_DELETED)
