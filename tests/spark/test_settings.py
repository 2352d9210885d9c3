"""Settings that bypass `configure` are validated in the driver, before the first batch of a query runs a task."""

from __future__ import annotations

import pytest

from tests.support.checkpoints import log_records
from tests.support.counts import RunningCount
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest

MISSPELT = CKPT_PREFIX.replace("stateStore", "statestore")


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers, which have settings of their own."""
    if not provider.is_ours:
        pytest.skip("about our settings")


def jobs_so_far(count: RunningCount) -> int:
    return int(count.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        (CKPT_PREFIX + "retained", "many", "'many' is not a whole number"),
        (CKPT_PREFIX + "retaind", "3", f"did you mean {CKPT_PREFIX}retained?"),
        (MISSPELT + "store", "zookeeper", f"did you mean {CKPT_PREFIX}store?"),
        (CKPT_PREFIX + "bridge.timeout", "0", "out of range"),
        (CKPT_PREFIX + "zookeeper.quorum", "zk:2181", "store=zookeeper"),
    ],
)
def test_a_setting_that_cannot_be(count: RunningCount, key: str, text: str, words: str) -> None:
    """The error names the setting and its valid values; no task runs, and the location is unchanged."""
    count.drain()
    records = log_records(count.location)
    count.drop(1)
    before = count.spark.conf.get(key, None)
    count.spark.conf.set(key, text)
    jobs = jobs_so_far(count)
    count.fails("[SettingError]", key, words)
    assert jobs_so_far(count) == jobs, "a batch has run"
    assert log_records(count.location) == records, "a query that cannot run has claimed the location"
    if before is None:
        count.spark.conf.unset(key)
    else:
        count.spark.conf.set(key, before)
    count.recovers()


def test_values_with_units_reach_coordinator_and_executors(count: RunningCount) -> None:
    count.spark.conf.set(CKPT_PREFIX + "bridge.timeout", "300.0")
    count.spark.conf.set(CKPT_PREFIX + "ackThreshold", "0k")
    count.spark.conf.set(CKPT_PREFIX + "inlineThreshold", "0b")
    count.spark.conf.set(CKPT_PREFIX + "timeout", "1.5h")
    count.drain()
    count.recovers()
