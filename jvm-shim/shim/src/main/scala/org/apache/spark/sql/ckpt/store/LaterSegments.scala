// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import io.github.sparkckpt.engine.restore.{MisplacedRowException, StoredSegments}
import io.github.sparkckpt.engine.segment.StateSegment

import org.apache.spark.TaskContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, Settings}
import org.apache.spark.sql.ckpt.files.StateFiles
import org.apache.spark.sql.ckpt.locate.{OpenSegments, RowPartitions, StateLocation}
import org.apache.spark.sql.execution.streaming.state.StateStoreId

/**
 * The segments of a location, opened whenever some of their rows are wanted. Files do not stay open in between, but for
 * one with single rows: an executor may have hundreds of stores. Threads: any, one load at a time.
 *
 * @param unreadable reports that a task cannot read the version, and tells the error to throw
 */
private[ckpt] final class LaterSegments(
    storeId: StateStoreId,
    version: Long,
    found: StateLocation,
    files: StateFiles,
    partitions: RowPartitions,
    unreadable: CheckpointFailure => CheckpointFailure)
    extends StoredSegments
    with Logging {

  override val keyGroups: IndexedSeq[Array[Int]] = found.segments.map(_.keyGroups).toIndexedSeq
  private val what = s"version $version of $storeId"
  private val rows = found.rows
  private val inlineBytes = found.segments.iterator.map(_.data.length.toLong).sum

  // None once it is closed: readers may hold this object for longer, and segments inside `_metadata` are memory.
  @volatile private var location = Option(found)
  private var cost = RestoreCost.Nothing
  private var opened = Set.empty[Int]

  // Of single rows.
  private var kept: OpenSegments = _
  private var keptSegment: StateSegment = _

  override def memoryBytes: Long = if (location.isEmpty) 0L else inlineBytes

  /** Cost of the loads since the last call. */
  def takeCost(): RestoreCost = synchronized {
    val taken = cost
    cost = RestoreCost.Nothing
    taken
  }

  override def reading(wanted: Seq[Int])(body: (Int => StateSegment) => Unit): Unit = {
    val start = System.nanoTime()
    val reads = opening(wanted)
    try {
      orFailure {
        val open = wanted.zip(reads.open()).toMap
        body(open)
      }
    } finally {
      reads.close()
      paid(wanted, System.nanoTime() - start, reads.bytesRead)
    }
  }

  override def lookingUp(segment: Int)(body: StateSegment => Unit): Unit = {
    val start = System.nanoTime()
    val before = if (kept == null) 0L else kept.bytesRead
    try {
      orFailure {
        if (kept == null) {
          kept = opening(Seq(segment))
          keptSegment = kept.open().head
        }
        body(keptSegment)
      }
    } finally paid(Seq(segment), System.nanoTime() - start, kept.bytesRead - before)
  }

  override def close(): Unit = {
    if (kept != null) kept.close()
    kept = null
    keptSegment = null
    location = None
  }

  private def opening(wanted: Seq[Int]) = {
    val whole = location.getOrElse(throw new IllegalStateException(s"the segments of $what are closed"))
    new OpenSegments(
      whole.copy(segments = wanted.map(whole.segments.toIndexedSeq)), files, partitions, byKeyGroup = true)
  }

  private def orFailure(body: => Unit): Unit =
    try body catch {
      case e: OutOfMemoryError => throw LoadFailures.outOfMemory(storeId, e)
      case e: Throwable if LoadFailures.isKnown(e) => throw LoadFailures.of(what, files.directory.toString, e)
    }

  private def paid(wanted: Seq[Int], nanos: Long, bytes: Long): Unit = synchronized {
    val more = wanted.filterNot(opened)
    if (more.nonEmpty) opened ++= more
    cost += RestoreCost(nanos, bytes, more.size)
  }

  override def unreadable(cause: Throwable): Throwable = cause match {
    case e: CheckpointFailure if TaskContext.get() != null => unreadable(e)
    case e: MisplacedRowException => new CheckpointFailure("StateFileError",
      s"$what: ${e.getMessage}, so that rows cannot be loaded one key group at a time. The files are intact: set " +
        s"${Settings.Restore} to eager", e)
    case e => e
  }

  override def loaded(rows: Long): Unit = {
    logInfo(s"loaded the rest of $what: $rows rows")
    // The batches since then have told a wrong number of rows, and the next ones tell the right one.
    if (rows != this.rows) logWarning(s"$what has $rows rows, but its checkpoint says ${this.rows}")
  }
}
