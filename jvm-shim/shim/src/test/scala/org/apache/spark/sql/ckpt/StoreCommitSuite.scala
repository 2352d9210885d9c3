/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
package org.apache.spark.sql.ckpt

import java.nio.file.Files

import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.executor.CommitDeniedException
import org.apache.spark.sql.execution.streaming.state.StateStore

class StoreCommitSuite extends AnyFunSuite {
  private def withStore(settings: (String, String)*)(body: StoreHarness => Unit): Unit = {
    val harness = new StoreHarness(settings: _*)
    try body(harness) finally harness.close()
  }

  private def refusal(outcome: String, reason: String = "of no use")(h: StoreHarness): Exception = {
    h.coordinator.answer = Map("outcome" -> outcome, "reason" -> reason)
    val store = h.open(0)
    store.put(h.row(1), h.row(1))
    intercept[Exception](store.commit())
  }

  test("an outcome that does not count fails the task with its reason, and the version is forgotten") {
    withStore() { h =>
      Seq("discarded" -> "CheckpointDiscardedError", "unknown" -> "UnknownSubtaskError").foreach { case (outcome, error) =>
        refusal(outcome)(h) match {
          case failure: CheckpointFailure =>
            assert(failure.error == error)
            assert(failure.reason.contains("of no use") && failure.reason.contains("version 1"))
        }
        assert(!h.holds(1))
      }
      refusal("denied")(h) match {
        case denied: CommitDeniedException => assert(denied.getMessage.contains("of no use"))
      }
      h.coordinator.answer = Map("outcome" -> "success")
      h.commit(0, 5)
      assert(h.read(1) == Set(5))
    }
  }

  test("a store that cannot write its file declines, with the task and the reason") {
    withStore("ackThreshold" -> "0") { h =>
      Files.writeString(h.location.resolve("ckpt"), "a file where the directory should be")
      val failure = intercept[Exception](h.commit(0, 1))
      eventually(timeout(10.seconds))(assert(h.heard("decline") == 1))
      val decline = h.coordinator.heard.toArray.last.asInstanceOf[Message].json
      assert(decline.path("version").asLong() == 1 && decline.path("batch_id").asLong(-1) == 0)
      assert(decline.path("task").path("stage_id").asInt() == 7 && decline.path("task").path("attempt_number").asInt() == 2)
      assert(decline.path("reason").asText() == failure.toString)
      assert(h.heard("ack") == 0 && !h.holds(1))
    }
  }

  test("a store that was given up while it waited for the lock leaves the batch of the next attempt alone") {
    withStore() { h =>
      Seq[(Long, StateStore => Any)](0L -> (_.abort()), 1L -> (_.commit())).foreach { case (version, use) =>
        val givenUp = h.open(version)
        val waiting = new Thread(() => try use(givenUp) catch { case _: StoreUsageFailure => })
        val next = h.provider.synchronized {
          waiting.start()
          eventually(timeout(10.seconds))(assert(waiting.getState == Thread.State.BLOCKED))
          h.open(version)
        }
        waiting.join()
        next.put(h.row(version), h.row(version))
        next.commit()
        assert(h.read(version + 1) == (0L to version).toSet)
      }
    }
  }

  test("a task that was killed does not decline") {
    withStore("ackThreshold" -> "0") { h =>
      Files.writeString(h.location.resolve("ckpt"), "a file where the directory should be")
      val store = h.open(0)
      store.put(h.row(1), h.row(1))
      h.asTask(0).markInterrupted("another attempt succeeded")
      intercept[Exception](store.commit())
      h.notify(Notification.Ended, -1)
      h.asTask(0)
      intercept[Exception](h.commit(0, 1))
      eventually(timeout(10.seconds))(assert(h.heard("decline") == 1))
      assert(h.coordinator.kinds.lastIndexOf("decline") > h.coordinator.kinds.lastIndexOf("locate"), "the first one declined")
    }
  }

  test("the metrics of a batch say what its commit has cost, and what was loaded for it") {
    withStore() { h =>
      val first = h.metrics(h.commit(0, 1, 2, 3))
      assert(first("ckptDeltaBytes") > 3 * 16 && first("ckptRestoredSegments") == 0 && first("ckptBaseBytes") == 0)
      h.notify(Notification.Ended, -1)
      val second = h.metrics(h.commit(1, 4))
      assert(second("ckptRestoredSegments") == 1)
      assert(second("ckptRestoredBytes") == first("ckptDeltaBytes"), "all of the one delta, and nothing else")
      val third = h.metrics(h.commit(2, 5))
      assert(third("ckptRestoredSegments") == 0 && third("ckptRestoredBytes") == 0)
      assert(third("ckptDeltaBytes") < first("ckptDeltaBytes"))
    }
  }

  test("a base is in the metrics of the batch that it went with") {
    withStore() { h =>
      h.commit(0, 1)
      h.coordinator.baseDue = true
      h.commit(1, 2)
      h.coordinator.baseDue = false
      var version = 2L
      eventually(timeout(10.seconds)) {
        version += 1
        assert(h.metrics(h.commit(version - 1, version))("ckptBaseBytes") > 0)
      }
    }
  }

  test("an executor asks for notifications once") {
    withStore() { h =>
      (0 until 3).foreach(v => h.commit(v, v))
      assert(h.heard("register") == 1)
    }
  }
}
