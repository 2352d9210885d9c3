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
package org.apache.spark.sql.ckpt.executor

import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.TimeUnit.{MILLISECONDS, NANOSECONDS}
import java.util.concurrent.locks.ReentrantLock

import scala.concurrent.duration.FiniteDuration
import scala.util.control.NonFatal

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.{CheckpointFailure, Settings}
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/**
 * Mutual exclusion on a store: one thread changes it at a time, and between its calls the one task that has it open.
 *
 * A thread that loads or commits keeps its turn while it waits for the coordinator, also for the answer to its ack.
 * Until that comes, nothing else can be done with the state. A table holds one version, what one batch has committed on
 * top of it, and one open batch; which of the two is the next version depends on the answer. A task that opens the
 * version before writes its batch for a second time, and whether its ack is a duplicate of the first depends on the
 * answer, too. No task asks for the next version: its batch begins when all acks of this one are answered.
 *
 * Only other tasks of the same store wait, for a bounded time, and they can be killed meanwhile. Everything else never
 * waits: [[orLater]] leaves it to the thread whose turn it is.
 *
 * @param timeout how long a task waits for another one
 */
private[ckpt] final class StoreTurn(id: StateStoreId, timeout: FiniteDuration) extends Logging {
  import StoreTurn._

  private val lock = new ReentrantLock
  private val changed = lock.newCondition()
  private val left = new ConcurrentLinkedQueue[() => Unit]

  /** The task that has the store open; by it and `lock` a change of the state is ordered. */
  @volatile private var writer: Writer = NoWriter

  /** The task whose turn it is, None for a thread that is no task. Of use only to those who wait. */
  @volatile private var holder: Option[TaskContext] = None

  /**
   * Takes a turn. A thread that has it already takes it once more.
   *
   * @throws CheckpointFailure if another thread keeps its turn for too long
   * @throws org.apache.spark.TaskKilledException if the task is killed while it waits
   * @throws InterruptedException if it is killed and interrupted
   */
  def apply[A](body: => A): A = {
    // Not a timed wait at once: it fails for a thread that is interrupted, even where there is nothing to wait for.
    if (!lock.tryLock()) {
      val patience = new Patience(
        s"${nameOf(holder)} of this executor, which loads the state or waits for the coordinator")
      while (!lock.tryLock(patience.next(), NANOSECONDS)) ()
    }
    try {
      holder = Option(TaskContext.get())
      drain()
      body
    } finally release()
  }

  /**
   * Does something in a turn: now if nothing else has it, else when the thread that has it gives it up. Never waits.
   */
  def orLater(body: => Unit): Unit = {
    left.add(() => body)
    if (lock.tryLock()) release()
  }

  /**
   * Waits until no other task has the store open, in a turn that others can take meanwhile. A task that was killed or
   * has ended counts no more, nor does a store that was given up.
   *
   * @param epoch of the store's provider: of another one is a store that was given up
   * @throws CheckpointFailure if another task keeps the store open for too long
   * @throws org.apache.spark.TaskKilledException if the task is killed while it waits
   * @throws InterruptedException if it is killed and interrupted
   */
  def awaitOthers(epoch: => Long): Unit = {
    lazy val patience = new Patience(s"${writer.name} of this executor")
    while (writer.keepsOut(TaskContext.get(), epoch)) {
      val piece = patience.next()
      drain()
      changed.awaitNanos(piece)
    }
  }

  /** In a turn: this task has the store open from now on. */
  def opened(epoch: Long): Unit = {
    writer = new Writer(Option(TaskContext.get()), epoch)
    changed.signalAll()
  }

  /** In a turn: the store that was opened in this epoch is open no more. */
  def closed(epoch: Long): Unit = if (writer.epoch == epoch) {
    writer = NoWriter
    changed.signalAll()
  }

  private def release(): Unit = {
    // What comes after the last look and before the lock is free would otherwise wait for the next turn.
    do {
      try drain() finally {
        if (lock.getHoldCount == 1) holder = None
        lock.unlock()
      }
    } while (!lock.isHeldByCurrentThread && !left.isEmpty && lock.tryLock())
  }

  /** Not within another call of the same thread: that may be in the middle of a change. */
  private def drain(): Unit = if (lock.getHoldCount == 1) {
    var next = left.poll()
    while (next != null) {
      try next() catch {
        case NonFatal(e) => logWarning(s"what was left to do with $id has failed", e)
      }
      next = left.poll()
    }
  }

  /**
   * Time that a thread still waits. A task that is killed is not always interrupted, and one that is waited for says
   * nothing when it is killed: so it waits in pieces, and looks in between.
   *
   * @param other who is waited for
   */
  private final class Patience(other: => String) {
    private val deadline = System.nanoTime() + timeout.toNanos

    /** Nanoseconds until the next look. */
    def next(): Long = {
      val task = Option(TaskContext.get())
      task.foreach(_.killTaskIfInterrupted())
      val remaining = deadline - System.nanoTime()
      if (remaining <= 0) throw busy(other, task)
      math.min(remaining, LookNanos)
    }
  }

  private def busy(other: String, task: Option[TaskContext]) = new CheckpointFailure("StateStoreBusyError",
    s"$id is in use by $other, and ${nameOf(task)} has waited for it for $timeout. If two jobs run at once on one " +
      s"batch, as with threads in foreachBatch, let them run one after the other, or raise ${Settings.BridgeTimeout}")
}

private[ckpt] object StoreTurn {
  private val LookNanos = MILLISECONDS.toNanos(100)

  private class Writer(task: Option[TaskContext], val epoch: Long) {
    def name: String = nameOf(task)

    /** True if another task has to wait. A caller without a task may open the store at any time. */
    def keepsOut(other: TaskContext, current: Long): Boolean =
      epoch == current && other != null && task.exists { mine =>
        mine.taskAttemptId() != other.taskAttemptId() &&
        !mine.isCompleted() && !mine.isFailed() && !mine.isInterrupted()
      }
  }

  private object NoWriter extends Writer(None, -1)

  private def nameOf(task: Option[TaskContext]): String = task.fold("a thread that is no task") { context =>
    s"task ${context.taskAttemptId()} (stage ${context.stageId()}, attempt ${context.attemptNumber()})"
  }
}
