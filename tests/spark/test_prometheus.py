"""Metrics of checkpoints in a real Prometheus and over JMX: panels of the dashboard, and alerts (docs/metrics.md)."""

from __future__ import annotations

import json
import math
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from spark_ckpt.clock import SystemClock
from spark_ckpt.completed import Owner
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.location.open_store import make_store
from spark_ckpt.storage import LocalStorage
from tests.spark.jobs.measured_queries import OTHER, RESTARTED
from tests.support.processes import DriverJob, kill
from tests.support.prometheus import Prometheus, program
from tests.support.provider import REPOSITORY
from tests.support.waiting import eventually

SETTINGS = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.metrics.namespace": "${spark.app.name}",
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
    "spark.metrics.conf.*.sink.jmx.class": "org.apache.spark.metrics.sink.JmxSink",
}
APPLICATION = "spark_ckpt_tests"
IN_GRAFANA = {"$__rate_interval": "1m", "$__range": "1h", "$application": ".*", "$query": RESTARTED}
"""What Grafana puts in for its variables."""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[DriverJob]:
    """Driver with both queries running."""
    program("prometheus")
    options = [part for key, value in SETTINGS.items() for part in ("--conf", f"{key}={value}")]
    job = DriverJob("measured_queries.py", tmp_path / "driver", options, environment={"SPARK_LOCAL_IP": "127.0.0.1"})
    yield job
    job.kill()


@pytest.fixture
def prometheus(job: DriverJob, tmp_path: Path) -> Iterator[Prometheus]:
    """Prometheus that scrapes it."""
    address = tmp_path / "driver" / "ui"
    assert job.await_(address.exists), job.output()[-4000:]
    server = Prometheus(tmp_path / "prometheus", urlsplit(address.read_text()).netloc)
    yield server
    server.close()


def panels() -> Iterator[tuple[str, str]]:
    """Title and expression of each graph of the dashboard."""
    dashboard = json.loads((REPOSITORY / "conf" / "grafana" / "spark-ckpt.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for variable, text in IN_GRAFANA.items():
                expression = expression.replace(variable, text)
            yield panel["title"], expression


def take_over(location: Path) -> None:
    """Claims a location, as the driver of another machine would."""
    owner = Owner("elsewhere", 1, "token", str(uuid.uuid4()), str(uuid.uuid4()))
    store = make_store(CheckpointConfig.parse({}), LocalStorage(location), owner, SystemClock())
    store.recover()
    store.claim()


def test_a_running_driver(job: DriverJob, prometheus: Prometheus, tmp_path: Path) -> None:
    """Every panel has data, and JMX the same figures. A lost side process and a fenced query fire alerts."""
    folder = tmp_path / "driver"
    assert prometheus.firing() == set()

    expressions = list(panels())
    assert len(expressions) > 20
    for title, expression in expressions:
        assert "$" not in expression
        values = [value for _, value in prometheus.await_data(expression)]
        assert not any(map(math.isnan, values)), f"{title}: {expression}"

    labels = {"application": APPLICATION, "job": "spark"}
    (restored,) = prometheus.query(f'spark_ckpt_numberOfRestoredCheckpoints{{query="{RESTARTED}"}}')
    assert restored[1] == 1
    assert restored[0].items() >= {**labels, "query": RESTARTED}.items()
    queries = {sample["query"] for sample, _ in prometheus.query("spark_ckpt_generation")}
    assert queries == {"orders", "orders_2"}
    (process,) = prometheus.query("spark_ckpt_driver_sideProcessRss")
    assert process[1] > 20e6
    assert process[0].items() >= labels.items()
    assert not any("sparkCkpt" in sample["__name__"] for sample, _ in prometheus.query('{job="spark"}'))
    check_names(json.loads((folder / "jmx").read_text()), prometheus)

    check_open_requests(job, prometheus)
    kill(job.side_process())
    eventually(lambda: "SparkCkptSideProcessRestarts" in prometheus.firing(), what=prometheus.log, poll=0.2)
    await_checkpoints(
        prometheus, "orders_2"
    )  # the new side process has opened the run: one that cannot has none to fail
    take_over(folder / OTHER)
    both = {"SparkCkptFenced", "SparkCkptCheckpointsFail"}
    eventually(lambda: both <= prometheus.firing(), what=lambda: f"{prometheus.firing()}", poll=0.2)
    assert prometheus.firing() == {*both, "SparkCkptSideProcessRestarts"}
    eventually(lambda: len(prometheus.query("spark_ckpt_generation")) == 1, what=prometheus.log, poll=0.2)
    ((left, _),) = prometheus.query("spark_ckpt_generation")
    assert left["query"] == RESTARTED

    (folder / "stop").touch()
    assert job.wait() == 0, job.output()[-4000:]


def check_open_requests(job: DriverJob, prometheus: Prometheus) -> None:
    """Requests of batches wait for a side process that stands still, and are answered once it goes on."""
    process = job.side_process()
    os.kill(process, signal.SIGSTOP)
    try:
        prometheus.await_data("spark_ckpt_driver_openRequests > 0")
    finally:
        os.kill(process, signal.SIGCONT)
    prometheus.await_data("spark_ckpt_driver_openRequests == 0")


def await_checkpoints(prometheus: Prometheus, query: str) -> None:
    """Waits for three more checkpoints: the figure may lag by one, and another may have begun in the process before."""
    completed = f'spark_ckpt_numberOfCompletedCheckpoints{{query="{query}"}}'
    ((_, before),) = prometheus.await_data(completed)
    eventually(lambda: prometheus.query(f"{completed} >= {before + 3}"), what=prometheus.log, poll=0.2)


def check_names(beans: dict[str, Any], prometheus: Prometheus) -> None:
    """The page lists the metrics of both kinds of sources; JMX and Prometheus have exactly those."""
    page = (REPOSITORY / "docs" / "metrics.md").read_text().partition("## In Spark's metrics system")[2]
    lines = page.partition("## Prometheus and Grafana")[0].splitlines()
    documented = [line.split("`")[1] for line in lines if line.startswith("| `")]
    of_query = {name.rpartition(".checkpoints.")[2] for name in beans if ".checkpoints." in name}
    of_driver = {name.rpartition(".sparkCkptDriver.")[2] for name in beans if ".sparkCkptDriver." in name}
    assert sorted(documented) == sorted([*of_query, *of_driver])
    for name in (RESTARTED, "orders_2"):
        bean = f"spark-ckpt tests.driver.sparkCkpt.{name}.checkpoints."
        assert {key.removeprefix(bean) for key in beans if key.startswith(bean)} == of_query
        assert beans[f"{bean}numberOfRestoredCheckpoints"] == (1 if name == RESTARTED else 0)
        assert beans[f"{bean}lastCheckpointRows"] == 7
    scraped = {sample["__name__"] for sample, _ in prometheus.query('{__name__=~"spark_ckpt_.*"}')}
    assert scraped == {f"spark_ckpt_{name}" for name in of_query} | {f"spark_ckpt_driver_{name}" for name in of_driver}
