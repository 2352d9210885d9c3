"""`python -m benchmarks.flink`, or `make bench-flink`: Nexmark on Flink SQL beside Structured Streaming with ours."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.flink import tables
from benchmarks.flink.answers import expected, session
from benchmarks.flink.inputs import Files, Input, Topic, flattened
from benchmarks.flink.releases import DEFAULT, RELEASES
from benchmarks.flink.running import BACKENDS, Answer, run
from benchmarks.flink.running import Setup as FlinkSetup
from benchmarks.flink.sql import QUERIES
from benchmarks.flink.tables import Figures, of_flink, of_ours
from benchmarks.nexmark.feeds import PARTITIONS, Topics
from benchmarks.nexmark.generator import Stream, prepare
from benchmarks.nexmark.plan import BATCH, Results, plan
from benchmarks.nexmark.running import Runner, Setting
from benchmarks.stores import machine
from benchmarks.stores.in_one_session import add_options
from benchmarks.stores.providers import OURS
from benchmarks.stores.runner import FLOOR_JAR, RunFailedError
from tests.support.kafka import KafkaBroker, connector_jars
from tests.support.topics import Topic as KafkaTopic


class WrongAnswerError(Exception):
    """An answer of Flink is not that of Spark's batch query.

    Args:
        query: name of the query.
        backend: set-up of Flink.
        found: digest of Flink's answer.
        wanted: digest of Spark's.
    """

    def __init__(self, query: str, backend: str, found: Answer, wanted: Answer) -> None:
        super().__init__(f"{query} on {backend} answers {found}, and Spark's batch query {wanted}")


def main() -> int:
    """Measures queries of Nexmark on Flink and on Structured Streaming with our provider, one after the other."""
    options = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leave no run behind
    release = RELEASES[options.flink]
    for needed in (FLOOR_JAR, release.folder / "classpath.txt"):
        if not needed.exists():
            raise SystemExit(f"{needed} is missing: run 'make bench-flink', which builds it")
    console = Console(highlight=False, stderr=options.json, width=None if sys.stdout.isatty() else 160)
    work = options.work.resolve()
    warmups = 6
    files = warmups + options.measured
    stream = Stream(options.events, files + 1, options.events // 10, options.seed)
    feed = prepare(work / "input", stream)
    names = sorted(feed.iterdir())[:files]
    setting = Setting(stream, warmups, options.measured, options.heap, kafka=options.kafka)
    with ExitStack() as stack:
        broker = stack.enter_context(KafkaBroker(work / "broker")) if options.kafka else None
        with session(work / "answers", connector_jars() if broker else ()) as spark:
            answers = {query: expected(spark, query, names) for query in options.only}
            events = Files(flattened(feed), files) if broker is None else _topic(spark, broker, names)
        return _measure(console, options, setting, events, answers)


def _topic(spark: SparkSession, broker: KafkaBroker, files: Sequence[Path]) -> Topic:
    """A topic with the events of files."""
    servers, name = broker.bootstrap_servers, "events"
    KafkaTopic(servers, "", name).create(PARTITIONS)
    Topics(servers, spark, files[0].parent).write(name, files)
    return Topic(servers, name)


def _measure(
    console: Console,
    options: argparse.Namespace,
    setting: Setting,
    events: Input,
    answers: Mapping[str, Answer],
) -> int:
    results, work = Results(options.results.resolve()), options.work.resolve()
    setup = FlinkSetup(RELEASES[options.flink], options.heap, options.session)
    feed = "topic" if options.kafka else "files"
    cluster = "a standalone session" if options.session else "the client's JVM"
    facts = {**machine.facts(), "heap": options.heap, "stream": setting.stream.name, "feed": feed}
    facts |= {"flink": setup.release.line, "flink_runs_in": cluster}
    number = (setting.warmups + options.measured) * options.events
    found: dict[str, dict[str, Figures]] = {}
    failed = 0
    for query in options.only:
        console.print(f"{query} ...", markup=False)
        runner = Runner(results, work, setting)
        records = list(runner.run(query, list(plan(query, [OURS.name], options.rounds))))
        found[query] = {tables.OURS: of_ours([one for one in records if one.run.provider != BATCH])}
        for backend in options.backends:
            log = results.log(f"{query}.{backend}")
            try:
                answer, rounds = run(query, backend, events, options.rounds, setup, work / "flink", log)
                if answer != answers[query]:
                    raise WrongAnswerError(query, backend, answer, answers[query])
                found[query][backend] = of_flink(rounds, number)
            except (RunFailedError, WrongAnswerError) as error:
                console.print(str(error), markup=False)
                failed += 1
        _write(results.path, found, facts)
    console.print(tables.table(found))
    console.print(
        "Answers of Flink in the table are those of Spark's batch queries. Checkpoints: ours are whole batches."
    )
    if options.json:
        print((results.path / "summary.json").read_text(encoding="utf-8"))
    return 1 if failed else 0


def _write(folder: Path, found: dict[str, dict[str, Figures]], facts: dict[str, object]) -> None:
    text = json.dumps(tables.to_json(found, facts), indent=1)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flink", description=main.__doc__)
    parser.add_argument("--only", nargs="+", choices=QUERIES, default=list(QUERIES), metavar="QUERY")
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS), metavar="BACKEND")
    parser.add_argument("--events", type=int, default=100_000, help="events per batch of ours (default: 100,000)")
    parser.add_argument("--measured", type=int, default=24, help="measured batches of ours (default: 24)")
    parser.add_argument("--flink", choices=RELEASES, default=DEFAULT.line, help=f"release (default: {DEFAULT.line})")
    parser.add_argument("--session", action="store_true", help="a standalone session instead of the client's JVM")
    parser.add_argument("--kafka", action="store_true", help="events as JSON from a topic instead of Parquet files")
    add_options(parser, "flink", heap="4g")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
