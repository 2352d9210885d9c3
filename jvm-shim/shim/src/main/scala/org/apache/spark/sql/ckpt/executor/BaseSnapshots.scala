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

import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.{AtomicBoolean, AtomicReference}

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.CheckpointFailure
import org.apache.spark.sql.ckpt.backend.{BaseSnapshot, BlockCodec, StateTooLargeException}
import org.apache.spark.sql.ckpt.protocol.{BaseDemand, MergeDemand}
import org.apache.spark.util.ThreadUtils

/** A written segment that waits for the next ack. */
private[ckpt] sealed trait ReadySegment {
  def segment: ShippedSegment
}

private[ckpt] final case class ReadyBase(version: Long, stateId: String, rows: Long, segment: ShippedSegment)
    extends ReadySegment

/** Deltas that were merged into one. */
private[ckpt] final case class ReadyMerge(demand: MergeDemand, segment: ShippedSegment) extends ReadySegment

/**
 * Base snapshots and merged deltas of one store, written in the background while batches continue: at most one of both
 * in progress, and one waiting for an ack.
 *
 * Threads: the provider's lock orders all calls; the background thread takes no lock.
 *
 * @param store       for messages
 * @param inlineLimit bytes up to which a base or a merged delta travels with the ack
 * @param recent      local copies of deltas
 * @param codec       codec of merged deltas
 */
