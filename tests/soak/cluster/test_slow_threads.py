from __future__ import annotations

import ctypes
import os
import threading

from tests.soak.cluster.slow_threads import PREFIX, slow_down

_SET_NAME = 15  # PR_SET_NAME


def test_only_background_threads_wait_for_idle_cores() -> None:
    found: dict[str, int] = {}
    ready, end = threading.Barrier(3), threading.Event()

    def wait(name: str) -> None:
        ctypes.CDLL(None).prctl(_SET_NAME, name.encode(), 0, 0, 0)
        found[name] = threading.get_native_id()
        ready.wait()
        end.wait()

    threads = [threading.Thread(target=wait, args=(name,)) for name in (f"{PREFIX}merge", "task")]
    for thread in threads:
        thread.start()
    ready.wait()
    try:
        assert slow_down(os.getpid()) == 1
        assert os.sched_getscheduler(found[f"{PREFIX}merge"]) == os.SCHED_IDLE
        assert os.sched_getscheduler(found["task"]) == os.SCHED_OTHER
    finally:
        end.set()
        for thread in threads:
            thread.join()


def test_a_process_that_has_ended_has_no_threads() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    assert slow_down(pid) == 0
