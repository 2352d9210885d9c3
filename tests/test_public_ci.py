"""CI files of the public hosting match the Makefile and the supported Spark releases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from spark_ckpt.jars import SUPPORTED_SPARK
from tests.suites.minors import WITH_SUITES

REPOSITORY = Path(__file__).parents[1]
GITHUB = REPOSITORY / ".github"
NIGHTLY = GITHUB / "workflows" / "nightly.yml"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
OFFICIAL = re.compile(
    r"(?:actions/[\w-]+@v\d+|pypa/gh-action-pypi-publish@release/v1|\./\.github/workflows/[\w-]+\.yml)"
)

by_name = pytest.mark.parametrize("workflow", WORKFLOWS, ids=[path.stem for path in WORKFLOWS])


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def makefile() -> str:
    return (REPOSITORY / "Makefile").read_text(encoding="utf-8")


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in parsed(workflow)["jobs"].values() for step in [job, *job.get("steps", ())]]


def commands(workflow: Path) -> list[str]:
    """Shell commands of a workflow, with the values of a matrix of commands."""
    jobs = parsed(workflow)["jobs"].values()
    matrices = [job["strategy"]["matrix"] for job in jobs if "strategy" in job]
    runs = [step["run"] for step in steps(workflow) if "run" in step]
    return [*runs, *(command for matrix in matrices for command in matrix.get("command", ()))]


def test_there_is_a_workflow_for_lint_nights_releases_and_tests() -> None:
    assert [path.stem for path in WORKFLOWS] == ["lint", "nightly", "release", "test"]


@by_name
def test_workflows_call_make_targets_that_exist(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", makefile(), re.MULTILINE))
    called = set(re.findall(r"^make ([a-z-]+)", "\n".join(commands(workflow)), re.MULTILINE))
    assert called <= targets


@by_name
def test_workflows_use_official_actions_by_version(workflow: Path) -> None:
    for step in steps(workflow):
        if "uses" in step:
            assert OFFICIAL.fullmatch(step["uses"]), step["uses"]


def test_the_tests_run_with_every_supported_minor_version_of_spark() -> None:
    matrix = parsed(GITHUB / "workflows" / "test.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert set(matrix["spark"]) == set(SUPPORTED_SPARK)


def test_the_nights_have_the_long_runs_and_all_of_make_test_versions() -> None:
    jobs = parsed(NIGHTLY)["jobs"]
    assert set(jobs["minors"]["strategy"]["matrix"]["spark"]) == set(SUPPORTED_SPARK)
    run = "\n".join(commands(NIGHTLY))
    suites = {f"spark-suites SPARK={minor}" for minor in WITH_SUITES}
    assert set(re.findall(r"^make (spark-suites SPARK=\S+)", run, re.MULTILINE)) == suites
    recipe = re.search(r"^test-versions: ([a-z -]+?) *##.*\n((?:\t.*\n)+)", makefile(), re.MULTILINE)
    assert recipe is not None
    parts = {*recipe.group(1).split(), *re.findall(r"\b(?:test|spark)-[a-z-]+", recipe.group(2))} - {"test"}
    assert len(parts) >= 7
    for target in {*parts, "simulate", "faults", "soak", "soak-cluster"}:
        assert re.search(rf"^make {target}(?![a-z-])", run, re.MULTILINE), target


def test_the_nights_may_fail_on_the_next_spark_only() -> None:
    jobs = parsed(NIGHTLY)["jobs"]
    assert [name for name, job in jobs.items() if job.get("continue-on-error")] == ["next-spark"]
    newest = jobs["next-spark"]["env"]["MINOR"]
    assert newest == list(SUPPORTED_SPARK)[-1]
    build_hook = (REPOSITORY / "jvm-shim" / "hatch_build.py").read_text(encoding="utf-8")
    assert f'WITHOUT_ARTIFACTS = {{"{newest}"}}' in build_hook, "its profile takes the jars of PySpark"
    assert re.search(rf"^PYSPARK_{re.escape(newest)} := ", makefile(), re.MULTILINE)
    assert all(job["timeout-minutes"] <= 360 for job in jobs.values())


def test_pre_commit_runs_what_make_lint_runs() -> None:
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile(), re.MULTILINE)
    assert recipe is not None
    lint = [
        line.strip()
        .removeprefix("@")
        .replace("$(RUN)", ".venv/bin/python")
        .replace("$(MAKE) --no-print-directory", "make")
        for line in recipe.group(1).splitlines()
    ]
    hooks = [hook for repo in parsed(REPOSITORY / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert sorted(hook["entry"] for hook in hooks) == sorted(lint)
    assert all(hook["language"] == "system" for hook in hooks)


def test_issue_forms_have_what_the_hosting_demands() -> None:
    for name in ("bug.yml", "feature.yml"):
        form = parsed(GITHUB / "ISSUE_TEMPLATE" / name)
        assert form["name"]
        assert form["description"]
        assert all({"type", "attributes"} <= set(field) for field in form["body"])
        ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
        assert len(ids) == len(set(ids))
