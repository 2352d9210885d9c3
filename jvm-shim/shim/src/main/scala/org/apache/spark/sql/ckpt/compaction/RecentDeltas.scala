// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compaction

import java.io.{BufferedOutputStream, File, FileOutputStream, OutputStream}
import java.nio.file.Files
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable
import scala.util.control.NonFatal

import io.github.sparkckpt.engine.segment.ByteSource

import org.apache.spark.SparkEnv
import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.files.LocalByteSource
import org.apache.spark.sql.ckpt.protocol.{ReadyBase, ReadyMerge, ReadySegment}
import org.apache.spark.util.Utils

/**
 * Local copies of one store's deltas, so that a merge needs no request to a remote storage. They are in Spark's local
 * directories, and disposable: without a copy, a merge reads the storage. Nothing of them reaches a checkpoint
 * unchecked, since each block has its checksum. Thread-safe.
 *
 * @param isRemote  false if the storage is as near as a copy
 * @param directory place of the copies
 */
private[ckpt] class RecentDeltas(isRemote: => Boolean, directory: => File = RecentDeltas.localDirectory)
    extends Logging {
  import RecentDeltas._

  private final case class Kept(file: File, bytes: Long)

  // By first and last version of the changes.
  private val copies = mutable.HashMap.empty[(Long, Long), Kept]
  @volatile private var isWanted = false

  /** Increases when all copies are dropped: what is being written by then is of another state. */
  private var generation = 0L

  /** Deltas of this store are merged: copies are worth their bytes from now on. */
  def want(): Unit = isWanted = true

  def isActive: Boolean = isWanted && isRemote

  /** Keeps a copy of a delta, if there is room. Never fails. */
  def add(firstVersion: Long, version: Long, bytes: Long)(write: OutputStream => Unit): Unit =
    if (isActive) newFile(bytes).foreach { file =>
      val begun = synchronized(generation)
      try {
        val out = new BufferedOutputStream(new FileOutputStream(file), 1 << 16)
        try write(out) finally out.close()
        keep(firstVersion, version, file, bytes, begun)
      } catch {
        case NonFatal(e) =>
          logInfo(s"no local copy of a delta: $e")
          discard(Kept(file, bytes))
      }
    }

  /**
   * Writes a delta to a stream and, if there is room, to a copy.
   *
   * @param bytes upper bound of its length
   */
  def tee(firstVersion: Long, version: Long, bytes: Long, out: OutputStream)(write: OutputStream => Unit): Unit =
    (if (isActive) newFile(bytes) else None).fold(write(out)) { file =>
      val begun = synchronized(generation)
      val copy = new Tee(out, file)
      val isWhole = try {
        write(copy)
        copy.finish()
      } catch {
        case e: Throwable =>
          copy.finish()
          discard(Kept(copy.file, bytes))
          throw e
      }
      if (isWhole) keep(firstVersion, version, copy.file, bytes, begun) else discard(Kept(copy.file, bytes))
    }

  /** A copy of the delta, if there is one of its length. */
  def open(firstVersion: Long, version: Long, bytes: Long): Option[ByteSource] = synchronized {
    copies.get((firstVersion, version)).filter(_.file.length == bytes).flatMap { kept =>
      try Some(new LocalCopy(kept.file)) catch { case NonFatal(_) => None }
    }
  }

  /** Drops the copies of deltas that a base of this version, or merged deltas, have replaced. */
  def replaced(ready: ReadySegment): Unit = ready match {
    case base: ReadyBase => dropIf { case (_, last) => last <= base.version }
    case ReadyMerge(merged, _) => dropIf { case (first, last) =>
      first >= merged.firstVersion && last <= merged.version &&
        !(first == merged.firstVersion && last == merged.version)
    }
  }

  /** Drops all copies: the store has another state, or none. */
  def clear(): Unit = synchronized {
    generation += 1
    dropIf(_ => true)
  }

  private def dropIf(condition: ((Long, Long)) => Boolean): Unit = synchronized {
    copies.keys.filter(condition).toSeq.foreach(key => copies.remove(key).foreach(discard))
  }

  private def keep(firstVersion: Long, version: Long, file: File, bytes: Long, begun: Long): Unit = synchronized {
    if (begun == generation) copies.put((firstVersion, version), Kept(file, bytes)).foreach(discard)
    else discard(Kept(file, bytes))
  }

  private def discard(kept: Kept): Unit = {
    used.addAndGet(-kept.bytes)
    try Files.deleteIfExists(kept.file.toPath) catch { case NonFatal(_) => () }
  }

  /** File for a copy, if there is room. The first one makes the directory, which fails on a full disk. */
  private def newFile(bytes: Long): Option[File] = {
    val file =
      if (used.addAndGet(bytes) > MaxBytes) None
      else {
        try Some(new File(directory, s"delta-${sequence.incrementAndGet()}")) catch {
          case NonFatal(e) =>
            logInfo(s"no local copy of a delta: $e")
            None
        }
      }
    if (file.isEmpty) used.addAndGet(-bytes)
    file
  }
}

private[ckpt] object RecentDeltas {

  /** Bytes of copies per executor. */
  private final val MaxBytes = 4L << 30

  private val used = new AtomicLong
  private val sequence = new AtomicLong

  private lazy val localDirectory: File =
    Utils.createTempDir(Utils.getLocalDir(SparkEnv.get.conf), "spark-ckpt-deltas")

  /** No copies. */
  val Nowhere: RecentDeltas = new RecentDeltas(false)

  /** A stream that also writes a file; errors of the file do not matter. */
  private final class Tee(out: OutputStream, val file: File) extends OutputStream {
    private var copy: OutputStream =
      try new BufferedOutputStream(new FileOutputStream(file), 1 << 16) catch { case NonFatal(_) => null }

    override def write(b: Int): Unit = write(Array(b.toByte), 0, 1)

    override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
      out.write(bytes, offset, length)
      attempt(_.write(bytes, offset, length))
    }

    /** True if the file is whole. */
    def finish(): Boolean = {
      attempt(_.close())
      copy != null
    }

    private def attempt(action: OutputStream => Unit): Unit =
      if (copy != null) {
        try action(copy) catch {
          case NonFatal(_) =>
            try copy.close() catch { case NonFatal(_) => () }
            copy = null
        }
      }
  }
}

/** A local copy of a delta. */
private[ckpt] final class LocalCopy(file: File) extends LocalByteSource(file.getPath, file, file.length)
