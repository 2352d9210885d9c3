"""Liveness of the driver with the last claim."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from spark_ckpt.completed import CheckpointRecord, ClaimRecord, MetadataReference, Owner
from spark_ckpt.completed.processes import identity_of
from spark_ckpt.location.driver_liveness import OPERATION, Holder, hold_of

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


def test_nobody_has_claimed() -> None:
    assert hold_of([]).holder is Holder.NONE


def test_the_process_is_there() -> None:
    hold = hold_of([claim(os.getpid())])
    assert (hold.holder, hold.last_ms) == (Holder.ALIVE, NOW_MS)
    assert hold.owner is not None
    assert hold.owner.pid == os.getpid()


def test_the_process_is_gone(ended: int) -> None:
    assert hold_of([claim(ended)]).holder is Holder.NONE


def test_the_process_has_ended_and_nobody_has_waited_for_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()  # until it closes its output at its end
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert hold_of([claim(process.pid)]).holder is Holder.NONE
    process.wait()


def test_another_process_has_got_its_number() -> None:
    of_another = claim(os.getpid())
    assert of_another.process is not None
    of_another = replace(of_another, process=replace(of_another.process, start_ticks=1))
    assert hold_of([of_another]).holder is Holder.NONE


@pytest.mark.parametrize("pid", [os.getpid(), 2**22 + 1], ids=["whose number runs here", "whose number is free here"])
def test_nothing_is_known_of_another_container_with_the_same_host_name(pid: int) -> None:
    assert hold_of([claim(pid, elsewhere=True)]).holder is Holder.UNKNOWN


def test_nothing_is_known_of_a_process_that_has_not_noted_which_it_is(ended: int) -> None:
    assert hold_of([replace(claim(ended), process=None)]).holder is Holder.UNKNOWN
    assert hold_of([replace(claim(os.getpid()), process=None)]).holder is Holder.UNKNOWN


def test_the_last_claim_counts(ended: int) -> None:
    assert hold_of([claim(os.getpid()), claim(ended, record_id=2)]).holder is Holder.NONE
    assert hold_of([claim(ended), claim(os.getpid(), record_id=2)]).holder is Holder.ALIVE


def test_a_command_holds_nothing_afterwards() -> None:
    mine = claim(os.getpid(), run_id=f"{OPERATION}rollback 1", record_id=2)
    assert hold_of([claim(os.getpid()), mine]).holder is Holder.NONE


def test_the_age_is_that_of_the_newest_record() -> None:
    first = claim(os.getpid(), at_ms=NOW_MS)
    newest = CheckpointRecord(
        *(2, 1, first.owner, "", 1, 2, NOW_MS + 5, 0, 0, 0, 0, ()),
        metadata=MetadataReference("chk-2/_metadata", 1, "00"),
    )
    assert hold_of([first, newest]).last_ms == NOW_MS + 5
