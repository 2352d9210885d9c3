from __future__ import annotations

from pathlib import Path

from tests.soak.cluster.executors import parse_background, parse_ends, uncaught, unexpected_ends

DUMP = """Full thread dump OpenJDK 64-Bit Server VM:

"main" #1 prio=5 os_prio=0 tid=0x1 nid=0x1 waiting on condition
\tat io.github.sparkckpt.engine.compaction.SegmentMerger.merge(SegmentMerger.scala:70)

"spark-ckpt-merge-1" #90 daemon prio=5 os_prio=0 tid=0x2 nid=0x2 runnable
\tat org.apache.spark.sql.ckpt.compaction.DeltaMerges.merge(DeltaMerges.scala:70)

"spark-ckpt-heavy-merge-1" #91 daemon prio=5 os_prio=0 tid=0x3 nid=0x3 waiting on condition
\tat java.util.concurrent.ThreadPoolExecutor.getTask(ThreadPoolExecutor.java:1062)

"spark-ckpt-base-snapshot-1" #92 daemon prio=5 os_prio=0 tid=0x4 nid=0x4 runnable
\tat io.github.sparkckpt.engine.compaction.BaseWriter.write(BaseWriter.scala:100)
"""

LOG = """
INFO Worker: Executor app-1-0000/0 finished with state KILLED message interrupted exitStatus 143
INFO Worker: Executor app-1-0000/1 finished with state EXITED message Command exited with code 137 exitStatus 137
INFO Worker: Executor app-1-0000/2 finished with state EXITED message Command exited with code 50 exitStatus 50
"""


def test_a_background_thread_works_if_it_has_a_frame_of_ours() -> None:
    assert parse_background(DUMP) == {"merge", "base-snapshot"}
    assert parse_background("") == set()


def test_an_end_that_no_kill_explains_is_named() -> None:
    assert [end.status for end in parse_ends(LOG)] == [137, 50]
    assert unexpected_ends([LOG], kills=1) == ["executor app-1-0000/2 ended with status 50"]


def test_an_executor_that_another_has_killed_is_counted() -> None:
    assert unexpected_ends([LOG], kills=0)[1:] == ["1 executors were killed, 0 of them by the test"]


def test_uncaught_exceptions_are_found_in_logs(tmp_path: Path) -> None:
    executor, driver, fine = (tmp_path / name for name in ("executor", "driver", "fine"))
    executor.write_text(
        "26/01/01 00:00:00 ERROR SparkUncaughtExceptionHandler: Uncaught exception in thread Thread[a,5,main]\n"
        "java.lang.InterruptedException\n"
    )
    driver.write_text('Exception in thread "b" java.lang.NullPointerException\n')
    fine.write_text("26/01/01 00:00:00 WARN TaskSetManager: Lost task 0.0: java.io.IOException\n")
    found = uncaught([executor, driver, fine])
    assert len(found) == 2
    assert "InterruptedException" in found[0]
    assert "NullPointerException" in found[1]
