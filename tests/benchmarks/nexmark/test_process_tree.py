from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.nexmark.process_tree import busy_cores, thread_seconds, usage
from tests.support.waiting import eventually

GRANDCHILD = """
import os, sys
sum(range(20_000_000))
with open(sys.argv[1], "wb") as file:
    file.write(bytes(2_000_000))
    os.fsync(file.fileno())
print("worked", flush=True)
sys.stdin.readline()
"""
CHILD = """
import subprocess, sys
grandchild = subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]])
grandchild.wait()
print("ended", flush=True)
sys.stdin.readline()
"""


def test_a_busy_process_keeps_a_core_busy() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        assert busy_cores(0.5) > 0.1
        child.kill()


def test_counts_descendants_also_those_that_have_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, GRANDCHILD, str(tmp_path / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"worked\n"
        running = usage(child.pid)
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"ended\n"
        ended = usage(child.pid)
        child.communicate()
    assert running.cpu_seconds > 0.1
    assert ended.cpu_seconds >= running.cpu_seconds
    assert (ended - running).cpu_seconds < running.cpu_seconds
    assert running.written_bytes in (0, *range(2_000_000, 4_000_000)), (
        "a file system in memory writes nothing to a disk"
    )


def test_counts_threads_by_the_beginning_of_their_names() -> None:
    """The main thread has the name of its program."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        name = Path(f"/proc/{child.pid}/comm").read_text().strip()
        eventually(lambda: thread_seconds(child.pid, ("of no thread", name[:3])) > 0, what="the thread is counted")
        assert thread_seconds(child.pid, ("of no thread",)) == 0
        child.kill()
