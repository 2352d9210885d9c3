"""`spark-ckpt evolve`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.options import Session, dry_run_option, force_option, json_option, pass_session, path_argument
from spark_ckpt.cli.output import Result
from spark_ckpt.cli.query_file import QueryFile, load_query
from spark_ckpt.cli.results.described import described
from spark_ckpt.cli.results.metadata_json import JsonObject
from spark_ckpt.cli.spark_session import query_settings, session_options, spark_session
from spark_ckpt.cli.terminal import progress_bar
from spark_ckpt.evolution import Evolution, EvolvedSource, EvolvedStore
from spark_ckpt.evolution.choices import SourceChoice
from spark_ckpt.evolution.evolving import evolve
from spark_ckpt.figures import count, human_size

_START = "start"


@dataclass(frozen=True, slots=True)
class EvolutionResult(Result):
    """An evolution, or its dry run.

    Args:
        evolution: what becomes of each state and source.
    """

    evolution: Evolution

    def to_json(self) -> JsonObject:
        """States and sources, and the new checkpoint except after a dry run."""
        return described("evolve", self.evolution)

    def render(self) -> Iterator[str]:
        """What becomes of each state and source, and what to do next."""
        evolution = self.evolution
        yield f"{plain(evolution.location)}: from checkpoint {evolution.from_checkpoint}"
        for store in evolution.stores:
            yield _store_line(store)
            yield from (f"    {plain(note)}" for note in store.notes)
        yield from (plain(each) for each in evolution.dropped)
        yield from (_source_line(source) for source in evolution.sources)
        yield from (f"watermark: {plain(each)}" for each in evolution.watermarks)
        if evolution.batch_id is None:
            yield "nothing changes: start the changed query as it is"
        elif evolution.checkpoint_id is None:
            yield "nothing was written"
        else:
            where, back = "", ""
            if evolution.new_location is None:
                command = f"spark-ckpt rollback {plain(evolution.location)} --id {evolution.from_checkpoint}"
                back = f". The way back: {command}"
            else:
                where = f" with checkpointLocation {plain(evolution.new_location)}"
            yield (
                f"new checkpoint {evolution.checkpoint_id}, batches {evolution.batch_id - 1} and {evolution.batch_id}: "
                f"{human_size(evolution.new_bytes)} written. Start the changed query{where}{back}"
            )


def _store_line(store: EvolvedStore) -> str:
    name = f"{store.operator_id}/{plain(store.store)} ({plain(store.name)})"
    if store.from_operator is None:
        return f"{name}: new"
    how = "rewritten" if store.is_rewritten else "files kept"
    return f"{name}: {count(store.rows, 'row')} of operator {store.from_operator}, {how}"


def _source_line(source: EvolvedSource) -> str:
    title = f"source {source.number} ({plain(source.text)})"
    if source.from_source is not None:
        return f"{title}: continues where source {source.from_source} stands"
    return f"{title}: begins at {'its own start' if source.position is None else plain(source.position)}"


def _pairs(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Texts by text, divided at the first equals sign outside parentheses."""
    pairs = {}
    for value in values:
        depth = 0
        for index, character in enumerate(value):
            depth += (character == "(") - (character == ")")
            if character == "=" and depth == 0:
                pairs[value[:index].strip()] = value[index + 1 :].strip()
                break
        else:
            raise click.BadParameter(f"'{value}' is not {parameter.metavar}", param=parameter)
    return pairs


