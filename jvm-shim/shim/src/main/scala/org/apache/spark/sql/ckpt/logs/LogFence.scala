// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.io.FileNotFoundException

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/**
 * Fence of Spark's logs against a run of a query that was rolled back or changed since (docs/protocol.md, section 5).
 *
 * A rollback or change increments the log epoch of its location by a marker (`spark_ckpt.spark_files.rollbacks`). The
 * fence knows the epoch at the start of the run, and refuses further entries once there is a later marker.
 *
 * It belongs to the run. A driver may start the same query again while it runs: Spark looks at the location first, and
 * refuses the second run afterwards.
 */
private[ckpt] final class LogFence private (location: Path, val epoch: Long, startedAt: Long) {
  @volatile private var lookedAt = startedAt

  /**
   * Checks that the location was not rolled back since the start of the query.
   *
   * @param isThere    whether there is a file
   * @param freshNanos age up to which an earlier look counts
   * @throws CheckpointFailure if it was
   */
  def check(isThere: Path => Boolean, freshNanos: Long): Unit = {
    val now = System.nanoTime()
    if (now - lookedAt >= freshNanos) {
      if (isThere(LogFence.marker(location, epoch + 1))) throw LogFence.rolledBack(location)
      lookedAt = now
    }
  }
}

private[ckpt] object LogFence {

  /** Five seconds less than `GRACE_SECONDS` in `spark_ckpt.recovery.fence`: the time that an entry may take. */
  val FreshNanos: Long = 15L * 1000 * 1000 * 1000

  private val Directory = "ckpt/rollbacks"
  private val Marker = "([0-9]{20})\\.json".r
  private val Done = "([0-9]{20})\\.done".r
  private val Logs = Set("offsets", "commits")
  private val Sources = "sources"

  /**
   * The fences of the starts on this thread, by checkpoint location. The thread that starts a query makes the thread of
   * its run, which inherits them. One of the two opens the logs.
   */
  private val starts = new InheritableThreadLocal[Map[Path, LogFence]] {
    override def initialValue(): Map[Path, LogFence] = Map.empty
  }

  /** The markers of rollbacks in a location. */
  final class Look private[LogFence] (private[LogFence] val names: Seq[String], private[LogFence] val startedAt: Long)

  /** Looks for rollbacks. All reads of the query's logs come later. */
  def look(location: Path, files: CheckpointFileManager): Look = {
    val startedAt = System.nanoTime()
    new Look(namesIn(new Path(location, Directory), files), startedAt)
  }

  /**
   * Makes the fence of the run that this thread starts.
   *
   * @throws CheckpointFailure if a rollback has not finished
   */
  def start(location: Path, look: Look): Unit = {
    val begun = look.names.collect { case Marker(epoch) => epoch.toLong }.toSet
    val unfinished = begun -- look.names.collect { case Done(epoch) => epoch.toLong }
    if (unfinished.nonEmpty) throw notFinished(location)
    starts.set(starts.get.updated(location, new LogFence(location, begun.maxOption.getOrElse(0L), look.startedAt)))
  }

  /**
   * The fence of a log that this thread opens.
   *
   * @param log its directory
   * @return None for other directories, and outside a run
   */
  def ofLog(log: Path): Option[LogFence] = if (Logs(log.getName)) starts.get.get(log.getParent) else None

  /**
   * The fence of the run whose source has this log. Its entries need none: they count with the entry of `offsets` that
   * follows them.
   *
   * @param log its directory
   * @return None for other directories, and outside a run
   */
  def ofSource(log: Path): Option[LogFence] =
    Option(log.getParent).filter(_.getName == Sources).flatMap(sources => starts.get.get(sources.getParent))

  private[ckpt] def marker(location: Path, epoch: Long): Path =
    new Path(new Path(location, Directory), f"$epoch%020d.json")

  private def namesIn(directory: Path, files: CheckpointFileManager): Seq[String] =
    try files.list(directory, _ => true).toSeq.map(_.getPath.getName)
    catch { case _: FileNotFoundException => Nil }

  private def rolledBack(location: Path) = new CheckpointFailure("LogFencedError",
    s"$location was rolled back after this run of the query had started, so its batch continues nothing. Nothing is " +
      "lost: start the query again, and run only one driver per checkpoint location")

  private def notFinished(location: Path) = new CheckpointFailure("RollbackUnfinishedError",
    s"a rollback of $location, the undo of its import, or a change of its state or offsets has not finished. Wait " +
      "for it; if it has failed, run the same command again, or 'spark-ckpt rollback' to the checkpoint that " +
      s"'spark-ckpt doctor $location' names")
}
