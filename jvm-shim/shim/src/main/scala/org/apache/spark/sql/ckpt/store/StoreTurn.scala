// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.TimeUnit.{MILLISECONDS, NANOSECONDS}
import java.util.concurrent.locks.ReentrantLock

import scala.concurrent.duration.FiniteDuration
import scala.util.control.NonFatal

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, Settings}
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/**
 * Mutual exclusion on a store: one thread at a time changes it, and between its calls one task has it open.
 *
 * A thread that loads or commits keeps its turn while it waits for the coordinator, including the reply to its ack.
 * Until then, nothing else can use the state. A table holds one version, the committed changes on top, and one open
 * batch; the reply decides which of the two becomes the next version. A task that opens the previous version repeats
 * its batch, and the reply also decides if its ack is a duplicate. No task opens the next version: its batch begins
 * after all replies to the acks of this one.
 *
 * Only other tasks of the same store wait, for a bounded time, and can be killed meanwhile. Everything else never
 * waits: [[orLater]] leaves it to the thread that holds the turn.
 *
 * @param timeout longest wait for another task
 */
private[ckpt] final class StoreTurn(id: StateStoreId, timeout: FiniteDuration) extends Logging {
  import StoreTurn._

  private val lock = new ReentrantLock
  private val changed = lock.newCondition()
  private val left = new ConcurrentLinkedQueue[() => Unit]

  /** The task that has the store open. With `lock`, it orders changes of the state. */
  @volatile private var writer: Writer = NoWriter

  /** The task that holds the turn, None for a thread outside tasks. For messages only. */
  @volatile private var holder: Option[TaskContext] = None

  /**
   * Takes a turn. It is reentrant.
   *
   * @throws CheckpointFailure if another task or thread takes too long
   * @throws org.apache.spark.TaskKilledException if the task is killed while it waits
   * @throws InterruptedException if it is killed and interrupted
   */
  def apply[A](body: => A): A = {
    // No timed wait at first: it fails for an interrupted thread even if the lock is free.
    if (!lock.tryLock()) {
      val deadline = new Deadline(
        s"${nameOf(holder)} of this executor, which loads the state or waits for the coordinator")
      while (!lock.tryLock(deadline.nextWait(), NANOSECONDS)) ()
    }
    try {
      holder = Option(TaskContext.get())
      drain()
      body
    } finally release()
  }

  /** Runs an action in a turn: now if the lock is free, else at the end of the current turn. Never waits. */
  def orLater(body: => Unit): Unit = {
    left.add(() => body)
    if (lock.tryLock()) release()
  }

  /**
   * Waits until no other task has the store open; others can take turns meanwhile. Killed and ended tasks do not count,
   * nor do abandoned stores.
   *
   * @param epoch epoch of the provider; a store of another epoch is abandoned
   * @throws CheckpointFailure if another task or thread takes too long
   * @throws org.apache.spark.TaskKilledException if the task is killed while it waits
   * @throws InterruptedException if it is killed and interrupted
   */
  def awaitOthers(epoch: => Long): Unit = {
    lazy val deadline = new Deadline(s"${writer.name} of this executor")
    while (writer.keepsOut(TaskContext.get(), epoch)) {
      val nanos = deadline.nextWait()
      drain()
      changed.awaitNanos(nanos)
    }
  }

  /** In a turn: this task has the store open now. */
  def opened(epoch: Long): Unit = {
    writer = new Writer(Option(TaskContext.get()), epoch)
    changed.signalAll()
  }

  /** In a turn: the store of this epoch is closed. */
  def closed(epoch: Long): Unit = if (writer.epoch == epoch) {
    writer = NoWriter
    changed.signalAll()
  }

  private def release(): Unit = {
    // Without the loop, an action that arrives between the last look and the unlock would wait for the next turn.
    do {
      try drain() finally {
        if (lock.getHoldCount == 1) holder = None
        lock.unlock()
      }
    } while (!lock.isHeldByCurrentThread && !left.isEmpty && lock.tryLock())
  }

  /** Runs queued actions, but not within another call of the same thread, which may be in the middle of a change. */
  private def drain(): Unit = if (lock.getHoldCount == 1) {
    var next = left.poll()
    while (next != null) {
      try next() catch {
        case NonFatal(e) => logWarning(s"a deferred action on $id failed", e)
      }
      next = left.poll()
    }
  }

  /**
   * End of a thread's wait, which is divided into short waits: a killed task is not always interrupted, and does not
   * signal its end to those that wait for it.
   *
   * @param other the task waited for
   */
  private final class Deadline(other: => String) {
    private val endNanos = System.nanoTime() + timeout.toNanos

    /** Nanoseconds of the next wait. */
    def nextWait(): Long = {
      val task = Option(TaskContext.get())
      task.foreach(_.killTaskIfInterrupted())
      val remaining = endNanos - System.nanoTime()
      if (remaining <= 0) throw busy(other, task)
      math.min(remaining, LookNanos)
    }
  }

  private def busy(other: String, task: Option[TaskContext]) = new CheckpointFailure("StateStoreBusyError",
    s"$id is in use by $other, and ${nameOf(task)} has waited for it for $timeout. If two jobs run on one batch " +
      s"at the same time, as with threads in foreachBatch, run them one after the other, or raise " +
      Settings.BridgeTimeout)
}

private[ckpt] object StoreTurn {
  private val LookNanos = MILLISECONDS.toNanos(100)

  private class Writer(task: Option[TaskContext], val epoch: Long) {
    def name: String = nameOf(task)

    /** True if another task must wait. A caller without a task may always open the store. */
    def keepsOut(other: TaskContext, current: Long): Boolean =
      epoch == current && other != null && task.exists { mine =>
        mine.taskAttemptId() != other.taskAttemptId() &&
        !mine.isCompleted() && !mine.isFailed() && !mine.isInterrupted()
      }
  }

  private object NoWriter extends Writer(None, -1)

  private def nameOf(task: Option[TaskContext]): String = task.fold("a thread outside tasks") { context =>
    s"task ${context.taskAttemptId()} (stage ${context.stageId()}, attempt ${context.attemptNumber()})"
  }
}