def _numbered(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[int, str]:
    pairs = _pairs(context, parameter, values)
    if wrong := [number for number in pairs if not number.isdecimal()]:
        raise click.BadParameter(f"'{wrong[0]}' is no number", param=parameter)
    return {int(number): text for number, text in pairs.items()}


def _values(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, object]:
    """JSON by text; other text stands for itself."""
    return {name: _json(text) for name, text in _pairs(context, parameter, values).items()}


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _source(text: str) -> SourceChoice:
    if text == _START:
        return None
    return int(text) if text.isdecimal() else text


@click.command("evolve")
@path_argument("location")
@click.option("--query", "query_file", type=QueryFile(), required=True, help="Function that returns the changed query.")
@click.option("--output-mode", metavar="MODE", help="Output mode.  [default: that of the writer, or append]")
@click.option("--new-location", metavar="LOCATION", help="Continue at a new, empty location.")
@click.option("--earlier-query", type=QueryFile(), help="The earlier query, if its checkpoint has no meaning.")
@click.option(
    "--function",
    "functions",
    multiple=True,
    metavar="NEW=OLD",
    callback=_pairs,
    help="Function that another continues.",
)
@click.option(
    "--initial", multiple=True, metavar="NEW=JSON", callback=_values, help="Buffers with which a function begins."
)
@click.option(
    "--key", "keys", multiple=True, metavar="NEW=OLD", callback=_pairs, help="Key column with the same values."
)
@click.option(
    "--value", "values", multiple=True, metavar="NAME=JSON", callback=_values, help="Value of a new column in old rows."
)
@click.option(
    "--operator", "operators", multiple=True, metavar="NEW=OLD", callback=_numbered, help="Operator that continues."
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NUMBER=POSITION",
    callback=_numbered,
    help="Where a source begins: start, the number of an earlier source, or an offset.",
)
@click.option("--drop", multiple=True, type=int, metavar="OPERATOR", help="Earlier operator to leave behind.")
@session_options
@force_option
@dry_run_option
@json_option
@pass_session
def evolve_query(
    session: Session,
    location: str,
    query_file: tuple[Path, str],
    output_mode: str | None,
    new_location: str | None,
    earlier_query: tuple[Path, str] | None,
    functions: dict[str, str],
    initial: dict[str, object],
    keys: dict[str, str],
    values: dict[str, object],
    operators: dict[int, str],
    sources: dict[int, str],
    drop: tuple[int, ...],
    master: str | None,
    conf: Mapping[str, str],
    force: bool,
    dry_run: bool,
) -> None:
    """Let a changed query continue from earlier state.

    LOCATION is the checkpointLocation of the stopped query, as a path or URL. FILE:NAME is a function in a file of
    Python that returns the changed query: its DataFrame, or its DataStreamWriter. It may take the Spark session. The
    query is planned, not started: no source is asked, and no data is read.

    Each state of the earlier query is found again by what it means: its keys and functions down to the columns of the
    sources. State whose types or columns change is rewritten; other state keeps its files. What the plans do not tell
    is a question with the option that answers it, and what cannot be right is refused, with all reasons at once. Look
    at --dry-run first: it takes seconds.

    An empty OLD begins without input or state: --function 'avg(w)=', --operator 1=.

    Spark's logs get two batches without input. To take an evolution back, roll back to the checkpoint before it, and
    start the earlier query. If the command is interrupted, Spark refuses to start a query: run the same command again.

    \b
    Exit status: 0 done, 1 failed, 4 a driver may be running, 5 refused; 4 and 5 change nothing.

    \b
    Examples:
      spark-ckpt evolve /data/counts --query job.py:build --dry-run
      spark-ckpt evolve /data/counts --query job.py:build --function 'avg(w)=' --source 1=start
      spark-ckpt evolve s3://bucket/counts --query job.py:build --output-mode update --drop 1
    """
    if wrong := [name for name, value in initial.items() if not isinstance(value, list)]:
        raise click.UsageError(f"--initial '{wrong[0]}=[...]' takes a JSON list with a value for each buffer")
    if wrong_number := [text for text in operators.values() if text and not text.isdecimal()]:
        raise click.UsageError(f"--operator takes numbers, not '{wrong_number[0]}'")
    with spark_session("spark-ckpt evolve", master, conf) as spark, progress_bar("converting") as progress:
        evolution = evolve(
            load_query(query_file, spark),
            location,
            output_mode=output_mode,
            new_location=new_location,
            earlier_query=None if earlier_query is None else load_query(earlier_query, spark),
            functions={new: old or None for new, old in functions.items()},
            initial={name: value for name, value in initial.items() if isinstance(value, list)},
            keys=keys,
            values=values,
            operators={new: int(old) if old else None for new, old in operators.items()},
            sources={number: _source(text) for number, text in sources.items()},
            drop=drop,
            settings=query_settings(conf),
            force=force,
            dry_run=dry_run,
            progress=progress,
        )
    session.output.show(EvolutionResult(evolution))
