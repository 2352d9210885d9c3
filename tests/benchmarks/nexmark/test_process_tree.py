from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.nexmark.process_tree import busy_cores, usage

WORK = """
import os, subprocess, sys
child = "sum(range(20_000_000)); import os; f = open(sys.argv[1], 'wb')"
sum(range(20_000_000))
with open(sys.argv[1], "wb") as file:
    file.write(bytes(2_000_000))
    os.fsync(file.fileno())
print("worked", flush=True)
sys.stdin.read()
"""


def test_a_busy_process_keeps_a_core_busy() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        assert busy_cores(0.5) > 0.2
        child.kill()


def test_counts_cpu_and_writes_of_descendants(tmp_path: Path) -> None:
    before = usage(os.getpid())
    command = [sys.executable, "-c", WORK, str(tmp_path / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"worked\n"
        used = usage(os.getpid()) - before
        alone = usage(child.pid)
        child.communicate()
    assert used.cpu_seconds >= alone.cpu_seconds > 0.05
    assert alone.written_bytes <= used.written_bytes
    assert (usage(os.getpid()) - before).cpu_seconds >= used.cpu_seconds - 0.05, "ended children count"
