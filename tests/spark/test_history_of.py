"""Histories of keys of a real query, beside what each batch must have led to."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_ckpt import history_of
from spark_ckpt.edit.key_history import FamilyHistory
from spark_ckpt.state.catalog import open_state
from tests.support.feeds import at
from tests.support.jobs import Jobs, running_counts
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest

BATCHES = 14
ROWS = 60
KEYS = ("k0", "k4", "k8")


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("no checkpoints of spark-ckpt")


def rows_of(batch: int) -> list[tuple[object, str, int]]:
    """Rows of a batch: every third batch lacks some of the keys."""
    numbers = range(batch * ROWS, (batch + 1) * ROWS)
    return [(at(n), f"k{n % 9}", n) for n in numbers if batch % 3 or n % 9 != 4]


@pytest.mark.parametrize("is_long", [True, pytest.param(False, marks=pytest.mark.long)])
def test_each_value_is_that_of_its_batch(jobs: Jobs, is_long: bool) -> None:
    """With short chains, bases and merged deltas replace the deltas of single batches."""
    for batch in range(BATCHES):
        jobs.feed.drop(rows_of(batch))
    chain = {"chain.maxDeltas": "40"} if is_long else {"chain.maxDeltas": "1", "chain.maxDeltaRatio": "0.01"}
    conf = {"retained": "2", **chain}
    driver = jobs.start(conf=[f"{CKPT_PREFIX}{name}={value}" for name, value in conf.items()])
    assert driver.wait() == 0, driver.output()[-6000:]
    stores = {store.state.name: store.state.operator_id for store in open_state(str(jobs.location)).stores}
    history = history_of(jobs.location, pa.table({"key": list(KEYS)}), operator=stores["stateStoreSave"])
    (family,) = history.families
    expected = {batch: figures_after(batch) for batch in range(-1, BATCHES)}
    told = check(family, expected)
    if is_long:  # the changes of all batches are there
        batches = [
            batch
            for batch in range(BATCHES)
            for key in KEYS
            if expected[batch].get(key) != expected[batch - 1].get(key)
        ]
        assert sorted(told) == batches
    else:
        assert len(told) < len(family.changes), "no range of batches"


def figures_after(batch: int) -> dict[object, object]:
    """Value of each key after a batch."""
    events = [row for earlier in range(batch + 1) for row in rows_of(earlier)]
    return {key: tuple(figures) for key, *figures in running_counts(events)}


def check(family: FamilyHistory, expected: dict[int, dict[object, object]]) -> list[int]:
    """Compares each change with the batch answer; returns the batches of changes that are those of one batch."""
    single = []
    last: dict[object, object] = {}
    for change in family.to_arrow().to_pylist():
        key = change["key"]["key"]
        value = tuple(change["value"].values())
        assert value == expected[change["last_batch"]][key], change
        assert change["change"] == ("update" if key in last else change["change"])
        last[key] = value
        if change["first_batch"] == change["last_batch"]:
            single.append(change["last_batch"])
    assert last == {key: expected[BATCHES - 1][key] for key in KEYS}
    return single
