// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import scala.jdk.CollectionConverters._

import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.sql.ckpt.common.{CheckpointFailure, StoreUsageFailure}
import org.apache.spark.sql.ckpt.protocol.{Notification, RestorePlan}
import org.apache.spark.sql.execution.streaming.state.StateStore

/** Restarts that load rows when a batch wants them. */
class StoreLazyRestoreSuite extends AnyFunSuite {
  private val Rows = 40000L

  /** A harness whose state was committed by another provider, in two versions. */
  private def withState(settings: (String, String)*)(body: StoreHarness => Unit): Unit = {
    val harness = new StoreHarness((("ackThreshold" -> "8m") +: settings): _*)
    try {
      harness.coordinator.factors = Seq(1, 64)
      harness.coordinator.restore = StoreHarness.byRow(Rows)
      val before = harness.newProvider()
      for (version <- 0L to 1L) {
        val store = before.getStore(version)
        (1L to Rows).filter(n => version == 0 || n % 10 == 0).foreach(n => put(harness, store, n, n + version))
        store.commit()
      }
      before.close()
      harness.asTask(batch = 2)
      body(harness)
    } finally harness.close()
  }

  private def put(h: StoreHarness, store: StateStore, key: Long, value: Long): Unit =
    store.put(h.row(key), h.row(value))

  private def valueOf(n: Long): Long = if (n % 10 == 0) n + 1 else n

  private def get(h: StoreHarness, store: StateStore, key: Long): Option[Long] =
    Option(store.get(h.row(key), StateStore.DEFAULT_COL_FAMILY_NAME)).map(_.getLong(0))

  private def contents(h: StoreHarness, version: Long): Map[Long, Long] =
    h.provider.getReadStore(version).iterator().map(pair => pair.key.getLong(0) -> pair.value.getLong(0)).toMap

  private val all = (1L to Rows).map(n => n -> valueOf(n)).toMap

  /** Much less than all rows, beside the segments, which are in memory here until all rows are loaded. */
  private def hasFewRows(h: StoreHarness): Boolean = h.provider.subtask.memoryBytes < Rows * 46

  test("a partition without rows loads nothing") {
    withState() { h =>
      val store = h.open(2)
      store.commit()
      val metrics = h.metrics(store)
      assert(metrics("ckptRestoredBytes") == 0 && metrics("ckptRestoredSegments") == 0)
      assert(store.metrics.numKeys == Rows && hasFewRows(h))
      assert(h.coordinator.heard.asScala.filter(_.kind == "ack").last.json.path("rows").asLong() == Rows)
    }
  }

  test("a batch with a few keys loads their rows, and reports what that cost") {
    withState() { h =>
      val store = h.open(2)
      assert(get(h, store, 10).contains(11) && get(h, store, Rows + 1).isEmpty)
      put(h, store, 11, 0)
      put(h, store, Rows + 1, 0)
      store.remove(h.row(10))
      store.commit()
      val metrics = h.metrics(store)
      assert(metrics("ckptRestoredSegments") == 2)
      assert(metrics("ckptRestoredBytes") > 0 && metrics("ckptRestoredBytes") < Rows * 8)
      assert(store.metrics.numKeys == Rows && hasFewRows(h))
      assert(contents(h, 3) == all - 10 + (11L -> 0L) + (Rows + 1 -> 0L))
      val next = h.open(3)
      next.commit()
      assert(h.metrics(next)("ckptRestoredBytes") > Rows * 10 && next.metrics.numKeys == Rows)
    }
  }

  test("the rest is loaded in the background after the first batch") {
    withState() { h =>
      val store = h.open(2)
      put(h, store, 1, 5)
      store.commit()
      h.notify(Notification.Complete, 3)
      assert(hasFewRows(h))
      eventually(timeout(5.minutes), interval(50.millis))(assert(!hasFewRows(h)))
      assert(contents(h, 3) == all + (1L -> 5L))
    }
  }

  test("lookups without a budget load everything with the first access") {
    withState() { h =>
      h.coordinator.restore = RestorePlan(RestorePlan.ByRow)
      val store = h.open(2)
      assert(hasFewRows(h))
      assert(get(h, store, 10).contains(11) && !hasFewRows(h))
      store.commit()
      assert(h.metrics(store)("ckptRestoredBytes") > Rows * 10)
    }
  }

  for (mode <- Seq(RestorePlan.BySegment, RestorePlan.ByKeyGroup)) test(s"$mode: everything is loaded before") {
    withState() { h =>
      h.coordinator.restore = RestorePlan(mode)
      val store = h.open(2)
      assert(!hasFewRows(h))
      store.commit()
      assert(h.metrics(store)("ckptRestoredBytes") > Rows * 10)
    }
  }

  test("rows that were loaded by key group are loaded once more if their number is not that of the checkpoint") {
    def bytesRead(rowsOff: Long): Long = {
      var read = 0L
      withState() { h =>
        h.coordinator.restore = RestorePlan(RestorePlan.ByKeyGroup)
        h.coordinator.rowsOff = rowsOff
        val store = h.open(2)
        store.commit()
        read = h.metrics(store)("ckptRestoredBytes")
        assert(store.metrics.numKeys == Rows && contents(h, 3) == all)
      }
      read
    }
    val once = bytesRead(0)
    assert(bytesRead(1) > once * 3 / 2)
  }

