// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import io.github.sparkckpt.engine.support.LiveHeap
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.CheckpointStateStoreProvider
import org.apache.spark.sql.ckpt.protocol.Notification
import org.apache.spark.sql.execution.streaming.state.StateStore

/** A store that gives its state up frees what it has told of itself before. */
class StoreMemoryCountSuite extends AnyFunSuite with LiveHeap {
  private val Rows = 200000L
  private val Gone = 60000L

  private def put(h: StoreHarness, store: StateStore, key: Long): Unit = store.put(h.row(key), h.row(key))

  /** A store at version 2, whose last batch has removed keys. */
  private def withState(body: StoreHarness => Unit): Unit = {
    val h = new StoreHarness("ackThreshold" -> "64m")
    try {
      h.coordinator.factors = Seq(1, 64)
      h.coordinator.restore = StoreHarness.byRow(Rows)
      commitTwo(h)
      awaitQuietHeap() // the event loops of the Spark before this one end within seconds, with their buffers
      body(h)
    } finally h.close()
  }

  private def commitTwo(h: StoreHarness): Unit = {
    val first = h.open(0)
    (1L to Rows + Gone).foreach(put(h, first, _))
    first.commit()
    val second = h.open(1)
    (Rows + 1 to Rows + Gone).foreach(n => second.remove(h.row(n)))
    second.commit()
    // Nothing refers to the stores any more.
    h.asTask(batch = 2)
  }

  private def check(of: CheckpointStateStoreProvider, what: String)(free: => Unit): Unit = {
    val counted = of.subtask.memoryBytes
    val full = liveHeap()
    free
    assertCounted(counted, full - liveHeap(), what)
    assert(of.subtask.memoryBytes == 0)
  }

  test("a state whose run ends") {
    withState { h =>
      h.read(2)
      check(h.provider, "a folded state")(h.notify(Notification.Ended, -1))
    }
  }

  /** A batch that has committed; nothing here refers to its store any more. */
  private def commitHalf(h: StoreHarness): Unit = {
    val store = h.open(2)
    (1L to Rows by 2).foreach(put(h, store, _))
    store.commit()
    h.asTask(batch = 3)
  }

  test("a state with a committed batch whose checkpoint was aborted, and whose partition moves to another executor") {
    withState { h =>
      commitHalf(h)
      val counted = h.provider.subtask.memoryBytes
      awaitQuietHeap() // what the tasks of the batch have left would count as part of it
      val full = liveHeap()
      h.notify(Notification.Aborted, 3)
      assertCounted(counted - h.provider.subtask.memoryBytes, full - liveHeap(), "an aborted batch")
      check(h.provider, "a partition that moves")(h.notify(Notification.Complete, 10))
    }
  }

  /** A store that a restart has opened, and whose first batch was abandoned. */
  private def restarted(h: StoreHarness, loadsRest: Boolean): CheckpointStateStoreProvider = {
    val other = h.newProvider()
    val store = other.getStore(2)
    assert(store.get(h.row(7), StateStore.DEFAULT_COL_FAMILY_NAME) != null)
    if (loadsRest) store.iterator().foreach(_ => ())
    store.abort()
    h.asTask(batch = 3)
    other
  }

  test("a state that is still in its segments, and one that was") {
    withState { h =>
      for (loadsRest <- Seq(false, true)) {
        val other = restarted(h, loadsRest)
        check(other, s"a restore, with its rest: $loadsRest") {
          other.subtask.notified(Notification(Notification.Ended))
        }
        other.close()
      }
    }
  }
}
