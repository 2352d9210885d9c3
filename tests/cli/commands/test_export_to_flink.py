from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.cli.results.savepoint_export import SavepointExportResult
from spark_ckpt.flink.export.export_savepoint import ExportedState, FlinkExport
from spark_ckpt.flink.export.operator_id import operator_id_of
from tests.docs.made_up import make_totals
from tests.support.cli import run

FLINK = ("--format", "flink", "--uid", "totals", "--key", "string")


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Location of a stopped query."""
    make_totals(tmp_path / "q", "user")
    return tmp_path / "q"


def test_the_output_has_all_that_a_job_declares(location: Path, tmp_path: Path) -> None:
    done = run("export", location, tmp_path / "s", *FLINK)
    first, operator, key, state, java, columns, source, offset, files, advice = done.stdout.splitlines()
    assert first == f"{location}: checkpoint 24 of batch 22, operator 0 (stateStoreSave), exported to {tmp_path / 's'}"
    assert operator.startswith("  operator ")
    assert operator.endswith(", uid totals, max parallelism 128")
    assert key == "  keyBy: Types.STRING"
    assert state == "  aggregate: 12 rows"
    assert java.startswith('    new ValueStateDescriptor<>("aggregate", InternalTypeInfo.ofFields(new BigIntType(), ')
    assert columns == "    columns: count, count_2, sum, sum_2, max, max_2"
    assert (source, offset) == ("  source 0 (file)", "    offset 22")
    assert files.startswith("3 files, ")
    assert advice == "start the Flink job from this savepoint, and do not start the query again"
    shown = run("read", tmp_path / "s", "--limit", 0, "--json").json
    assert len(shown["rows"]) == 12


def test_a_dry_run_prints_the_same_and_writes_nothing(location: Path, tmp_path: Path) -> None:
    planned = run("export", location, tmp_path / "s", *FLINK, "--dry-run")
    assert not (tmp_path / "s").exists()
    done = run("export", location, tmp_path / "s", *FLINK)
    lines = planned.stdout.replace("would be exported", "exported").splitlines()
    assert lines == done.stdout.replace("aggregate: 12 rows", "aggregate").splitlines()[:-2]


def test_sources_with_a_uid(location: Path, tmp_path: Path) -> None:
    for number, uid in enumerate(("files", "0=files")):
        done = run("export", location, tmp_path / str(number), *FLINK, "--source-uid", uid)
        assert f"  source 0 (file): operator {operator_id_of('files').hex()}, uid files" in done.stdout.splitlines()
    refused = run("export", location, tmp_path / "s", *FLINK, "--source-uid", "1=files")
    assert refused.status == 1
    assert "no source '1'; available: 0" in refused.stderr


def test_all_options(location: Path, tmp_path: Path) -> None:
    hexadecimal = bytes(range(16)).hex()
    shown = run(
        *("export", location, tmp_path / "s", "--format", "flink", "--operator-id", hexadecimal, "--key", "rowdata"),
        *("--value", "row", "--max-parallelism", 200, "--operator", 0, "--id", 5, "--force", "--json"),
    ).json
    assert shown["flink_operator"] == {
        "uid": None,
        "operator_id": hexadecimal,
        "max_parallelism": 200,
        "key": "InternalTypeInfo.ofFields(new VarCharType(VarCharType.MAX_LENGTH))",
    }
    assert (shown["checkpoint_id"], shown["files"]) == (5, 3)
    assert shown["states"][0]["java"].startswith('new ValueStateDescriptor<>("aggregate", Types.ROW_NAMED(')


def test_the_aggregate_of_flink_sql(location: Path, tmp_path: Path) -> None:
    options = ("--format", "flink", "--uid", "sql_group-aggregate", "--key", "rowdata", "--sql-aggregate")
    shown = run("export", location, tmp_path / "s", *options, "--json").json
    assert [state["name"] for state in shown["states"]] == ["accState"]


def test_a_refused_key_has_a_status_of_its_own(location: Path, tmp_path: Path) -> None:
    refused = run("export", location, tmp_path / "s", "--format", "flink", "--uid", "totals", "--key", "long", "--json")
    assert refused.status == 5
    assert refused.error["error"] == "UnsupportedForFlinkError"
    assert "not long: use --key tuple or --key rowdata" in refused.error["reason"]
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--format", "flink", "--uid", "x"), "--format flink needs --key"),
        (("--format", "flink", "--key", "long"), "--format flink needs either --uid or --operator-id"),
        ((*FLINK, "--operator-id", "00" * 16), "--format flink needs either --uid or --operator-id"),
        (("--format", "flink", "--operator-id", "00", "--key", "long"), "'00' is not 32 hexadecimal digits"),
        (("--format", "flink", "--operator-id", "z" * 32, "--key", "long"), "is not 32 hexadecimal digits"),
        ((*FLINK, "--master", "local"), "--master and --conf are for a Spark job"),
        ((*FLINK, "--max-parallelism", "40000"), "40000 is not in the range 1<=x<=32768"),
        (("--format", "spark-hdfs", "--key", "long"), "--key is for --format flink only"),
        (("--format", "spark-hdfs", "--id", "5"), "--id is for --format flink only"),
        (("--format", "spark-hdfs", "--source-uid", "x"), "--source-uid is for --format flink only"),
        (("--format", "spark-hdfs", "--sql-aggregate"), "--sql-aggregate is for --format flink only"),
    ],
)
def test_wrong_usage(location: Path, tmp_path: Path, options: tuple[str, ...], reason: str) -> None:
    refused = run("export", location, tmp_path / "s", *options)
    assert refused.status == 2
    assert reason in refused.stderr
    assert not (tmp_path / "s").exists()


def test_timers_and_expired_values_are_counted() -> None:
    states = (
        ExportedState("t", "EVENT_TIMER", "$t", "// nothing", "they fire", 1, 0),
        ExportedState("count", "VALUE", "count", "new", "", 2, 1),
    )
    exported = FlinkExport("/x", "/y", False, 1, 0, 0, "tws", "u", "00", 128, "Types.LONG", states, (), 3, 2048)
    lines = list(SavepointExportResult(exported).render())
    assert lines[3:7] == ["  t: 1 timer", "    // nothing", "    they fire", "  count: 2 rows, 1 expired one left out"]


def test_an_operator_that_is_not_there(location: Path, tmp_path: Path) -> None:
    refused = run("export", location, tmp_path / "s", *FLINK, "--operator", 7)
    assert refused.status == 1
    assert "no stateful operator 7; available: 0 (stateStoreSave)" in refused.stderr