  test("column families are loaded before the batch, whatever the plan says") {
    StoreHarness.withFamilies("ackThreshold" -> "8m") { (h, before) =>
      h.coordinator.factors = Seq(1, 64)
      h.coordinator.restore = StoreHarness.byRow(Rows)
      val store = before.getStore(0)
      (1L to Rows).foreach(n => put(h, store, n, n))
      store.commit()
      val after = h.newProvider(useColumnFamilies = true)
      after.getStore(1).abort()
      assert(after.subtask.memoryBytes > Rows * 46)
      after.close()
    }
  }

  test("a base that is demanded after the batch has all rows") {
    withState() { h =>
      h.coordinator.baseDue = true
      val store = h.open(2)
      put(h, store, Rows + 1, 0)
      store.commit()
      eventually(timeout(5.minutes))(assert(h.provider.subtask.waitingBase))
      h.asTask(batch = 3)
      h.open(3).commit()
      val base = h.coordinator.heard.asScala.filter(_.kind == "ack").last.json.path("base")
      assert(base.path("segment").path("version").asLong() == 2 && h.rowsOfLastBase == Rows)
    }
  }

  test("another attempt continues where the abandoned one has loaded") {
    withState() { h =>
      val abandoned = h.open(2)
      put(h, abandoned, 1, 100)
      val store = h.open(2)
      intercept[StoreUsageFailure](put(h, abandoned, 2, 100))
      abandoned.abort()
      assert(get(h, store, 1).contains(1) && hasFewRows(h))
      put(h, store, 3, 100)
      store.commit()
      assert(contents(h, 3) == all + (3L -> 100L))
    }
  }

  test("a batch that runs twice, or is given up, leaves the rest where it is") {
    withState() { h =>
      val first = h.open(2)
      put(h, first, 1, 100)
      first.commit()
      val again = h.open(2)
      assert(get(h, again, 1).contains(1))
      put(h, again, 2, 100)
      again.abort()
      h.notify(Notification.Complete, 4)
      h.notify(Notification.Aborted, 3)
      assert(get(h, h.open(2), 2).contains(2))
      assert(hasFewRows(h))
      assert(contents(h, 3) == all + (1L -> 100L), "the coordinator has the ack")
    }
  }

  test("a store that is given up while rows are in files is loaded again") {
    withState() { h =>
      val store = h.open(2)
      put(h, store, 1, 100)
      h.notify(Notification.Ended, -1)
      assert(!h.inMemory)
      intercept[StoreUsageFailure](get(h, store, 7))
      store.abort()
      assert(contents(h, 2) == all)
    }
  }

  test("damage that the batch touches fails its task, and the next attempt at its start") {
    withState() { h =>
      // The first delta ends with the last value of the last key group.
      h.coordinator.damage(version = 1, fromEnd = 1)
      val store = h.open(2)
      val failure = intercept[CheckpointFailure](for (n <- 1L to 1000L) get(h, store, n))
      assert(failure.error == "StateFileError" && h.heard("unreadable") == 1)
      val refused = intercept[CheckpointFailure](store.commit())
      assert(refused.error == "StateFileError")
      h.asTask(batch = 2, taskAttemptId = 2)
      assert(intercept[CheckpointFailure](h.open(2)).error == "StateFileError")
      h.coordinator.damage(version = 1, fromEnd = 1)
      h.open(2).abort()
      assert(contents(h, 2) == all)
    }
  }

  test("damage that the batch does not touch fails the next one at its start, with or without time in between") {
    for (waits <- Seq(false, true)) withState() { h =>
      h.coordinator.damage(version = 1, fromEnd = 1)
      val store = h.open(2)
      assert(get(h, store, 7).contains(7))
      store.commit()
      if (waits) {
        h.notify(Notification.Complete, 3)
        Thread.sleep(2500)
      }
      h.asTask(batch = 3)
      assert(intercept[CheckpointFailure](h.open(3)).error == "StateFileError")
      h.coordinator.damage(version = 1, fromEnd = 1)
      assert(contents(h, 3) == all)
    }
  }

  test("a replay loads everything") {
    withState() { h =>
      val store = h.provider.replayReadStateFromSnapshot(1, 2, None, None)
      assert(store.iterator().map(pair => pair.key.getLong(0) -> pair.value.getLong(0)).toMap == all)
    }
  }

  test("rows beyond the budget of memory move to the local disk while they are loaded") {
    withState("memory.budget" -> "1") { h =>
      val store = h.open(2)
      for (n <- 1L to 5L) assert(get(h, store, n).contains(valueOf(n)))
      put(h, store, 6, 0)
      store.commit()
      assert(h.metrics(store)("ckptLocalBytes") > 0)
      assert(contents(h, 3) == all + (6L -> 0L))
      h.notify(Notification.Ended, 3)
    }
  }
}
