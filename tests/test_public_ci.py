"""CI files of the public hosting match the Makefile and the supported Spark releases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from spark_ckpt.jars import SUPPORTED_SPARK

REPOSITORY = Path(__file__).parents[1]
GITHUB = REPOSITORY / ".github"
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


def test_there_is_a_workflow_for_lint_tests_and_releases() -> None:
    assert [path.stem for path in WORKFLOWS] == ["lint", "release", "test"]


@by_name
def test_workflows_call_make_targets_that_exist(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", makefile(), re.MULTILINE))
    commands = "\n".join(step["run"] for step in steps(workflow) if "run" in step)
    assert set(re.findall(r"^make ([a-z-]+)", commands, re.MULTILINE)) <= targets


@by_name
def test_workflows_use_official_actions_by_version(workflow: Path) -> None:
    for step in steps(workflow):
        if "uses" in step:
            assert OFFICIAL.fullmatch(step["uses"]), step["uses"]


def test_the_tests_run_with_every_supported_minor_version_of_spark() -> None:
    matrix = parsed(GITHUB / "workflows" / "test.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert set(matrix["spark"]) == set(SUPPORTED_SPARK)


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
