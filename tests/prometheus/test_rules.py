"""Configuration and alert rules for Prometheus, judged by its own tool."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import yaml

from tests.support.prometheus import CONF, RULES, program
from tests.support.provider import REPOSITORY

TESTS = Path(__file__).with_name("rules_test.yml")


def promtool(*arguments: str, folder: Path) -> str:
    ended = subprocess.run([program("promtool"), *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_prometheus_accepts_the_configuration_and_the_rules() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "config", "prometheus.yml", folder=CONF)


def test_each_rule_fires_when_it_has_to_and_only_then(tmp_path: Path) -> None:
    for file in (RULES, TESTS):
        shutil.copy(file, tmp_path)
    assert "SUCCESS" in promtool("test", "rules", TESTS.name, folder=tmp_path)


def test_each_rule_has_a_test() -> None:
    cases = [case for group in yaml.safe_load(TESTS.read_text())["tests"] for case in group["alert_rule_test"]]
    fires = {case["alertname"] for case in cases if case.get("exp_alerts")}
    assert fires == {rule["alert"] for rule in rules()}


def test_the_page_lists_the_rules() -> None:
    page = (REPOSITORY / "docs" / "metrics.md").read_text()
    assert {word for word in page.split("`") if word.startswith("SparkCkpt")} == {rule["alert"] for rule in rules()}


def rules() -> list[dict[str, str]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    found: list[dict[str, str]] = group["rules"]
    return found
