// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compaction

import java.io.{FilterOutputStream, OutputStream}
import java.util.concurrent.{CountDownLatch, ExecutorService, TimeUnit}
import java.util.concurrent.atomic.{AtomicBoolean, AtomicReference}

import scala.util.control.NonFatal

import io.github.sparkckpt.engine.compaction.{BaseSnapshot, NoLongerNeededException}
import io.github.sparkckpt.engine.segment.{BlockCodec, StateTooLargeException}

import org.apache.spark.{TaskContext, TaskKilledException}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.common.{CheckpointFailure, OwnThreads}
import org.apache.spark.sql.ckpt.files.{NewSegments, StateFiles}
import org.apache.spark.sql.ckpt.protocol._

/**
 * Base snapshots and merged deltas of one store, written in the background while batches continue. At most one base is
 * in progress, or waits for an ack. Merges may be in progress beside it, each with versions above those of all others:
 * so their results fit into the chain in any order.
 *
 * Threads: the provider's lock orders all calls but `close`. The background threads do not take it. A lock of its own
 * orders changes of the steps.
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
  import BaseSnapshots._

  private val merges = new DeltaMerges(files, inlineLimit, recent, codec)

  /**
   * A segment to be written by a background thread, or by a task that cannot wait for it: the first to begin writes.
   *
   * @param lane thread that writes it
   */
  private abstract class Writing(lane: => ExecutorService) {
    private val begun = new AtomicBoolean
    private val done = new CountDownLatch(1)
    private val phase = new AtomicReference[Phase](InProgress)
    @volatile private var isUrgent = false

    /**
     * Writes it.
     *
     * @param pass called from time to time; lets others work, and throws [[NoLongerNeededException]] once it is dropped
     */
    protected def written(pass: () => Unit): ReadySegment

    /** Frees what it reads. */
    protected def close(): Unit

    def isBase: Boolean

    /** Versions whose changes it has. */
    def span: VersionSpan

    /** True if it waits for an ack. */
    def isReady: Boolean = phase.get().isInstanceOf[Ready]

    /** The segment for an ack, unless it was dropped meanwhile. */
    def take(): Option[ReadySegment] = phase.get() match {
      case ready @ Ready(segment) if phase.compareAndSet(ready, Taken) => Some(segment)
      case _ => None
    }

    protected def isDropped: Boolean = phase.get() eq Dropped

    /** An error that is only that of this segment is in its phase, for the coordinator; the thread continues. */
    private val waiting = new Waiting(() => writeOnce().filter(OwnThreads.isOfBrokenJvm).foreach(throw _))

    def writeInBackground(): Unit = lane.execute(waiting)

    /** Writes it, unless writing has begun. Its error, if it fails; that it is dropped is none. */
    private def writeOnce(): Option[Throwable] = if (!begun.compareAndSet(false, true)) None else {
      val turns = new core.Turns(() => isUrgent)
      def pass(): Unit = {
        turns.pass()
        if (isDropped) throw new NoLongerNeededException
      }
      try {
        turns.begin()
        finished(Ready(written(() => pass())))
        None
      } catch {
        case _: NoLongerNeededException => None
        case e: Throwable =>
          finished(Failed(e))
          Some(e)
      } finally {
        turns.end()
        done.countDown()
        close()
      }
    }

    /** If it was dropped meanwhile, no other part knows of the file, so it is deleted. */
    private def finished(result: Phase): Unit =
      if (phase.compareAndSet(InProgress, result)) {
        result match {
          case Failed(e) =>
            remove(this)
            failed(e)
          case _ =>
        }
      } else {
        delete(result)
      }

    /**
     * Waits for it, or writes it if no thread has begun.
     *
     * @throws TaskKilledException  if the calling task is killed
     * @throws InterruptedException if it is interrupted, too
     */
    def complete(): Either[Throwable, Unit] = {
      isUrgent = true
      writeOnce().filterNot(NonFatal(_)).foreach(throw _)
      awaitDone()
      phase.get() match {
        case Failed(e) => Left(e)
        case _ => Right(())
      }
    }

    /** In pieces: a task that is killed is not always interrupted, and waits no longer. */
    private def awaitDone(): Unit = {
      val task = TaskContext.get()
      while (!done.await(LookMillis, TimeUnit.MILLISECONDS)) if (task != null) task.killTaskIfInterrupted()
    }

    /** Deletes it, and prevents writing unless that has begun. The lane, where it may wait long, keeps none of it. */
    def drop(): Unit = {
      delete(phase.getAndSet(Dropped))
      if (begun.compareAndSet(false, true)) {
        done.countDown()
        close()
      }
      waiting.end()
    }

    private def delete(result: Phase): Unit = result match {
      case Ready(segment) => segment.segment.path.foreach(files.delete)
      case _ =>
    }
  }

  /** A base of the version that is folded when its writing begins. Until then it holds up no merges. */
  private final class WritingBase(snapshot: BaseSnapshot) extends Writing(baseLane) {
    @volatile private var version = 0L

    override def isBase: Boolean = true

    override def span: VersionSpan = VersionSpan.ofBase(version)

    override protected def written(pass: () => Unit): ReadySegment = {
      pass()
      // Not with the lock of the steps.
      snapshot.prepare()
      pass()
      begin()
      ReadyBase(write(snapshot, pass), snapshot.stateId)
    }

    /** Takes the snapshot, which has the changes of all merges so far. */
    private def begin(): Unit = {
      val merged = BaseSnapshots.this.synchronized {
        version = snapshot.version
        val (bases, merges) = steps.partition(_.isBase)
        if (isDropped) Vector.empty
        else {
          steps = bases
          merges
        }
      }
      merged.foreach(_.drop())
    }

    override protected def close(): Unit = snapshot.close()
  }

  private final class WritingMerge(request: CompactionRequest) extends Writing(laneOf(request)) {
    override def isBase: Boolean = false

    override val span: VersionSpan = VersionSpan(request.firstVersion, request.version)

    override protected def written(pass: () => Unit): ReadySegment =
      ReadyMerge(merges.write(store, request, pass), request.digest)

    override protected def close(): Unit = ()
  }

  // Oldest first.
  @volatile private var steps = Vector.empty[Writing]
  @volatile private var failure: Option[Throwable] = None
  @volatile private var required = false
  private var isClosed = false

  def isIdle: Boolean = steps.isEmpty

  /** True if a base or a merged delta waits for the next ack. */
  def isReady: Boolean = steps.exists(_.isReady)

  /** Versions of the base and the merged deltas that are in progress or wait for an ack. */
  def inProgress: Seq[VersionSpan] = steps.map(_.span)

  /** True if the chain of deltas has reached its bound: the next ack must bring a base. */
  def isRequired: Boolean = required

  /** Failure of the last base or merge, until an ack that counts has reported it. */
  def lastFailure: Option[Throwable] = failure

  /** The coordinator knows of the last failure. */
  def clearFailure(): Unit = failure = None

  /**
   * Follows the coordinator's request. A base is started unless one is in progress, and replaces all merges once its
   * writing begins. A merge is started if it is above everything in progress.
   *
   * @param snapshot of the folded version; evaluated only to be written
   */
  def follow(request: CompactionRequest, snapshot: => BaseSnapshot): Unit = {
    required = request.required
    if (request.isFull) {
      if (!steps.exists(_.isBase)) {
        try start(new WritingBase(snapshot), _ => true) catch { case NonFatal(e) => failed(e) }
      }
    } else if (request.isMerge) {
      start(new WritingMerge(request), _.forall(_.span.version < request.firstVersion))
    }
  }

  /** Starts a step if it fits those in progress. */
  private def start(writing: Writing, fits: Vector[Writing] => Boolean): Unit = {
    val isStarted = synchronized {
      !isClosed && fits(steps) && {
        steps :+= writing
        true
      }
    }
    if (isStarted) writing.writeInBackground() else writing.drop()
  }

  private def remove(writing: Writing): Unit = synchronized { steps = steps.filterNot(_ eq writing) }

  /** Writes a snapshot now, instead of all that is in progress. */
  def writeNow(snapshot: BaseSnapshot): Unit = {
    forget()
    val writing = new WritingBase(snapshot)
    synchronized { steps :+= writing }
    writing.complete().left.foreach(throw _)
  }

  /**
   * A base or a merged delta for the next ack; the coordinator then owns its file. If a base is required, this waits
   * for it, or writes it if the background thread has not begun.
   *
   * @param snapshot of the folded version
   * @throws StateTooLargeException if the state is too large for a base
   * @throws CheckpointFailure      if a base is required and cannot be written
   */
  def forAck(snapshot: => BaseSnapshot): Option[ReadySegment] = {
    failure.foreach {
      case e: StateTooLargeException => throw new StateTooLargeException(s"$store: ${e.getMessage}")
      case _ =>
    }
    if (required) complete(snapshot)
    take()
  }

  private def complete(snapshot: => BaseSnapshot): Unit = {
    val outcome = steps.find(_.isBase) match {
      case Some(base) => base.complete()
      case None =>
        try {
          writeNow(snapshot)
          Right(())
        } catch {
          case e: InterruptedException => throw e
          case NonFatal(e) => Left(e)
        }
    }
    outcome match {
      case Left(e: TaskKilledException) => throw e
      case Left(e: StateTooLargeException) => throw new StateTooLargeException(s"$store: ${e.getMessage}")
      case Left(e) =>
        throw new CheckpointFailure("BaseSnapshotError",
          s"$store: the chain of deltas has reached its bound, and no base can be written to ${files.directory}: $e. " +
            "Remove the cause and start the query again; a larger chain.maxDeltas gives it more time", e)
      case _ =>
    }
  }

  /** The base before merged deltas: one segment travels with an ack, and the base shortens the chain most. */
  private def take(): Option[ReadySegment] = {
    val written = steps.filter(_.isReady)
    written.find(_.isBase).orElse(written.headOption).flatMap { first =>
      remove(first)
      first.take()
    }
  }

  /**
   * Drops all that waits or is in progress, and starts nothing more in the background. A task that is committing may
   * still write the base that it needs; [[forget]] follows then.
   */
  def close(): Unit = {
    synchronized { isClosed = true }
    forget()
  }

  /** Drops all that waits or is in progress. */
  def forget(): Unit = {
    val dropped = synchronized {
      val all = steps
      steps = Vector.empty
      all
    }
    dropped.foreach(_.drop())
  }

  private def failed(cause: Throwable): Unit = {
    failure = Some(cause)
    logWarning(
      s"$store: a base snapshot or a merge of deltas failed; the chain grows, and the coordinator will ask again",
      cause)
  }

  /**
   * Writes a segment; tests override it to fail.
   *
   * @param pass called between blocks; lets other threads work
   */
  protected def write(snapshot: BaseSnapshot, pass: () => Unit): SegmentRef =
    if (snapshot.rawBytes <= inlineLimit()) NewSegments.inline(0, snapshot.version, snapshot.toBytes())
    else NewSegments.inFile(files, "base", 0, snapshot.version)(out => snapshot.write(new PassingStream(out, pass)))
}

