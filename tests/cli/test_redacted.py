"""No command prints credentials of its arguments, whatever fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_ckpt import redaction
from spark_ckpt.location.find import CheckpointLocation
from tests.support.cli import Run, run
from tests.support.queries import make_query
from tests.support.s3 import S3

MARKER = "hunter2"
SETTING = "spark.sql.streaming.stateStore.ckpt.retained"
UNKNOWN_HOST = f"abfss://user:{MARKER}-and-more@host/q"
"""Place that takes seconds to fail."""

PLACES = [
    f"s3://AKIAUSER:{MARKER}-and-more@bucket/q",
    f"s3://AKIAUSER:{MARKER}/{MARKER}+more=@bucket/q",
    f"https://user:{MARKER}-and-more@127.0.0.1:1/q",
    f"http://127.0.0.1:1/q?X-Amz-Signature={MARKER}&sig={MARKER}",
    f"gopher://user:{MARKER}-and-more@host/q",
    UNKNOWN_HOST,
    f"hdfs://user:{MARKER}-and-more@127.0.0.1:1/q",
]
COMMANDS = [
    ("list",),
    ("inspect",),
    ("history",),
    ("verify",),
    ("state",),
    ("read",),
    ("gc",),
    ("rollback", "--id", "1"),
    ("rescale", "--partitions", "8"),
    ("list", "--id"),
    ("frobnicate",),
    ("list", "--no-such-option"),
    ("list", "one-too-many"),
]


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    redaction._known.clear()


@pytest.fixture
def location(tmp_path: Path) -> Path:
    make_query(tmp_path / "q")
    return tmp_path / "q"


def assert_redacted(done: Run) -> None:
    assert done.status != 0
    assert done.stderr
    assert MARKER not in done.stdout + done.stderr


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_place_that_cannot_be_read(place: str, options: tuple[str, ...], s3: S3) -> None:
    for command in COMMANDS[:1] if place == UNKNOWN_HOST else COMMANDS:
        assert_redacted(run(*command, *options, place))
    assert_redacted(run("diff", *options, place, 1, 2))


@pytest.mark.parametrize(("place", "options"), [(PLACES[1], ()), (PLACES[3], ("--json",))])
def test_a_place_that_cannot_be_written(place: str, options: tuple[str, ...], location: Path, s3: S3) -> None:
    new = location.parent / "new"
    for command in (("savepoint",), ("restore",), ("convert", "--to-version", 3), ("relocate", place, "/x")):
        assert_redacted(run(*command, *options, location, place))
        assert_redacted(run(*command, *options, place, new))
    assert_redacted(run("read", *options, location, "--operator", 0, "--to-parquet", place))
    assert_redacted(run("rescale", location, "--partitions", 8, "--conf", f"x={place}", *options))
    assert_redacted(run("rescale", location, "--partitions", 8, "--conf", f"{SETTING}={place}", *options))


def test_a_mistake_in_the_program_itself(location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(place: str) -> None:
        raise RuntimeError(f"{MARKER}-and-more of {place}")

    monkeypatch.setattr(CheckpointLocation, "open", fails)
    done = run("list", PLACES[0])
    assert_redacted(done)
    assert done.status == 1
    assert "RuntimeError: *** of s3://***@bucket/q" in done.stderr
    assert "Traceback" in done.stderr


def test_state_is_shown_as_it_is(tmp_path: Path) -> None:
    from spark_ckpt.format.segments import Section
    from tests.cli.states import FIRST, KEY, VALUE
    from tests.support.state_location import StateLocation, row

    url = "https://host/x?token=a-value-of-the-query"
    location = StateLocation(tmp_path, {"default": (KEY, VALUE)})
    location.commit(Section(((row(KEY, url, 0), FIRST),), ""), rows=1)
    assert url in run("read", location.path).stdout
    assert url in run("read", location.path, "--json").stdout
