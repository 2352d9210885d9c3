from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from spark_ckpt.completed.processes import ProcessIdentity, identity_of, is_running


def mine() -> ProcessIdentity:
    identity = identity_of(os.getpid())
    assert identity is not None
    return identity


def test_this_process_runs() -> None:
    assert is_running(os.getpid(), mine()) is True
    assert mine() == mine()


def test_a_process_that_has_ended_does_not_run() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = identity_of(process.pid)
    assert is_running(process.pid, identity) is True
    process.communicate(b"")
    assert is_running(process.pid, identity) is False
    assert is_running(process.pid, identity_of(process.pid)) is False  # identity taken after its end


def test_a_zombie_process_does_not_run() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = identity_of(process.pid)
    assert process.stdin is not None
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_running(process.pid, identity) is False
    process.wait()


def test_another_process_with_its_number_is_told_from_it() -> None:
    assert is_running(os.getpid(), replace(mine(), start_ticks=mine().start_ticks - 1)) is False


def test_nothing_is_known_of_another_boot_or_container() -> None:
    assert is_running(os.getpid(), replace(mine(), boot_id="another")) is None
    assert is_running(os.getpid(), replace(mine(), pid_namespace="pid:[1]")) is None
    assert is_running(os.getpid(), None) is None


def test_the_name_of_a_program_can_hold_anything() -> None:
    name = "a) S 1 2 (b"
    code = f"open('/proc/self/comm', 'w').write({name!r}); print(flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    identity = identity_of(process.pid)
    assert identity is not None
    assert identity.start_ticks >= mine().start_ticks
    assert is_running(process.pid, identity) is True
    process.communicate(b"")