private[ckpt] object BaseSnapshots {

  private sealed trait Phase
  private case object InProgress extends Phase
  private final case class Ready(segment: ReadySegment) extends Phase
  private final case class Failed(cause: Throwable) extends Phase
  private case object Taken extends Phase
  private case object Dropped extends Phase

  // One thread per lane and executor, and one core for all of them: bases and merges must cost batches little, and need
  // not be quick. But a base may take minutes, and no merge of a few batches should wait for it.
  private lazy val baseLane = OwnThreads.pool("spark-ckpt-base-snapshot", most = 1)
  private lazy val heavyLane = OwnThreads.pool("spark-ckpt-heavy-merge", most = 1)
  private lazy val lightLane = OwnThreads.pool("spark-ckpt-merge", most = 1)
  private[ckpt] val core = new SharedCore(TimeUnit.MILLISECONDS.toNanos(50), TimeUnit.MILLISECONDS.toNanos(500))

  /** Time between two looks whether a waiting task was killed. */
  private final val LookMillis = 100L

  private def laneOf(request: CompactionRequest): ExecutorService = if (request.heavy) heavyLane else lightLane

  /** What a lane has of a segment that waits: nothing once it was dropped, since that would keep a state alive. */
  private final class Waiting(begin: () => Unit) extends Runnable {
    private val action = new AtomicReference(begin)

    override def run(): Unit = {
      val taken = action.getAndSet(null)
      if (taken != null) taken()
    }

    def end(): Unit = action.set(null)
  }

  /** A stream whose writer lets others work from time to time. */
  private final class PassingStream(out: OutputStream, pass: () => Unit) extends FilterOutputStream(out) {
    override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
      pass()
      out.write(bytes, offset, length)
    }
  }
}
