// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.io.EOFException
import java.util.concurrent.{Callable, ExecutionException, Future}

import scala.collection.mutable

import io.github.sparkckpt.engine.segment.{ByteSource, SegmentReader}

import org.apache.spark.sql.ckpt.common.OwnThreads
import org.apache.spark.sql.ckpt.protocol.LocatedFile

/**
 * Reads state files ahead of the thread that loads them, so that a load waits for one request and not for one per file.
 *
 * Each segment is divided into parts. Threads of the executor read the parts of all segments in their order, up to a
 * number of bytes ahead of the loading thread. What no part holds is read when it is asked for. One thread loads.
 *
 * A small file is read as a whole, once for all stores: see [[SharedReads]].
 *
 * @param partBytes  bytes per read
 * @param aheadBytes bytes that were read and not asked for yet, at most
 * @param shared     copies of small files
 */
private[ckpt] final class ReadAhead(
    files: StateFiles,
    partBytes: Int = ReadAhead.PartBytes,
    aheadBytes: Long = ReadAhead.AheadBytes,
    shared: SharedReads = SharedReads.here) {
  private val waiting = mutable.Queue.empty[Part]
  private var held = 0L

  /**
   * A source of a file's bytes.
   *
   * @param offsets starts of the segment's blocks in the file, ascending
   */
  def source(file: LocatedFile, offsets: Array[Long]): ByteSource = {
    val until = math.min(file.bytes, SegmentReader.likelyEnd(offsets))
    val parts = offsets.headOption.fold(Seq.empty[Part]) { first =>
      (first until math.max(first, until) by partBytes.toLong)
        .map(start => new Part(file, start, math.min(partBytes.toLong, until - start).toInt))
    }
    waiting ++= parts
    new Source(file, parts)
  }

  /** Starts to read. All sources are known. */
  def start(): Unit =
    while (waiting.nonEmpty && (held == 0 || held + waiting.head.count <= aheadBytes)) {
      val part = waiting.dequeue()
      if (!part.isDropped) {
        held += part.count
        part.submit()
      }
    }

  private final class Part(file: LocatedFile, val start: Long, val count: Int) {
    private val isShared = file.bytes <= shared.maxFile
    private var reading: Future[Array[Byte]] = _
    var isDropped = false

    def end: Long = start + count

    def isStarted: Boolean = reading != null

    def submit(): Unit = reading =
      if (isShared) {
        val length = file.bytes.toInt
        shared.read(files.path(file.name).toString, length, ReadAhead.pool)(read(0, length))
      } else {
        ReadAhead.pool.submit((() => read(start, count)): Callable[Array[Byte]])
      }

    private def read(from: Long, count: Int): Array[Byte] = {
      val bytes = new Array[Byte](count)
      val in = files.open(file)
      try in.readFully(from, bytes, 0, count) finally in.close()
      bytes
    }

    /**
     * Copies bytes from a position in the file.
     *
     * @throws java.io.IOException the reader's
     */
    def copy(position: Long, buffer: Array[Byte], at: Int, n: Int): Unit = {
      val bytes = try reading.get() catch { case e: ExecutionException => throw e.getCause }
      System.arraycopy(bytes, (position - (if (isShared) 0 else start)).toInt, buffer, at, n)
    }

    def drop(): Unit = if (!isDropped) {
      isDropped = true
      if (isStarted) {
        if (!isShared) reading.cancel(true)
        reading = null
        held -= count
      }
    }
  }

  private final class Source(file: LocatedFile, parts: Seq[Part]) extends ByteSource {
    private val rest = mutable.Queue.from(parts)
    private lazy val direct = files.source(file)
    private var isDirect = false

    override def name: String = files.path(file.name).toString

    override def length: Long = file.bytes

    override def readFully(position: Long, buffer: Array[Byte], from: Int, count: Int): Unit = {
      if (position + count > length) throw new EOFException(s"$name ends at $length, expected ${position + count}")
      while (rest.nonEmpty && rest.head.end <= position) rest.dequeue().drop()
      start()
      var done = 0
      rest.iterator.takeWhile(part => part.isStarted && part.start <= position + done && done < count).foreach { part =>
        val skipped = (position + done - part.start).toInt
        val n = math.min(part.count - skipped, count - done)
        part.copy(position + done, buffer, from + done, n)
        done += n
      }
      if (done < count) {
        isDirect = true
        direct.readFully(position + done, buffer, from + done, count - done)
      }
    }

    override def close(): Unit = {
      rest.foreach(_.drop())
      rest.clear()
      if (isDirect) direct.close()
    }
  }
}

private object ReadAhead {
  private final val PartBytes = 8 << 20
  private final val AheadBytes = 64L << 20

  // Threads wait for the storage. Each reads a part of its own, so more than there are cores pays.
  private lazy val pool = OwnThreads.pool("spark-ckpt-read-ahead", most = 32)
}
