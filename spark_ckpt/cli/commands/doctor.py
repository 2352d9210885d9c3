"""`spark-ckpt doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import DAMAGED, Session, json_option, pass_session, path_argument
from spark_ckpt.cli.output import Part, Result
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.terminal import Table, progress_bar, text_column
from spark_ckpt.figures import count
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.migrate import earlier_state
from spark_ckpt.operations.doctor import Report, Status, Verdict, examine
from spark_ckpt.redaction import redacted

_COLUMNS = (
    text_column("CHECK", lambda finding: finding.name),
    text_column("STATUS", lambda finding: finding.status.value),
    text_column("ANSWER", lambda finding: redacted(finding.answer)),
)
_COUNTED = ((Status.PROBLEM, "problem"), (Status.WARNING, "warning"))


@dataclass(frozen=True, slots=True)
class DoctorResult(Result):
    """The findings on a location, and what to do next.

    Args:
        report: the findings.
    """

    report: Report

    def to_json(self) -> JsonObject:
        """The verdict, the findings and the next steps."""
        return described("doctor", self.report, next_steps=self.report.next_steps())

    def render(self) -> Iterator[Part]:
        """The verdict, a table of the findings, and the next steps."""
        report = self.report
        counts = [count(report.count(status), noun) for status, noun in _COUNTED if report.count(status)]
        failed = sum(finding.error is not None for finding in report.findings)
        counts += [f"{count(failed, 'check')} failed"] if failed else []
        yield plain(f"{report.location}: {report.verdict.value}{': ' if counts else ''}{', '.join(counts)}")
        yield Table.of(_COLUMNS, report.findings)
        steps = list(report.next_steps())
        yield "What to do next:" if steps else "What to do next: nothing"
        for number, step in enumerate(steps, 1):
            yield f"  {number}. {plain(step)}"


@click.command("doctor")
@path_argument("location")
@click.option("--all", "everything", is_flag=True, help="Read all retained checkpoints in full, not only the newest.")
@click.option(
    "--probe",
    is_flag=True,
    help="Test the storage's exclusive create and its clock with small files, which are deleted again. Without it, "
    "nothing is written.",
)
@json_option
@pass_session
def examine_location(session: Session, location: str, everything: bool, probe: bool) -> None:
    """Examine a query's checkpoints, and say what to do next.

    LOCATION is the checkpointLocation of a query, or a savepoint, as a path or URL. The query may be running.

    The command answers: is a driver alive, and which one; when was the last checkpoint; is everything whole; how long
    are the chains; which checkpoints failed; which files are orphans; did an operation stop halfway; which versions
    wrote it; do the clocks agree; is there free space. A check that fails does not stop the others.

    The verdict is 'healthy', 'attention' (warnings), 'in doubt' (a check failed) or 'damaged'.

    \b
    Exit status: 0 no damage, 1 the command failed, 3 damage found.

    \b
    Examples:
      spark-ckpt doctor /data/query
      spark-ckpt doctor s3://bucket/query --probe --json
    """
    storage, _ = CheckpointLocation.open(location).copy_source(None)
    with progress_bar("reading") as progress:
        report = examine(storage, everything=everything, probe=probe, earlier_states=earlier_state, progress=progress)
    session.output.show(DoctorResult(report))
    if report.verdict is Verdict.DAMAGED:
        click.get_current_context().exit(DAMAGED)
