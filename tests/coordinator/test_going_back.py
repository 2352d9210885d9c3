"""A start from a damaged checkpoint: the way back is named, or taken if the settings say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.errors import DamagedCheckpointError, FencedError, RolledBackError
from spark_ckpt.operations.verifying import verify
from tests.operations.queries import SETTINGS, Query, make_query
from tests.support.invariants import assert_invariants


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Checkpoints 4 to 7, of batches 2 to 5."""
    query = make_query(tmp_path)
    query.settings = {**SETTINGS, "onDamage": "rollBack"}
    return query


def damage(query: Query, *checkpoint_ids: int) -> None:
    for checkpoint_id in checkpoint_ids:
        query.storage.write_atomic(f"ckpt/chk-{checkpoint_id}/_metadata", b"damaged")


def test_the_command_is_named(query: Query) -> None:
    query.settings = SETTINGS
    damage(query, 7)
    with pytest.raises(DamagedCheckpointError) as caught:
        query.restart()
    assert str(caught.value).endswith(f"spark-ckpt rollback {query.storage.location} --id 6")
    assert query.storage.exists("commits/5")


def test_the_query_goes_back_and_can_be_started_again(query: Query) -> None:
    damage(query, 7)
    with pytest.raises(RolledBackError) as caught:
        query.restart()
    error = caught.value
    assert (error.checkpoint_id, error.damaged.checkpoint_id) == (6, 7)
    assert str(error).endswith("it goes on with batch 5")
    aside = str(error).partition("lies in ")[2].partition(". ")[0]
    assert (Path(aside) / "commits" / "5").is_file()
    assert query.restart() == 5
    query.driver.batch(6)
    query.commit(5)
    assert verify(query.storage, everything=True).is_whole
    assert_invariants(query.storage)


def test_state_is_read_before_the_query_goes_back_to_it(query: Query) -> None:
    """Of the newest two the metadata is fine, and a block of the second is not: a look at the files would not tell."""
    damage(query, 7)
    for file in query.storage.list("ckpt/shared"):
        name = f"ckpt/shared/{file.name}"
        before = query.storage.read(name)
        query.storage.write_atomic(name, before[:-1] + bytes((before[-1] ^ 1,)))
        if verify(query.storage, 6).is_whole or not verify(query.storage, 5).is_whole:
            query.storage.write_atomic(name, before)
        else:
            break
    with pytest.raises(RolledBackError) as caught:
        query.restart()
    assert caught.value.checkpoint_id == 5


def test_no_checkpoint_is_whole(query: Query) -> None:
    damage(query, 4, 5, 6, 7)
    with pytest.raises(DamagedCheckpointError, match="No other retained checkpoint is whole"):
        query.restart()
    assert query.storage.exists("commits/5")


def test_the_driver_before_is_shut_out(query: Query) -> None:
    old = query.driver
    job = old.trigger(7)
    damage(query, 7)
    with pytest.raises(RolledBackError):
        query.restart()
    *others, last = [old.make_ack(key, 7) for key in old.subtasks()]
    for ack in others:
        job.acknowledge(ack)
    with pytest.raises(FencedError):
        job.acknowledge(last)
