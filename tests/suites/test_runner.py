from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.suites import jvm
from tests.suites.results import End, Outcome, SuiteResult
from tests.suites.runner import run_suites
from tests.suites.suites import Suite
from tests.support.provider import CKPT, PROVIDER_KEY

FAKE = Path(__file__).with_name("fake_java.py")
KEEP = {"spark.some.setting": "1"}


@pytest.fixture(autouse=True)
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Substitutes the fake program for Java; returns the file with the command lines of its runs."""
    commands, folder = tmp_path / "commands", tmp_path / "bin"
    folder.mkdir()
    program = folder / "java"
    program.write_text(f'#!/bin/sh\necho "$*" >> "{commands}"\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setattr(jvm, "class_path", lambda: "nothing")
    return commands


def _run(tmp_path: Path, *suites: Suite) -> dict[str, SuiteResult]:
    return {result.name: result for result in run_suites(suites, tmp_path / "work", CKPT)}


def test_suites_share_jvms_where_their_settings_are_the_same(tmp_path: Path, java: Path) -> None:
    suites = [Suite("a.One"), Suite("a.Two", settings=KEEP), Suite("b.Three"), Suite("b.Four", settings=KEEP)]
    results = _run(tmp_path, *suites)
    assert list(results) == ["One", "Three", "Two", "Four"]
    assert all(result.is_good and result.seconds == 1.5 for result in results.values())
    first, second = java.read_text().splitlines()
    assert "-s a.One -s b.Three" in first and "-Dspark.some.setting=1" not in first
    assert "-s a.Two -s b.Four" in second and "-Dspark.some.setting=1" in second
    assert f"-D{PROVIDER_KEY}={CKPT.class_name} " in first and f"-Dsuites.provider={CKPT.class_name} " in first
    assert not list((tmp_path / "work").iterdir()), "logs of what is good stay"


def test_what_fails_runs_once_more_by_itself(tmp_path: Path, java: Path) -> None:
    results = _run(tmp_path, Suite("a.Flaky"), Suite("a.Bad"), Suite("a.Good"))
    flaky, bad, good = (results[name] for name in ("Flaky", "Bad", "Good"))
    assert [case.flaky for case in flaky.cases] == [True]
    assert flaky.is_good and flaky.count(Outcome.PASSED) == 1 and flaky.seconds == 3.0
    assert not bad.is_good and [case.error for case in bad.failures] == ["1 did not equal 2"]
    assert good.is_good and good.seconds == 1.5
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"jvm-1", "Bad-again"}, "logs of what is good stay"
    together, *again = java.read_text().splitlines()
    assert "-Dsuites.localCommands=true" in together
    assert ["-s a.Flaky -t first" in again[0], "-s a.Bad -t first" in again[1]] == [True, True]
    assert all("-Dsuites.localCommands=false" in line for line in again)


def test_an_uncaught_error_fails_its_suite(tmp_path: Path) -> None:
    results = _run(tmp_path, Suite("a.Losing"), Suite("a.Good"))
    lost = 'Losing: uncaught "spark-ckpt-merge-0" java.lang.IllegalStateException: lost'
    assert results["Losing"].problems == [lost] and results["Good"].is_good
    assert (tmp_path / "work" / "jvm-1").exists()


def test_a_suite_that_hangs_or_crashes_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    hanging, crashing = Suite("a.Hanging", limit=5), Suite("a.Crashing")
    results = _run(tmp_path, Suite("a.Good"), hanging, crashing, Suite("a.Aborted"), Suite("a.Last"))
    assert {name: result.end for name, result in results.items()} == {
        "Good": End.COMPLETED,
        "Hanging": End.TIMED_OUT,
        "Crashing": End.CRASHED,
        "Aborted": End.ABORTED,
        "Last": End.COMPLETED,
    }
    for name in ("Hanging", "Crashing"):
        assert [(case.name, case.outcome) for case in results[name].cases] == [("first", Outcome.FAILED)]
        assert not results[name].is_good
    assert not results["Aborted"].is_good
    assert results["Aborted"].problems == ["Aborted: aborted: no Spark"]


def test_a_jvm_that_begins_no_suite_is_a_crash_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "java"
    program.write_text("#!/bin/sh\nexit 1\n")
    results = _run(tmp_path, Suite("a.Good"), Suite("a.Last"))
    assert [result.end for result in results.values()] == [End.CRASHED, End.CRASHED]


def test_a_result_can_be_read_as_json(tmp_path: Path) -> None:
    result = _run(tmp_path, Suite("a.Bad"))["Bad"]
    result.write(tmp_path)
    read = json.loads((tmp_path / "Bad.json").read_text())
    assert (read["suite"], read["end"]) == ("a.Bad", "completed")
    assert [(case["name"], case["outcome"], case["providers"]) for case in read["cases"]] == [("first", "failed", 2)]
