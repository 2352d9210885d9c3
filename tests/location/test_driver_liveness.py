"""Liveness of the driver with the last claim."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from spark_ckpt.completed import OPERATION, CheckpointRecord, ClaimRecord, MetadataReference, Owner
from spark_ckpt.completed.processes import identity_of
from spark_ckpt.location.driver_liveness import Liveness, last_driver_of

NOW_MS = time.time_ns() // 1_000_000


def claim(
    pid: int, *, elsewhere: bool = False, run_id: str = "run", at_ms: int = NOW_MS, record_id: int = 1
) -> ClaimRecord:
    """Claim of a process on this machine or, with `elsewhere`, in another container on a host of the same name."""
    owner = Owner(socket.gethostname(), pid, "token", "query", run_id)
    process = identity_of(pid)
    assert process is not None
    if elsewhere:
        process = replace(process, pid_namespace="pid:[1]")
    return ClaimRecord(record_id, record_id, owner, "attempt", at_ms, (), process)


@pytest.fixture
def ended() -> int:
    """Pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_no_claim() -> None:
    assert last_driver_of([]).liveness is Liveness.NONE


def test_the_process_is_there() -> None:
    last = last_driver_of([claim(os.getpid())])
    assert (last.liveness, last.last_ms) == (Liveness.ALIVE, NOW_MS)
    assert last.owner is not None
    assert last.owner.pid == os.getpid()


def test_the_process_is_gone(ended: int) -> None:
    assert last_driver_of([claim(ended)]).liveness is Liveness.NONE


def test_the_process_is_a_zombie() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()  # until it closes its output at its end
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert last_driver_of([claim(process.pid)]).liveness is Liveness.NONE
    process.wait()


def test_another_process_has_got_its_number() -> None:
    of_another = claim(os.getpid())
    assert of_another.process is not None
    of_another = replace(of_another, process=replace(of_another.process, start_ticks=1))
    assert last_driver_of([of_another]).liveness is Liveness.NONE


@pytest.mark.parametrize("pid", [os.getpid(), 2**22 + 1], ids=["whose number runs here", "whose number is free here"])
def test_nothing_is_known_of_another_container_with_the_same_host_name(pid: int) -> None:
    assert last_driver_of([claim(pid, elsewhere=True)]).liveness is Liveness.UNKNOWN


def test_nothing_is_known_of_a_process_that_has_not_noted_which_it_is(ended: int) -> None:
    assert last_driver_of([replace(claim(ended), process=None)]).liveness is Liveness.UNKNOWN
    assert last_driver_of([replace(claim(os.getpid()), process=None)]).liveness is Liveness.UNKNOWN


def test_the_last_claim_counts(ended: int) -> None:
    assert last_driver_of([claim(os.getpid()), claim(ended, record_id=2)]).liveness is Liveness.NONE
    assert last_driver_of([claim(ended), claim(os.getpid(), record_id=2)]).liveness is Liveness.ALIVE


def test_a_command_owns_nothing_afterwards() -> None:
    mine = claim(os.getpid(), run_id=f"{OPERATION}rollback 1", record_id=2)
    assert last_driver_of([claim(os.getpid()), mine]).liveness is Liveness.NONE


def test_the_age_is_that_of_the_newest_record() -> None:
    first = claim(os.getpid(), at_ms=NOW_MS)
    newest = CheckpointRecord(
        *(2, 1, first.owner, "", 1, 2, NOW_MS + 5, 0, 0, 0, 0, ()),
        metadata=MetadataReference("chk-2/_metadata", 1, "00"),
    )
    assert last_driver_of([first, newest]).last_ms == NOW_MS + 5
