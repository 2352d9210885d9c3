// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.sql.ckpt.common.{CheckpointFailure, StoreUsageFailure}
import org.apache.spark.sql.ckpt.protocol.{Message, Notification}

class StoreNotificationsSuite extends AnyFunSuite {
  import Notification._

  private def withStore(body: StoreHarness => Unit): Unit = {
    val harness = new StoreHarness
    try body(harness) finally harness.close()
  }

  test("a store whose partition has moved on elsewhere is freed, and loaded again if it is asked") {
    withStore { h =>
      h.commit(0, 1)
      h.commit(1, 2)
      h.notify(Complete, 3)
      assert(h.holds(2), "another attempt of the batch may ask for it")
      h.notify(Complete, 4)
      assert(!h.inMemory)
      assert(h.read(2) == Set(1, 2))
      assert(h.inMemory)
    }
  }

  test("what could undo a commit goes when a later version is complete") {
    withStore { h =>
      h.commit(0, 1)
      h.commit(1, 2)
      h.notify(Complete, 3)
      assert(!h.holds(1))
      assert(h.read(1) == Set(1))
    }
  }

  test("the commit of the version that is complete can still be undone, as a batch that runs twice does") {
    withStore { h =>
      h.commit(0, 1)
      h.notify(Complete, 1)
      val again = h.open(0)
      assert(again.get(h.row(1)) == null)
      again.abort()
      assert(h.read(1) == Set(1))
    }
  }

  test("no notification touches a batch that is open") {
    withStore { h =>
      h.commit(0, 1)
      val store = h.open(1)
      store.put(h.row(2), h.row(2))
      Seq(Complete -> 1L, Complete -> 2L, Aborted -> 1L, Aborted -> 2L, "subsumed" -> 1L, "unheard-of" -> 9L).foreach {
        case (event, version) => h.notify(event, version)
      }
      store.commit()
      assert(h.read(2) == Set(1, 2))
    }
  }

  test("what was committed for a version that was given up is forgotten, and is what counts if it does all the same") {
    withStore { h =>
      h.commit(0, 1)
      h.commit(1, 2)
      h.notify(Aborted, 2)
      h.notify(Aborted, 2)
      assert(!h.holds(2))
      assert(h.read(2) == Set(1, 2), "the coordinator has the ack")
    }
  }

  test("what was set aside for another attempt does not come back once its version was given up") {
    withStore { h =>
      h.commit(0, 1)
      h.commit(1, 2)
      h.coordinator.answer = Map("outcome" -> "discarded", "reason" -> "expired")
      val again = h.open(1)
      again.put(h.row(3), h.row(3))
      h.notify(Aborted, 2)
      assert(intercept[CheckpointFailure](again.commit()).error == "CheckpointDiscardedError")
      assert(!h.holds(2), "version 2 is back in memory")
    }
  }

  test("an old 'aborted' leaves later versions alone") {
    withStore { h =>
      (0 until 4).foreach(v => h.commit(v, v))
      h.notify(Aborted, 2)
      h.notify(Complete, 1)
      assert(h.holds(4))
      assert(h.read(4) == Set(0, 1, 2, 3))
    }
  }

  test("what is told to the executors that have registered reaches the stores of the job, and no others") {
    withStore { h =>
      def ended(job: String) = Message(Message.Notify, job, s"""{"event":"$Ended","version":null}""")
      h.commit(0, 1)
      eventually(timeout(5.minutes))(assert(h.heard("register") == 1))
      h.coordinator.executors.tell(ended(h.job))
      eventually(timeout(5.minutes))(assert(!h.inMemory))
      h.commit(1, 2)
      h.coordinator.executors.tell(ended("another"))
      assert(h.inMemory)
      h.coordinator.executors.tell(Message(Message.Notify, h.job, s"""{"event":"$Complete","version":9}"""))
      eventually(timeout(5.minutes))(assert(!h.inMemory))
      assert(h.read(2) == Set(1, 2))
    }
  }

  test("the end of the query frees everything; a task that still runs fails, and another one loads") {
    withStore { h =>
      h.commit(0, 1)
      val store = h.open(1)
      h.notify(Ended, -1)
      h.notify(Ended, -1)
      assert(!h.inMemory)
      intercept[StoreUsageFailure](store.put(h.row(2), h.row(2)))
      store.abort()
      assert(h.read(1) == Set(1))
    }
  }
}
