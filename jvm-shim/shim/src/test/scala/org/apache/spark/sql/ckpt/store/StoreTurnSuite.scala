// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicReference

import scala.util.{Failure, Success, Try}

import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

import org.apache.spark.{TaskContextImpl, TaskKilledException}
import org.apache.spark.sql.ckpt.CheckpointStateStoreProvider
import org.apache.spark.sql.ckpt.client.LoadedStores
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, Settings}
import org.apache.spark.sql.ckpt.protocol.Notification
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreId}

/** Several tasks at one store, and the calls that must not wait for them. */
class StoreTurnSuite extends AnyFunSuite {
  private def withStore(settings: (String, String)*)(body: StoreHarness => Unit): Unit = {
    val harness = new StoreHarness(settings: _*)
    try body(harness) finally {
      harness.coordinator.answerAcks()
      harness.close()
    }
  }

  /** A task of a job on a thread of its own. */
  private final class OtherTask[A](h: StoreHarness, stage: Int, attemptId: Long)(body: => A) {
    val task = new AtomicReference[TaskContextImpl]
    private val outcome = new AtomicReference[Try[A]]
    private val thread = new Thread(() => {
      task.set(h.asTask(batch = 0, stage, attemptId))
      // Not `Try(body)`, which lets an interruption pass.
      outcome.set(try Success(body) catch { case e: Throwable => Failure(e) })
    })
    thread.setDaemon(true)
    thread.start()

    def result: Try[A] = {
      eventually(timeout(5.minutes))(assert(outcome.get() != null))
      outcome.get()
    }

    /** That it waits for another task, and for nothing else. */
    def assertWaits(): Unit = {
      eventually(timeout(5.minutes)) {
        val stack = thread.getStackTrace.toSeq.map(_.toString)
        val inTurn = stack.exists(_.contains("store.StoreTurn.")) // and not this suite
        assert(inTurn && stack.exists(_.contains("java.util.concurrent.locks")), stack)
      }
      assert(outcome.get() == null)
    }

    def interrupt(): Unit = thread.interrupt()
  }

  private def committing(h: StoreHarness, provider: CheckpointStateStoreProvider, n: Long): OtherTask[Long] = {
    h.coordinator.holdAcks()
    val acks = h.heard("ack")
    val task = new OtherTask(h, 7, 1)({
      val store = provider.getStore(0)
      store.put(h.row(n), h.row(n))
      store.commit()
    })
    eventually(timeout(5.minutes))(assert(h.heard("ack") == acks + 1))
    task
  }

  test("metrics, notifications and closing do not wait for an ack that is not answered yet") {
    withStore() { h =>
      val task = committing(h, h.provider, 1)
      val others = new OtherTask(h, 8, 2)({
        h.notify(Notification.Complete, 1)
        h.notify(Notification.Ended, -1)
        h.provider.close()
        h.provider.subtask.metrics(None, forced = false).memoryUsedBytes
      })
      assert(others.result.get > 0, "an open batch is freed while its ack is under way")
      h.coordinator.answerAcks()
      assert(task.result.get == 1)
      assert(!h.inMemory, "the notification is lost")
      assert(h.read(1) == Set(1))
    }
  }

  test("a store that commits does not delay the notifications of another") {
    withStore() { h =>
      val other = h.newProvider(partition = 1)
      val store = other.getStore(0)
      store.put(h.row(5), h.row(5))
      store.commit()
      val task = committing(h, h.provider, 1)
      def inMemory = other.subtask.metrics(None, forced = false).memoryUsedBytes > 0
      assert(inMemory)
      val telling = new OtherTask(h, 8, 2)(LoadedStores.here.tell(h.job, Notification(Notification.Ended)))
      assert(telling.result.isSuccess)
      assert(!inMemory && h.inMemory)
      h.coordinator.answerAcks()
      assert(task.result.isSuccess && !h.inMemory)
    }
  }

  test("a second job on a batch waits for the first one, and both use the state of the first") {
    withStore() { h =>
      h.asTask(batch = 0)
      val first = h.open(0)
      first.put(h.row(1), h.row(1))
      val second = new OtherTask(h, 8, 2)({
        val reads = h.provider.getReadStore(0)
        assert(reads.get(h.row(1)) == null)
        h.provider.upgradeReadStoreToWriteStore(reads, 0, None, forceSnapshotOnCommit = false)
      })
      second.assertWaits()
      first.put(h.row(2), h.row(2))
      first.commit()
      val counted = first.getStateStoreCheckpointInfo().stateStoreCkptId.get
      val store = second.result.get
      assert(store.get(h.row(1)) == null)
      h.asTask(batch = 0, stage = 8, taskAttemptId = 2)
      Seq(1, 2).foreach(n => store.put(h.row(n), h.row(n)))
      h.coordinator.answer = Map("outcome" -> "duplicate", "state_id" -> counted)
      store.commit()
      assert(store.getStateStoreCheckpointInfo().stateStoreCkptId.contains(counted))
      assert(h.holds(1) && h.read(1) == Set(1, 2))
    }
  }

