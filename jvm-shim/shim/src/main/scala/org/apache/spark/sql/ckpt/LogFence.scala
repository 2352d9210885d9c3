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

import java.io.{ByteArrayOutputStream, FileNotFoundException}
import java.security.MessageDigest
import java.util.concurrent.ConcurrentHashMap

import scala.util.Try

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}

import org.apache.spark.sql.ckpt.protocol.Message
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * Fence of Spark's logs against the driver of a query that was rolled back meanwhile (docs/protocol.md, section 5).
 *
 * A rollback increments the log epoch of its location. The fence knows the epoch at the start of the query, and refuses
 * further entries once there is a later one. It looks at most every [[LogFence.FreshNanos]], which is less than the
 * time for which a rollback waits.
 */
private[ckpt] final class LogFence private (location: Path, val rollbacks: Rollbacks, startedAt: Long) {
  @volatile private var lookedAt = startedAt

  /**
   * Checks that the location was not rolled back since the start of the query.
   *
   * @throws CheckpointFailure if it was
   */
  def check(files: CheckpointFileManager): Unit = {
    val now = System.nanoTime()
    if (now - lookedAt >= LogFence.FreshNanos) {
      if (files.exists(Rollbacks.marker(location, rollbacks.epoch + 1))) throw LogFence.rolledBack(location)
      lookedAt = now
    }
  }

  /**
   * Checks that an entry which Spark is about to read counts.
   *
   * @throws CheckpointFailure if it is a stray: a driver wrote it after a rollback that had fenced that driver off
   */
  def checkEntry(entry: Path, files: CheckpointFileManager): Unit =
    LogFence.batchOf(entry).flatMap(rollbacks.covering).filter(_.isDone).foreach { rollback =>
      val voucher = rollback.voucher(location, entry, LogFence.contentOf(entry, files))
      if (!files.exists(voucher)) throw LogFence.onStray(location, entry)
    }

  /** The stream of an entry; one that vouches for its content first, if the entry needs that to count. */
  def vouching(
      entry: Path,
      files: CheckpointFileManager,
      out: CancellableFSDataOutputStream): CancellableFSDataOutputStream =
    LogFence.batchOf(entry).flatMap(rollbacks.covering) match {
      case Some(rollback) => new VouchingOutputStream(out, content =>
        LogFence.create(files, rollback.voucher(location, entry, content)))
      case None => out
    }
}

private[ckpt] object LogFence {

  /** Half of `GRACE_SECONDS` in `spark_ckpt.operations.rollback`. */
  private[ckpt] val FreshNanos = 5L * 1000 * 1000 * 1000

  private val Logs = Seq("offsets", "commits")

  /** The fences of the queries that this driver has started, by checkpoint location. */
  private val fences = new ConcurrentHashMap[Path, LogFence]()

  /**
   * Makes the fence of a starting query. All reads of its logs come later.
   *
   * @throws CheckpointFailure if a rollback has not finished
   */
  def start(location: Path, files: CheckpointFileManager): Unit = {
    val startedAt = System.nanoTime()
    val rollbacks = Rollbacks.of(location, files)
    rollbacks.unfinished.find(_.holds).foreach(rollback => throw onUnfinished(location, rollback))
    fences.put(location, new LogFence(location, rollbacks, startedAt))
  }

  /** The fence of an entry of Spark's logs; None for other files. */
  def of(entry: Path): Option[LogFence] =
    if (batchOf(entry).isEmpty || !Logs.contains(entry.getParent.getName)) None
    else Option(fences.get(entry.getParent.getParent))

  /** The log epoch at the start of the query, if its logs are fenced. */
  def epochOf(location: Path): Option[Long] = Option(fences.get(location)).map(_.rollbacks.epoch)

  private def batchOf(entry: Path): Option[Long] = entry.getName.toLongOption

  private[ckpt] def namesIn(directory: Path, files: CheckpointFileManager): Seq[String] =
    try files.list(directory, _ => true).toSeq.map(_.getPath.getName)
    catch { case _: FileNotFoundException => Nil }

  private[ckpt] def contentOf(path: Path, files: CheckpointFileManager): Array[Byte] = {
    val in = files.open(path)
    try in.readAllBytes() finally in.close()
  }

  /** Its name identifies the file, so that another attempt has created the same one. */
  private def create(files: CheckpointFileManager, path: Path): Unit =
    try {
      val out = files.createAtomic(path, overwriteIfPossible = false)
      try out.write("{}\n".getBytes) finally out.close()
    } catch { case _: FileAlreadyExistsException => }

  private def rolledBack(location: Path) = new CheckpointFailure("LogFencedError",
    s"$location was rolled back after this run of the query had started, so its batch continues nothing. Nothing is " +
      "lost: start the query again, and run only one driver per checkpoint location")

  private def onUnfinished(location: Path, rollback: Rollback) = new CheckpointFailure("RollbackUnfinishedError",
    s"a rollback of $location to batch ${rollback.batch} has not finished. Wait for it; if it has failed, run " +
      "'spark-ckpt rollback' again")

  private def onStray(location: Path, entry: Path) = new CheckpointFailure("StrayLogEntryError",
    s"$entry was written after the query had been rolled back, by a driver that stood still meanwhile. It continues " +
      s"nothing. Move it away: 'spark-ckpt rollback $location --id ID' with a checkpoint of an earlier batch")
}

