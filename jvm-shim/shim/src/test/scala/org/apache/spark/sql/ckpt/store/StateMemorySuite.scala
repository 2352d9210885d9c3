// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.scalatest.Outcome
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.ckpt.protocol.Notification

class StateMemorySuite extends AnyFunSuite {

  /**
   * Leaves out the stores of earlier suites: their memory changes as garbage is collected and as background snapshots
   * end, and would change the figures.
   */
  override def withFixture(test: NoArgTest): Outcome = {
    val others = StateMemory.users
    others.foreach(StateMemory.remove)
    try super.withFixture(test) finally others.foreach(StateMemory.add)
  }

  private def counted: Long = CountedMemory.bytes

  private def withStore(body: StoreHarness => Unit): Unit = {
    val harness = new StoreHarness()
    try body(harness) finally harness.close()
  }

  test("Spark's memory manager sees the heap of all stores, in each Spark of a JVM") {
    (0 until 2).foreach { _ =>
      withStore { h =>
        val before = counted
        h.commit(0, 1L to 5000: _*)
        val one = h.provider.subtask.memoryBytes
        assert(one > 5000 * 16)
        assert(counted - before == one)
        val other = h.newProvider(partition = 1)
        val store = other.getStore(0)
        (1L to 1000).foreach(n => store.put(h.row(n), h.row(n)))
        assert(counted - before == one + other.subtask.memoryBytes && other.subtask.memoryBytes > 1000 * 16)
        other.close()
        assert(counted - before == one)
        h.notify(Notification.Ended, -1)
        assert(counted == before)
      }
    }
  }

  test("stores that come and go leave nothing behind") {
    withStore { h =>
      val before = StateMemory.users
      (0 until 1000).foreach { partition =>
        val provider = h.newProvider(partition)
        assert(StateMemory.users.size == before.size + 1)
        provider.close()
      }
      assert(StateMemory.users.toSet == before.toSet)
    }
  }

  test("without stores there is no consumer, and the next store brings it back") {
    final class Store(override val memoryBytes: Long) extends MemoryUser {
      override def evict(): Unit = ()
    }
    val (one, two) = (new Store(3), new Store(4))
    val before = counted
    StateMemory.add(one)
    StateMemory.add(two)
    StateMemory.add(two)
    assert(counted - before == 7)
    StateMemory.remove(one)
    StateMemory.remove(one)
    assert(counted - before == 4)
    StateMemory.remove(two)
    assert(counted == before)
    StateMemory.add(one)
    assert(counted - before == 3)
    StateMemory.remove(one)
  }
}
