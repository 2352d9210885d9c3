"""`--watch` of `list` and `history`, beside a query that runs between the readings."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.cli.commands.list import CheckpointList
from spark_ckpt.cli.options import Session
from spark_ckpt.cli.watch import follow
from spark_ckpt.clock import SystemClock
from spark_ckpt.location.find import CheckpointLocation
from tests.cli.json_schema import validator
from tests.support.cli import Run, run
from tests.support.queries import Query, make_query


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Location with checkpoints 4 to 7, of batches 2 to 5."""
    return make_query(tmp_path / "q")


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Runs a command with something that happens in each pause; Ctrl-C ends the last one."""

    def run_beside(*arguments: object, events: list[Callable[[], object]]) -> Run:
        left = iter(events)

        def pause(_: SystemClock, seconds: float) -> None:
            event = next(left, None)
            if event is None:
                raise KeyboardInterrupt
            event()

        with monkeypatch.context() as patch:
            patch.setattr(SystemClock, "sleep", pause)
            return run(*arguments)

    return run_beside


def batches(query: Query, *numbers: int) -> list[Callable[[], object]]:
    return [lambda number=number: query.run(range(number, number + 1)) for number in numbers]  # type: ignore[misc]


def nothing() -> None:
    """Nothing happens."""


def ids(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines]


@pytest.mark.parametrize("command", ["list", "history"])
def test_only_new_lines_are_appended(query: Query, watch: Callable[..., Run], command: str) -> None:
    location = query.storage.location
    before = ids(run(command, location).stdout.splitlines())
    shown = watch(command, location, "--watch", events=[*batches(query, 6), nothing, *batches(query, 7)])
    assert (shown.status, shown.stderr) == (130, "")
    assert ids(shown.stdout.splitlines()) == [*before, "8", "9"]


@pytest.mark.parametrize("command", ["list", "history"])
def test_each_change_is_an_object_on_a_line(query: Query, watch: Callable[..., Run], command: str) -> None:
    shown = watch(command, query.storage.location, "--watch", "1", "--json", events=[nothing, *batches(query, 6)])
    first, second = [json.loads(line) for line in shown.stdout.splitlines()]
    for each in (first, second):
        validator(command).validate(each)
    if command == "list":
        assert [record["id"] for record in first["checkpoints"]] == [4, 5, 6, 7]
        assert [record["id"] for record in second["checkpoints"]] == [8]
    else:
        # The next checkpoint has the time in which the one before became durable.
        assert first["history"][-1]["completing_ms"] is None
        assert [(each["checkpoint_id"], each["completing_ms"] is None) for each in second["history"]] == [
            (7, False),
            (8, True),
        ]


def test_sources_of_new_checkpoints(query: Query, watch: Callable[..., Run]) -> None:
    shown = watch("list", query.storage.location, "--sources", "--last", 1, "--watch", events=batches(query, 6))
    lines = shown.stdout.splitlines()
    headers = [at for at, line in enumerate(lines) if line == "source positions:"]
    assert len(headers) == 2
    assert (lines[1].split()[0], lines[headers[1] - 1].split()[0]) == ("7", "8")
    assert {line.split()[0] for line in lines[headers[1] + 2 :]} == {"8"}


@pytest.mark.parametrize("command", ["list", "history"])
def test_a_query_that_completes_its_first_checkpoint(tmp_path: Path, watch: Callable[..., Run], command: str) -> None:
    query = make_query(tmp_path, batches=0)
    lines = watch(command, tmp_path, "--watch", events=batches(query, 0, 1)).stdout.splitlines()
    assert lines[0] == f"{tmp_path}: no checkpoint has completed yet"
    assert ids(lines[1:]) == ["ID", "2", "3"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_location_that_disappears_and_returns(
    query: Query, tmp_path: Path, watch: Callable[..., Run], options: tuple[str, ...]
) -> None:
    away = tmp_path / "away"
    events = [
        lambda: (tmp_path / "q").rename(away),
        nothing,
        lambda: away.rename(tmp_path / "q"),
        *batches(query, 6),
    ]
    shown = watch("list", tmp_path / "q", "--watch", *options, events=events)
    assert shown.status == 130
    assert len(shown.stderr.splitlines()) == 1  # although two readings failed
    assert "no such file or directory" in shown.stderr
    if options:
        assert json.loads(shown.stderr)["error"] == "LocationNotFoundError"
    assert ("8" in ids(shown.stdout.splitlines())) or '"id": 8' in shown.stdout


def test_the_first_reading_must_succeed(tmp_path: Path, watch: Callable[..., Run]) -> None:
    shown = watch("list", tmp_path / "absent", "--watch", events=[nothing])
    assert (shown.status, shown.stdout) == (1, "")
    assert "no such file or directory" in shown.stderr


def test_a_terminal_shows_the_current_state(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    class Stop(Exception):  # noqa: N818
        pass

    class Pauses(SystemClock):
        events = iter([nothing, *batches(query, 6)])

        def sleep(self, seconds: float) -> None:
            event: Any = next(self.events, None)
            if event is None:
                raise Stop
            event()

    terminal, cleared = Terminal(), []
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("click.clear", lambda: cleared.append(len(terminal.getvalue())))
    place = query.storage.location
    with pytest.raises(Stop):
        follow(Session(), 2, lambda: CheckpointList(place, CheckpointLocation.open(place).checkpoints()), Pauses())
    assert len(cleared) == 2  # not for the reading without a change
    last = terminal.getvalue()[cleared[1] :]
    assert last.startswith("every 2 s; Ctrl-C ends\n")
    assert "8" in last
    assert "5" in last


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--watch", "0"), "is not between 100ms and 24h"),
        (("--watch", "nan"), "Put --watch after LOCATION"),
        (("--watch", "100d"), "is not between 100ms and 24h"),
        (("--last", "0"), "--last"),
    ],
)
@pytest.mark.parametrize("command", ["list", "history"])
def test_wrong_usage(tmp_path: Path, command: str, options: tuple[str, ...], message: str) -> None:
    shown = run(command, tmp_path, *options)
    assert (shown.status, message in shown.stderr) == (2, True)


def test_a_watch_is_of_all_checkpoints(query: Query) -> None:
    for options in (("--watch",), ("--last", 2)):
        shown = run("history", query.storage.location, "--id", 4, *options)
        assert (shown.status, "mutually exclusive" in shown.stderr) == (2, True)


@pytest.mark.parametrize("command", ["list", "history"])
def test_the_last_checkpoints(query: Query, command: str) -> None:
    location = query.storage.location
    every = run(command, location).stdout.splitlines()
    assert ids(run(command, location, "--last", 2).stdout.splitlines()) == ids([every[0], *every[-2:]])
    assert ids(run(command, location, "--last", 99).stdout.splitlines()) == ids(every)


def test_sources_of_the_last_checkpoints(query: Query) -> None:
    shutil.rmtree(Path(query.storage.location, "ckpt", "chk-4"))
    (record,) = run("list", query.storage.location, "--sources", "--last", 1, "--json").json["checkpoints"]
    assert (record["id"], len(record["sources"])) == (7, 1)
