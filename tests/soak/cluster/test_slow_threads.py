from __future__ import annotations

import ctypes
import os
import threading

from tests.soak.cluster.slow_threads import LOWEST, PREFIX, SlowThreads, slow_down
from tests.support.processes import children
from tests.support.waiting import eventually

_SET_NAME = 15  # PR_SET_NAME


def test_only_background_threads_lose_their_priority() -> None:
    found: dict[str, int] = {}
    ready, end = threading.Barrier(3), threading.Event()

    def wait(name: str) -> None:
        ctypes.CDLL(None).prctl(_SET_NAME, name.encode(), 0, 0, 0)
        found[name] = threading.get_native_id()
        ready.wait()
        end.wait()

    before = os.getpriority(os.PRIO_PROCESS, 0)
    threads = [threading.Thread(target=wait, args=(name,)) for name in (f"{PREFIX}merge", "task")]
    for thread in threads:
        thread.start()
    ready.wait()
    try:
        assert slow_down(os.getpid()) == 1
        assert os.getpriority(os.PRIO_PROCESS, found[f"{PREFIX}merge"]) == LOWEST
        assert os.getpriority(os.PRIO_PROCESS, found["task"]) == before
    finally:
        end.set()
        for thread in threads:
            thread.join()


def test_a_process_that_has_ended_has_no_threads() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    assert slow_down(pid) == 0


def test_the_load_pauses_and_ends() -> None:
    before = set(children(os.getpid()))
    with SlowThreads(list) as slow:
        load = set(children(os.getpid())) - before
        assert len(load) == os.cpu_count()
        with slow.paused():
            eventually(lambda: all(_state(pid) == "T" for pid in load))
        eventually(lambda: all(_state(pid) != "T" for pid in load))
    assert not load & set(children(os.getpid()))


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