/** Buffers an entry, and vouches for it before it is written. */
private final class VouchingOutputStream(out: CancellableFSDataOutputStream, vouch: Array[Byte] => Unit)
    extends CancellableFSDataOutputStream(new ByteArrayOutputStream) {

  private var ended = false

  override def cancel(): Unit = {
    ended = true
    out.cancel()
  }

  override def close(): Unit = if (!ended) {
    ended = true
    val content = underlyingStream.asInstanceOf[ByteArrayOutputStream].toByteArray
    vouch(content)
    out.write(content)
    out.close()
  }
}

/**
 * A rollback: its epoch, the batch gone back to, the last batch before, whether all files are moved, and whether no query
 * starts before that (`spark_ckpt.spark_files.rollbacks`).
 */
private[ckpt] final case class Rollback(epoch: Long, batch: Long, lastBatch: Long, isDone: Boolean, holds: Boolean) {

  def covers(other: Long): Boolean = batch < other && other <= lastBatch + 1

  def voucher(location: Path, entry: Path, content: Array[Byte]): Path = {
    val digest = MessageDigest.getInstance("SHA-256").digest(content).map(b => f"$b%02x").mkString
    Rollbacks.file(location, epoch, s"${entry.getParent.getName}.${entry.getName}.$digest")
  }
}

/** The rollbacks of a location, newest first. */
private[ckpt] final class Rollbacks private (all: Seq[Rollback]) {

  def epoch: Long = all.headOption.fold(0L)(_.epoch)

  /** The rollbacks since the last one that moved all its files. */
  def unfinished: Seq[Rollback] = all.takeWhile(!_.isDone)

  /** The newest rollback under which an entry of the batch needs a voucher. */
  def covering(batch: Long): Option[Rollback] = all.find(_.covers(batch))
}

private[ckpt] object Rollbacks {
  private val Directory = "ckpt/rollbacks"
  private val Marker = "([0-9]{20})\\.json".r

  def marker(location: Path, epoch: Long): Path = file(location, epoch, "json")

  def file(location: Path, epoch: Long, suffix: String): Path =
    new Path(new Path(location, Directory), f"$epoch%020d.$suffix")

  def of(location: Path, files: CheckpointFileManager): Rollbacks = {
    val names = LogFence.namesIn(new Path(location, Directory), files).toSet
    val epochs = names.collect { case Marker(epoch) => epoch.toLong }.toSeq.sorted.reverse
    new Rollbacks(epochs.map(read(location, files, names, _)))
  }

  private def read(location: Path, files: CheckpointFileManager, names: Set[String], epoch: Long): Rollback = {
    val path = marker(location, epoch)
    val content = LogFence.contentOf(path, files)
    val header = Try(Message.mapper.readTree(content)).toOption.filter(h =>
      h != null && h.path("batch_id").isIntegralNumber && h.path("last_batch_id").isIntegralNumber)
    header.map { h =>
      val isDone = names(file(location, epoch, "done").getName)
      Rollback(epoch, h.path("batch_id").asLong(), h.path("last_batch_id").asLong(), isDone, h.path("holds").asBoolean())
    }.getOrElse(throw new CheckpointFailure("SparkLogFormatError",
      s"$path: it is not the marker of a rollback. It is damaged: restore it from a copy"))
  }
}