private[ckpt] class BaseSnapshots(
    store: => String,
    files: StateFiles,
    inlineLimit: () => Long,
    recent: RecentDeltas = RecentDeltas.Nowhere,
    codec: BlockCodec = BlockCodec.Uncompressed)
    extends Logging {
  private val merges = new DeltaMerges(files, inlineLimit, recent, codec)

  private sealed trait State
  private case object Idle extends State
  private final case class Ready(segment: ReadySegment) extends State

  /**
   * A segment to be written by the background thread, or by a task that cannot wait for it: the first to begin writes.
   */
  private abstract class Writing extends State {
    private val begun = new AtomicBoolean
    private val done = new CountDownLatch(1)
    @volatile private var result: Either[Throwable, ReadySegment] = _

    protected def written(): ReadySegment

    /** Frees what it reads. */
    protected def close(): Unit

    /** Writes it, unless writing has begun. Rethrows only errors that the thread must not survive. */
    def writeOnce(): Unit = if (begun.compareAndSet(false, true)) {
      try {
        result = try {
          Right(written())
        } catch {
          case e: Throwable => Left(e)
        }
        finished(this, result)
      } finally {
        done.countDown()
        close()
      }
      result.left.foreach(e => if (!NonFatal(e)) throw e)
    }

    def await(): Either[Throwable, ReadySegment] = {
      done.await()
      result
    }

    /** Prevents writing, unless writing has begun. */
    def cancel(): Unit = if (begun.compareAndSet(false, true)) {
      result = Left(new InterruptedException("the segment is no longer needed"))
      done.countDown()
      close()
    }
  }

  private final class WritingBase(snapshot: BaseSnapshot, stateId: => String) extends Writing {
    override protected def written(): ReadySegment =
      ReadyBase(snapshot.version, stateId, snapshot.rows, write(snapshot))

    override protected def close(): Unit = snapshot.close()
  }

  private final class WritingMerge(demand: MergeDemand) extends Writing {
    override protected def written(): ReadySegment =
      ReadyMerge(demand, merges.write(store, demand, () => state.get() ne this))

    override protected def close(): Unit = ()
  }

  private val state = new AtomicReference[State](Idle)
  @volatile private var failure: Option[Throwable] = None
  @volatile private var required = false

  def isIdle: Boolean = state.get() eq Idle

  /** True if a base or a merged delta waits for the next ack. */
  def isReady: Boolean = state.get().isInstanceOf[Ready]

  /** True if the chain of deltas has reached its bound: the next ack must bring a base. */
  def isRequired: Boolean = required

  /** Failure of the last base or merge, until an ack that counts has reported it. */
  def lastFailure: Option[Throwable] = failure

  /** The coordinator knows of the last failure. */
  def failureTold(): Unit = failure = None

  /**
   * Follows the coordinator's demand: starts a base or a merge in the background unless one is in progress.
   *
   * @param snapshot of the folded version; evaluated only to be written
   * @param stateId  of the snapshot; evaluated after its version, when it is written
   */
  def obey(demand: BaseDemand, snapshot: => BaseSnapshot, stateId: => String): Unit = {
    required = demand.required
    if (demand.due && isIdle) {
      try start(new WritingBase(snapshot, stateId)) catch { case NonFatal(e) => failed(e) }
    } else if (isIdle) {
      demand.merge.foreach(merge => start(new WritingMerge(merge)))
    }
  }

  private def start(writing: Writing): Unit = {
    state.set(writing)
    BaseSnapshots.pool.execute(() => writing.writeOnce())
  }

  /** Writes a snapshot now, instead of the one in progress. */
  def writeNow(snapshot: BaseSnapshot, stateId: String): Unit = {
    forget()
    val writing = new WritingBase(snapshot, stateId)
    state.set(writing)
    writing.writeOnce()
    writing.await().left.foreach(throw _)
  }

  /**
   * The base or the merged delta for the next ack; the coordinator then owns its file. If a base is required, this
   * waits for it, or writes it if the background thread has not begun.
   *
   * @param snapshot of the folded version
   * @throws StateTooLargeException if the state is too large for a base
   * @throws CheckpointFailure      if a base is required and cannot be written
   */
  def forAck(snapshot: => BaseSnapshot, stateId: String): Option[ReadySegment] = {
    failure.foreach {
      case e: StateTooLargeException => throw new StateTooLargeException(s"$store: ${e.getMessage}")
      case _ =>
    }
    if (required) complete(snapshot, stateId)
    take()
  }

  private def complete(snapshot: => BaseSnapshot, stateId: String): Unit = {
    val outcome = state.get() match {
      case Ready(base: ReadyBase) => Right(base)
      case writing: WritingBase =>
        writing.writeOnce()
        writing.await()
      case _ =>
        try {
          writeNow(snapshot, stateId)
          Right(())
        } catch {
          case e: InterruptedException => throw e
          case NonFatal(e) => Left(e)
        }
    }
    outcome match {
      case Left(e: StateTooLargeException) => throw new StateTooLargeException(s"$store: ${e.getMessage}")
      case Left(e) =>
        throw new CheckpointFailure("BaseSnapshotError",
          s"$store: the chain of deltas has reached its bound, and no base can be written to ${files.directory}: $e. " +
            "Remove the cause and start the query again; a larger chain.maxDeltas gives it more time", e)
      case _ =>
    }
  }

  private def take(): Option[ReadySegment] = state.get() match {
    case ready @ Ready(segment) if state.compareAndSet(ready, Idle) => Some(segment)
    case _ => None
  }

  /** Drops the waiting segment and the one in progress. */
  def forget(): Unit = state.getAndSet(Idle) match {
    case Ready(ready) => ready.segment.path.foreach(files.delete)
    case writing: Writing => writing.cancel()
    case _ =>
  }

  /** If it was forgotten meanwhile, no other part knows of the file, so it is deleted. */
  private def finished(writing: Writing, result: Either[Throwable, ReadySegment]): Unit = result match {
    case Right(ready) =>
      if (!state.compareAndSet(writing, Ready(ready))) ready.segment.path.foreach(files.delete)
    case Left(e) =>
      if (state.compareAndSet(writing, Idle)) failed(e)
  }

  private def failed(cause: Throwable): Unit = {
    failure = Some(cause)
    logWarning(
      s"$store: a base snapshot or a merge of deltas failed; the chain grows, and the coordinator will ask again",
      cause)
  }

  /** Writes a segment; tests override it to fail. */
  protected def write(snapshot: BaseSnapshot): ShippedSegment =
    if (snapshot.rawBytes <= inlineLimit()) ShippedSegment.inline(snapshot.toBytes())
    else ShippedSegment.inFile(files, "base")(snapshot.write)
}

private[ckpt] object BaseSnapshots {
  // One thread per executor: bases and merges must cost batches little, and need not be quick.
  private lazy val pool = ThreadUtils.newDaemonFixedThreadPool(1, "spark-ckpt-base-snapshot")
}
