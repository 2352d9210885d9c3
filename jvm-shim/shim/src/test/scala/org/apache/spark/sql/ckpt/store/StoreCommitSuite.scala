// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.nio.file.Files

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import io.github.sparkckpt.engine.restore.TableRetiredException
import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.executor.CommitDeniedException
import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.protocol.{Message, Notification}
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
      val refusals = Seq("discarded" -> "CheckpointDiscardedError", "unknown" -> "UnknownSubtaskError")
      refusals.foreach { case (outcome, error) =>
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
      eventually(timeout(5.minutes))(assert(h.heard("decline") == 1))
      val decline = h.coordinator.heard.toArray.last.asInstanceOf[Message].json
      assert(decline.path("version").asLong() == 1 && decline.path("batch_id").asLong(-1) == 0)
      assert(decline.path("task").path(0).asInt() == 7)
      assert(decline.path("task").path(3).asInt() == 2)
      assert(decline.path("reason").asText() == failure.toString)
      assert(h.heard("ack") == 0 && !h.holds(1))
    }
  }

  test("a thread of an attempt that was given up, which still has its column family, writes to no other attempt") {
    withStore() { h =>
      val endings = Seq[StateStore => Any](_.abort(), { store =>
        h.coordinator.answer = Map("outcome" -> "discarded", "reason" -> "expired")
        intercept[CheckpointFailure](store.commit())
        h.coordinator.answer = Map("outcome" -> "success")
      })
      endings.zipWithIndex.foreach { case (end, version) =>
        val givenUp = h.open(version)
        val held = h.provider.subtask.tableForWrite(givenUp, h.provider.subtask.families.default)
        givenUp.put(h.row(70), h.row(70))
        val late = h.row(80)
        def write(): Unit = intercept[TableRetiredException](held.put(
          late.getBaseObject, late.getBaseOffset, late.getSizeInBytes,
          late.getBaseObject, late.getBaseOffset, late.getSizeInBytes))
        end(givenUp)
        write()
        val next = h.open(version)
        write()
        next.put(h.row(version), h.row(version))
        write()
        next.commit()
        assert(h.read(version + 1) == (0L to version).toSet)
      }
    }
  }

  test("an ack tells how long its store loaded state, if it did") {
    withStore() { h =>
      def restores =
        h.coordinator.heard.asScala.toSeq.filter(_.kind == "ack").map(_.json.path("timings_us").path("restore"))
      h.commit(0, 1)
      h.commit(1, 2)
      h.notify(Notification.Ended, -1)
      h.commit(2, 3) // loads both deltas
      h.commit(3, 4)
      assert(restores.map(_.isNumber) == Seq(false, false, true, false))
      assert(restores(2).asLong() > 0)
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
      eventually(timeout(5.minutes))(assert(h.heard("decline") == 1))
      val kinds = h.coordinator.kinds
      assert(kinds.lastIndexOf("decline") > kinds.lastIndexOf("locate"), "the first one declined")
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
      eventually(timeout(5.minutes)) {
        version += 1
        assert(h.metrics(h.commit(version - 1, version))("ckptBaseBytes") > 0)
      }
    }
  }

  /** Five batches of changes that travel with the ack, of a state whose base is too large for that. */
  private def fill(h: StoreHarness): Unit =
    (0L until 5L).foreach(version => h.commit(version, (version * 10) until (version * 10 + 10): _*))

  /** The acks so far. */
  private def acks(h: StoreHarness): Seq[JsonNode] =
    h.coordinator.heard.asScala.toSeq.filter(_.kind == "ack").map(_.json)

  test("a base that is due when a store loads goes with the ack of the same batch") {
    withStore("ackThreshold" -> "1000") { h =>
      fill(h)
      h.notify(Notification.Ended, -1)
      h.coordinator.baseDueOnLoad = true
      val store = h.open(5)
      store.put(h.row(100), h.row(100))
      eventually(timeout(5.minutes))(assert(h.provider.subtask.waitingBase))
      store.commit()
      val base = acks(h).last.path("base")
      assert(base.path("segment").path("version").asLong() == 5 && h.rowsOfLastBase == 50)
      assert(base.path("state_id").asText() == acks(h)(4).path("state_id").asText())
      assert(h.files.map(name => s"shared/$name") == Seq(base.path("segment").path("path").asText()))
    }
  }

  test("a store whose chain is at its bound waits for the base before it acknowledges") {
    withStore("ackThreshold" -> "1000") { h =>
      fill(h)
      h.notify(Notification.Ended, -1)
      h.coordinator.baseRequired = true
      (5L to 9L).foreach(version => h.commit(version, version * 10))
      // The first one is demanded as the store loads. The others are demanded by an ack's reply: of the version before,
      // unless the next batch opens before the writing starts.
      val bases = acks(h).drop(5).map(_.path("base").path("segment").path("version").asLong())
      assert(bases.head == 5)
      assert(bases.tail.zip(5L to 8L).forall { case (base, before) => base == before || base == before + 1 }, bases)
      h.coordinator.baseRequired = false
      (10L to 14L).foreach(version => h.commit(version, version))
      // Only the base started by the last demand, which may now travel with a later ack.
      assert(acks(h).drop(10).count(_.has("base")) <= 1)
    }
  }

  /**
   * A file takes the place of the directory of state files, so that no base can be written, and the other way round.
   */
  private def storageFails(h: StoreHarness, fails: Boolean): Unit = {
    val shared = h.location.resolve("ckpt").resolve("shared")
    if (fails) {
      Files.createDirectories(shared.getParent)
      Files.writeString(shared, "a file where the directory should be")
    } else {
      Files.delete(shared)
    }
  }

  test("a base that failed is told with the next ack, once it counts, and shows in the metrics") {
    withStore("ackThreshold" -> "1000") { h =>
      fill(h)
      storageFails(h, fails = true)
      h.coordinator.baseDue = true
      h.commit(5, 500)
      h.coordinator.baseDue = false
      eventually(timeout(5.minutes))(assert(h.provider.subtask.compactionFailure.isDefined))
      h.coordinator.answer = Map("outcome" -> "discarded", "reason" -> "of no use")
      intercept[CheckpointFailure](h.commit(6, 600))
      h.coordinator.answer = Map("outcome" -> "success")
      val metrics = h.metrics(h.commit(6, 600))
      assert(acks(h).last.path("compaction_failure").asText().contains("shared"))
      assert(metrics("ckptBaseFailures") == 1)
      assert(h.metrics(h.commit(7, 700))("ckptBaseFailures") == 0)
      assert(!acks(h).last.has("base_failure"))
    }
  }

  test("a store whose chain is at its bound fails its task while no base can be written, and says why") {
    withStore("ackThreshold" -> "1000") { h =>
      fill(h)
      storageFails(h, fails = true)
      h.coordinator.baseRequired = true
      val before = h.heard("ack")
      (1 to 2).foreach { _ =>
        val failure = intercept[CheckpointFailure](h.commit(5, 500))
        assert(failure.error == "BaseSnapshotError")
        assert(failure.reason.contains(h.provider.stateStoreId.toString) && failure.reason.contains("chain.maxDeltas"))
        assert(failure.getCause != null && failure.reason.contains(failure.getCause.toString))
      }
      assert(h.heard("ack") == before)
      eventually(timeout(5.minutes))(assert(h.heard("decline") == 2))
      storageFails(h, fails = false)
      h.commit(5, 500)
      assert(acks(h).last.path("base").path("segment").path("version").asLong() == 5)
      assert(h.read(6).contains(500) && h.read(6).size == 51)
    }
  }

  test("an executor asks for notifications once") {
    withStore() { h =>
      (0 until 3).foreach(v => h.commit(v, v))
      assert(h.heard("register") == 1)
    }
  }
}
