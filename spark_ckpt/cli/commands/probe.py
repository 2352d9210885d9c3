"""`spark-ckpt probe`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import DAMAGED, Session, json_option, pass_session, path_argument
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.figures import count
from spark_ckpt.location.file_system import storage_at
from spark_ckpt.operations.probe import CLIENTS, ROUNDS, Probe, probe


@dataclass(frozen=True, slots=True)
class ProbeResult(Result):
    """What a race of clients has shown.

    Args:
        race: the race.
    """

    race: Probe

    def to_json(self) -> JsonObject:
        """Numbers of winners, and durations."""
        return described("probe", self.race)

    def render(self) -> Iterator[str]:
        """The verdict, and the numbers behind it."""
        race = self.race
        verdict = "one winner each" if race.is_exclusive else "NOT EXCLUSIVE: two drivers would not be fenced"
        yield f"{plain(race.location)}: {verdict}"
        yield (
            f"{count(race.rounds, 'file')} raced for by {count(race.clients, 'client')}: "
            f"{race.won_by_one:,} won by one, {race.won_by_several:,} by several (at most {race.most_winners}), "
            f"{race.won_by_none:,} by none"
        )
        yield f"{count(race.changed, 'file')} with other bytes than a winner's; {race.unknown:,} unanswered creates"
        yield f"a create took {race.median_ms:,.0f} ms in the median, {race.slowest_ms:,.0f} ms at most"


@click.command("probe")
@path_argument("location")
@click.option("--clients", default=CLIENTS, show_default=True, type=click.IntRange(2, 64), help="Creates at once.")
@click.option("--rounds", default=ROUNDS, show_default=True, type=click.IntRange(1), help="Number of files.")
@json_option
@pass_session
def probe_storage(session: Session, location: str, clients: int, rounds: int) -> None:
    """Test whether a storage can fence two drivers.

    Many clients create the same small files below ckpt/ at once; the files are deleted again. LOCATION is a directory,
    as a path or URL; it need not exist.

    One winner each is no proof: run it with more rounds, and on several machines at the same time.

    \b
    Exit status: 0 one winner each, 1 the command failed, 3 several creates of one file have won.
    """
    storage = storage_at(location)
    with progress_bar("racing") as progress:
        race = probe(storage, clients, rounds, progress)
    session.output.show(ProbeResult(race))
    if not race.is_exclusive:
        click.get_current_context().exit(DAMAGED)
