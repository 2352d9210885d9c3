"""A real Prometheus, from Debian's package, and its tool for rules."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from tests.support.ports import free_port
from tests.support.provider import REPOSITORY
from tests.support.waiting import eventually

CONF = REPOSITORY / "conf" / "prometheus"
RULES = CONF / "alerts.yml"

Sample = tuple[dict[str, str], float]
"""Labels and value."""


def program(name: str) -> str:
    """Path of `prometheus` or `promtool`; skips the test without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on this machine: apt-get install prometheus")
    return found


class Prometheus:
    """A server with our configuration, which scrapes and evaluates every second instead of every 15.

    Args:
        folder: for its data.
        target: host and port of the driver's UI.
    """

    def __init__(self, folder: Path, target: str) -> None:
        config = yaml.safe_load((CONF / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(CONF / name) for name in config["rule_files"]]
        (scraped,) = config["scrape_configs"]
        scraped["static_configs"] = [{"targets": [target]}]
        folder.mkdir()
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self._log = folder / "log"
        address = f"127.0.0.1:{free_port()}"
        self._api = f"http://{address}/api/v1/"
        command = [
            program("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--web.listen-address={address}",
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, f"--storage.tsdb.path={folder / 'data'}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def query(self, expression: str) -> list[Sample]:
        """Current value of a PromQL expression; empty while the server starts.

        Raises:
            ValueError: Prometheus refuses the expression.
        """
        data = self._get("query", query=expression)
        return [] if data is None else [(sample["metric"], float(sample["value"][1])) for sample in data["result"]]

    def await_data(self, expression: str) -> list[Sample]:
        """Value of an expression, once it has one."""
        return eventually(lambda: self.query(expression), what=lambda: f"{expression}\n{self.log()}", poll=0.2)

    def firing(self) -> set[str]:
        """Names of the alerts that fire."""
        data = self._get("alerts")
        alerts = [] if data is None else data["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def log(self) -> str:
        """Its log so far."""
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """Kills it."""
        self._process.kill()
        self._process.wait()

    def _get(self, path: str, **parameters: str) -> Any:
        assert self._process.poll() is None, self.log()
        try:
            with urlopen(f"{self._api}{path}?{urlencode(parameters)}") as response:
                return json.load(response)["data"]
        except URLError as e:
            if getattr(e, "code", None) in (400, 422):
                raise ValueError(f"{parameters}: {e.read().decode()}") from e  # type: ignore[attr-defined]
            return None
        except ConnectionError:
            return None