  test("a second job on a batch begins when the first one gives its store up") {
    withStore() { h =>
      h.asTask(batch = 0)
      val first = h.open(0)
      first.put(h.row(1), h.row(1))
      val second = new OtherTask(h, 8, 2)(h.open(0))
      second.assertWaits()
      first.abort()
      h.asTask(batch = 0, stage = 8, taskAttemptId = 2)
      val store = second.result.get
      store.put(h.row(3), h.row(3))
      store.commit()
      assert(h.read(1) == Set(3))
    }
  }

  test("nothing waits for a task that was killed or has ended: its store fails from then on") {
    withStore() { h =>
      val ends = Seq[TaskContextImpl => Unit](_.markInterrupted("killed"), _.markTaskCompleted(None))
      ends.zipWithIndex.foreach { case (end, i) =>
        val task = h.asTask(batch = 0)
        val first = h.open(0)
        val second = new OtherTask(h, 8, 2L + i)(h.open(0))
        second.assertWaits()
        end(task)
        assert(second.result.isSuccess)
        intercept[Exception](first.put(h.row(1), h.row(1)))
        h.asTask(batch = 0)
        second.task.get.markInterrupted("enough")
      }
    }
  }

  /**
   * Gives the store of a harness the turn of one with a setting of its own: it bounds requests too, which take longer.
   */
  private def bound(h: StoreHarness, timeout: String): Unit = {
    val other = h.newProvider(conf = h.storeConf(Settings.BridgeTimeout -> timeout))
    val turn = classOf[SubtaskStore].getDeclaredField("turn")
    turn.setAccessible(true)
    turn.set(h.provider.subtask, turn.get(other.subtask))
    other.close()
  }

  test("a task waits for a bounded time, and is told for what") {
    withStore() { h =>
      bound(h, "1")
      h.asTask(batch = 0)
      val first = h.open(0)
      val failure = new OtherTask(h, 8, 2)(h.open(0)).result.failed.get.asInstanceOf[CheckpointFailure]
      assert(failure.error == "StateStoreBusyError")
      Seq("task 1 (stage 7", "task 2 (stage 8", "bridge.timeout").foreach(text => assert(failure.reason.contains(text)))
      first.put(h.row(1), h.row(1))
      first.commit()
      assert(h.read(1) == Set(1))
    }
  }

  test("a task that waits for another one can be killed") {
    withStore() { h =>
      h.asTask(batch = 0)
      val first = h.open(0)
      val second = new OtherTask(h, 8, 2)(h.open(0))
      second.assertWaits()
      second.interrupt()
      assert(second.result.failed.get.isInstanceOf[InterruptedException])
      first.put(h.row(1), h.row(1))
      first.commit()
      assert(h.read(1) == Set(1))
    }
  }

  test("a task that waits for another one, or for its ack, ends when it is killed without an interruption") {
    withStore() { h =>
      h.asTask(batch = 0)
      val first = h.open(0)
      val second = new OtherTask(h, 8, 2)(h.open(0))
      second.assertWaits()
      second.task.get.markInterrupted("enough")
      assert(second.result.failed.get.isInstanceOf[TaskKilledException])
      first.abort()
      val committing = this.committing(h, h.provider, 1)
      val third = new OtherTask(h, 9, 3)(h.open(0))
      third.assertWaits()
      third.task.get.markInterrupted("enough")
      assert(third.result.failed.get.isInstanceOf[TaskKilledException])
      h.coordinator.answerAcks()
      assert(committing.result.get == 1)
    }
  }

  test("a task waits for a bounded time for one that does not come back from the coordinator, and is told for what") {
    withStore() { h =>
      val turn = new StoreTurn(StateStoreId("file:/somewhere/state", 0, 3), 1.second)
      val answered = new CountDownLatch(1)
      val inTurn = new CountDownLatch(1)
      val asking = new OtherTask(h, 7, 1)(turn {
        inTurn.countDown()
        answered.await()
      })
      inTurn.await()
      val failure = new OtherTask(h, 8, 2)(turn(())).result.failed.get.asInstanceOf[CheckpointFailure]
      assert(failure.error == "StateStoreBusyError")
      Seq("task 1 (stage 7", "waits for the coordinator", "task 2 (stage 8", "bridge.timeout")
        .foreach(text => assert(failure.reason.contains(text)))
      answered.countDown()
      assert(asking.result.isSuccess && new OtherTask(h, 9, 3)(turn(())).result.isSuccess)
    }
  }

  test("a task that waits for an ack of another one can be killed too, and continues when it is answered") {
    withStore() { h =>
      val task = committing(h, h.provider, 1)
      val killed = new OtherTask(h, 8, 2)(h.open(0))
      val patient = new OtherTask[StateStore](h, 9, 3)(h.open(0))
      killed.assertWaits()
      patient.assertWaits()
      killed.interrupt()
      assert(killed.result.failed.get.isInstanceOf[InterruptedException])
      h.coordinator.answerAcks()
      assert(task.result.get == 1)
      assert(patient.result.get.get(h.row(1)) == null)
    }
  }
}
