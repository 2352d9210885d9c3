"""`spark-ckpt gc`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import FAILED, Session, json_option, pass_session, path_argument
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.config import units
from spark_ckpt.figures import count, human_size, iso_time
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.location.orphans import MINIMUM_GRACE_SECONDS, Leftover
from spark_ckpt.migrate import earlier_state
from spark_ckpt.operations.gc import DEFAULT_GRACE_SECONDS, Collection, EarlierState, collect_garbage


@dataclass(frozen=True, slots=True)
class GcResult(Result):
    """The orphans of a location, deleted unless it was a dry run.

    Args:
        collection: the orphans, the failed deletions, and foreign files.
    """

    collection: Collection

    def to_json(self) -> JsonObject:
        """The orphans, the failed deletions, the foreign files, and the earlier provider's state."""
        collection, earlier = self.collection, self.collection.earlier
        return described(
            "gc",
            collection,
            orphans=[_leftover(orphan) for orphan in collection.orphans],
            left_alone=[_leftover(other) for other in collection.foreign],
            earlier_state=earlier and described("earlier_state", earlier, files=len(earlier.files)),
        )

    def render(self) -> Iterator[str]:
        """A line for each orphan and each foreign file, and a summary."""
        collection = self.collection
        for orphan in collection.orphans:
            yield f"{_name(orphan)}  {human_size(orphan.size)}"
        for other in collection.foreign:
            yield f"{_name(other)}  {human_size(other.size)}; left alone: not written by spark-ckpt"
        failed = {path for path, _ in collection.failed}
        deleted = sum(orphan.path not in failed for orphan in collection.orphans)
        found = f"{count(len(collection.orphans), 'orphan')}, {human_size(collection.size)}"
        if not collection.orphans:
            yield "no orphans"
        elif collection.dry_run:
            yield f"would delete {found}"
        elif deleted < len(collection.orphans):
            yield f"found {found}; deleted {deleted:,}"
        else:
            yield f"deleted {found}"
        if collection.earlier is not None:
            yield self._of_earlier(collection.earlier, failed)

    def _of_earlier(self, earlier: EarlierState, failed: Set[str]) -> str:
        deleted = sum(file.path not in failed for file in earlier.files)
        found = f"{count(len(earlier.files), 'state file')} of the earlier provider ({earlier.provider})"
        if self.collection.dry_run:
            return f"would delete {found}, {human_size(earlier.size)}"
        if deleted < len(earlier.files):
            return f"found {found}, {human_size(earlier.size)}; deleted {deleted:,}"
        return f"deleted {found}, {human_size(earlier.size)}"

    def messages(self) -> Iterator[str]:
        """An error for each failed deletion."""
        for _, reason in self.collection.failed:
            yield f"Error: {plain(reason)}"


def _name(leftover: Leftover) -> str:
    return plain(f"{leftover.path}/" if leftover.is_directory else leftover.path)


def _leftover(leftover: Leftover) -> JsonObject:
    return described(
        "orphan", leftover, modified=None if leftover.modified_ms is None else iso_time(leftover.modified_ms)
    )


def _seconds(_: click.Context, __: click.Parameter, text: str) -> float:
    try:
        # Unlike settings, allow a space before the unit.
        seconds = units.milliseconds(re.sub(r"(?<=[0-9.])\s+(?=[a-zA-Z])", "", text)) / 1000
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    # 0 deletes every orphan: less than a millisecond must not round to it.
    if seconds < MINIMUM_GRACE_SECONDS and re.search("[1-9]", text):
        raise click.BadParameter(
            f"'{text}' is too short: a running query may still refer to files of the last "
            f"{MINIMUM_GRACE_SECONDS / 60:g} minutes. Use a longer time, or 0 if no query is running"
        )
    return seconds


@click.command("gc")
@path_argument("location")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, but delete nothing.")
@click.option(
    "--grace",
    default=f"{DEFAULT_GRACE_SECONDS / 3600:g}h",
    show_default=True,
    callback=_seconds,
    help="Minimum age of an orphan relative to the newest checkpoint, in seconds or as 30m, 12h, 7d. "
    "At least 10m while the query is running. 0 deletes every orphan: use it only if no query is running.",
)
@json_option
@pass_session
def collect_orphans(session: Session, location: str, dry_run: bool, grace: float) -> None:
    """Delete files that no completed checkpoint refers to.

    LOCATION is the checkpointLocation of a query, as a path or URL. The query may be running. Such files are left by
    crashes; the next run of the query deletes most of them.

    After an import in place, the earlier provider's state files are deleted too, once the query has committed a batch
    with spark-ckpt.

    \b
    Exit status: 0 done, 1 the command failed or could not delete an orphan.
    """
    storage = CheckpointLocation.open(location).of_query()
    with progress_bar("deleting") as progress:
        collection = collect_garbage(
            storage, grace_seconds=grace, dry_run=dry_run, earlier_states=earlier_state, progress=progress
        )
    session.output.show(GcResult(collection))
    if collection.failed:
        click.get_current_context().exit(FAILED)
