"""ZooKeeper store with a server that stalls, crashes or is not running."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.completed import (
    JobStatus,
)
from spark_ckpt.completed.errors import OwnershipLostError, UnknownOutcomeError, ZooKeeperUnavailableError
from spark_ckpt.completed.mirror import Mirror
from spark_ckpt.completed.zookeeper import ZooKeeperCompletedCheckpointStore
from spark_ckpt.completed.zookeeper_session import ZooKeeperSession
from spark_ckpt.storage import LocalStorage
from tests.completed.records import add, owner
from tests.completed.zookeeper_place import Place
from tests.support.zookeeper import await_gone


def test_a_server_that_stands_still_leaves_the_outcome_unknown(own_place: Place) -> None:
    store = own_place.claimed()
    kept = add(store, 1)
    impatient = own_place.sessions[-1].impatient()
    with own_place.server.frozen(), impatient, pytest.raises(UnknownOutcomeError, match=r"records/0{19}3"):
        add(store, 2)
    settled = store.settle()  # the request may have been carried out
    assert own_place.stored() == [kept, settled]


def test_a_driver_outlives_a_crash_of_the_server(own_place: Place) -> None:
    store = own_place.claimed()
    kept = add(store, 1)
    own_place.server.stop()
    own_place.server.start()
    added = add(store, 2)
    assert own_place.stored() == [kept, added]
    store.check_owner()


def test_a_driver_that_is_cut_off_for_too_long_has_lost(own_place: Place) -> None:
    store = own_place.claimed(timeout=20)
    session = own_place.sessions[-1]
    session.client._connection._socket.shutdown(2)
    with own_place.server.client() as client:
        session.client.stop()
        await_gone(client, f"{own_place.node}/owner-1")
    session.client.start()
    with pytest.raises(OwnershipLostError):
        add(store, 1)


def test_without_a_server_the_error_names_the_quorum_and_no_password(tmp_path: Path) -> None:
    session = ZooKeeperSession("user:secret@127.0.0.1:1", timeout=0.3)
    store = ZooKeeperCompletedCheckpointStore(session, "/x/query", Mirror(LocalStorage(tmp_path)), owner())
    with pytest.raises(ZooKeeperUnavailableError, match=r"cannot reach zookeeper://127\.0\.0\.1:1") as caught:
        store.recover()
    assert "secret" not in str(caught.value)
    assert "zookeeper.quorum" in str(caught.value)
    store.shutdown(JobStatus.FAILED)


def test_a_server_that_goes_away_is_named(own_place: Place) -> None:
    store = own_place.open()
    store.recover()
    own_place.server.stop()
    with own_place.sessions[-1].impatient(), pytest.raises(ZooKeeperUnavailableError, match=own_place.server.quorum):
        store.recover()
