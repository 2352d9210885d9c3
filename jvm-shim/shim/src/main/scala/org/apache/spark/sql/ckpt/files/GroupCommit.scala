// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.io.OutputStream
import java.util.concurrent.TimeUnit.{MILLISECONDS, NANOSECONDS}

import scala.collection.mutable

import io.github.sparkckpt.engine.segment.SegmentInfo
import org.apache.hadoop.fs.Path

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.protocol.{SegmentRef, SharedFileLimits}

/** Tasks that may share a file: those of one attempt of a stage. */
private[ckpt] final case class StageAttempt(directory: Path, stageId: Int, attempt: Int)

/**
 * Shared files for large deltas that tasks of this executor commit at about the same time. Where a request takes long,
 * the number of objects should follow the bytes of a batch, not its partitions. The first task waits for the others
 * that have a store open and writes for all; each task acknowledges its own part. Thread-safe.
 *
 * The coordinator sets the limits ([[SharedFileLimits]]), the same for all tasks of a stage.
 */
private[ckpt] final class GroupCommit extends Logging {

  private final class Part(val write: OutputStream => SegmentInfo) {
    var info: SegmentInfo = _
  }

  private final class Group {
    val parts = mutable.ArrayBuffer.empty[Part]
    val tasks = mutable.HashSet.empty[Long]
    var bytes = 0L
    var isDone = false

    /** None if writing failed: then each task but the first writes for itself. */
    var name: Option[String] = None
  }

  private val collecting = mutable.HashMap.empty[StageAttempt, Group]
  private val active = mutable.HashMap.empty[StageAttempt, mutable.Set[Long]]

  /** The task has a store open, and may write until it ends. */
  def enter(directory: Path, context: TaskContext): Unit = if (context != null) {
    val stage = GroupCommit.stageOf(directory, context)
    val task = context.taskAttemptId()
    if (enter(stage, task)) context.addTaskCompletionListener[Unit](_ => leave(stage, task))
  }

  /** As above; true if the task is new. */
  def enter(stage: StageAttempt, task: Long): Boolean =
    synchronized(active.getOrElseUpdate(stage, mutable.HashSet.empty[Long]).add(task))

  /** The task writes nothing more. */
  def leave(stage: StageAttempt, task: Long): Unit = synchronized {
    active.get(stage).foreach { tasks =>
      tasks.remove(task)
      if (tasks.isEmpty) active.remove(stage)
    }
    notifyAll()
  }

  /**
   * Writes a delta. Blocks until it is in a file.
   *
   * @param version version that it leads to
   * @param size    approximate bytes
   */
  def write(files: StateFiles, context: TaskContext, version: Long, size: Long, limits: SharedFileLimits)(
      body: OutputStream => SegmentInfo): SegmentRef =
    if (context == null || size >= limits.maxBytes || !files.isRemote) alone(files, version)(body)
    else {
      val stage = GroupCommit.stageOf(files.directory, context)
      write(files, stage, context.taskAttemptId(), version, size, limits)(body)
    }

  /** As above, for a task known only by its stage and id. */
  def write(
      files: StateFiles, stage: StageAttempt, task: Long, version: Long, size: Long, limits: SharedFileLimits)(
      body: OutputStream => SegmentInfo): SegmentRef = {
    val part = new Part(body)
    val (group, leads) = join(stage, task, part, size, limits.maxBytes)
    if (leads) lead(files, stage, group, limits.maxWaitMillis) else follow(group)
    group.name match {
      case Some(name) => segment(name, version, group, part)
      case None => alone(files, version)(body)
    }
  }

  private def alone(files: StateFiles, version: Long)(body: OutputStream => SegmentInfo): SegmentRef =
    NewSegments.inFile(files, "delta", version, version)(body)

  private def join(
      stage: StageAttempt, task: Long, part: Part, size: Long, maxBytes: Long): (Group, Boolean) = synchronized {
    val leads = !collecting.contains(stage)
    val group = collecting.getOrElseUpdate(stage, new Group)
    group.parts += part
    group.tasks += task
    group.bytes += size
    // The next task starts another file.
    if (group.bytes >= maxBytes) collecting.remove(stage)
    notifyAll()
    (group, leads)
  }

  private def lead(files: StateFiles, stage: StageAttempt, group: Group, maxWaitMillis: Long): Unit =
    try {
      gather(stage, group, maxWaitMillis)
      val kind = if (group.parts.size == 1) "delta" else "deltas"
      group.name = Some(files.write(kind)(out => group.parts.foreach(part => part.info = part.write(out))))
    } finally synchronized {
      close(stage, group)
      group.isDone = true
      notifyAll()
    }

  /** Waits for tasks that have a store open. Afterwards no task can join. */
  private def gather(stage: StageAttempt, group: Group, maxWaitMillis: Long): Unit = synchronized {
    val deadline = System.nanoTime() + MILLISECONDS.toNanos(maxWaitMillis)
    def isOpen = collecting.get(stage).contains(group)
    def others = active.get(stage).exists(tasks => !tasks.subsetOf(group.tasks))
    var left = deadline - System.nanoTime()
    while (isOpen && others && left > 0) {
      NANOSECONDS.timedWait(this, left)
      left = deadline - System.nanoTime()
    }
    close(stage, group)
  }

  private def close(stage: StageAttempt, group: Group): Unit =
    if (collecting.get(stage).contains(group)) collecting.remove(stage)

  /** Waits even if this task is killed: the other task reads its changes, so they must not be freed yet. */
  private def follow(group: Group): Unit = {
    var interrupted = false
    synchronized {
      while (!group.isDone) try wait() catch { case _: InterruptedException => interrupted = true }
    }
    if (interrupted) Thread.currentThread().interrupt()
    if (group.name.isEmpty) logWarning("another task failed to write the shared file; this task writes its own")
  }

  private def segment(name: String, version: Long, group: Group, part: Part): SegmentRef = {
    val before = group.parts.iterator.takeWhile(_ ne part).map(_.info.bytes).sum
    NewSegments.inFile(name, before, group.parts.iterator.map(_.info.bytes).sum, version, version, part.info)
  }
}

private[ckpt] object GroupCommit {
  /** The shared instance of this executor. */
  val here = new GroupCommit

  private def stageOf(directory: Path, context: TaskContext): StageAttempt =
    StageAttempt(directory, context.stageId(), context.stageAttemptNumber())
}
