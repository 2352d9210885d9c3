// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import java.io.{Closeable, EOFException, File, IOException}
import java.nio.ByteBuffer
import java.nio.file.StandardOpenOption.{CREATE_NEW, DELETE_ON_CLOSE, READ, WRITE}
import java.util.zip.CRC32C

import io.github.sparkckpt.engine.pages.LocalFile
import io.github.sparkckpt.engine.segment.{SegmentFormat, StateTooLargeException}

/**
 * A temporary local file with parts of rows. It is deleted on close. Memory has checksums of each part, so no change of
 * the file passes for rows. Every failure is a [[SortFileException]]. Not thread-safe.
 */
private[engine] final class SpillFile(file: File) extends Closeable {
  private val channel = guarded("cannot be created") {
    LocalFile.open(file.toPath, Seq(CREATE_NEW, READ, WRITE, DELETE_ON_CLOSE))
  }
  private var end = 0L
  private var columns = new Array[Byte](0)
  private val crc = new CRC32C

  /** Bytes of memory, estimated while a part is added. */
  def memoryBytes: Long = columns.length

  /** Appends a part; returns it for reading. */
  def add(part: RowPart): RowPart = {
    val summary = part.summary
    val keysAt = 8L * summary.rows
    val size = keysAt + summary.keyBytes + summary.valueBytes
    if (size > SegmentFormat.maxBlockBytes) {
      throw new StateTooLargeException(s"Rows of key group ${part.keyGroup} exceed 1 GiB: use a smaller buffer.")
    }
    if (size > columns.length) columns = new Array[Byte](size.toInt)
    part.copyKeyLengths(columns, 0)
    part.copyValueLengths(columns, 4 * summary.rows)
    part.copyRows(columns, keysAt.toInt, (keysAt + summary.keyBytes).toInt)
    val start = end
    val buffer = ByteBuffer.wrap(columns, 0, size.toInt)
    guarded("cannot be written") {
      while (buffer.hasRemaining) end += channel.write(buffer, end)
    }
    val valuesAt = keysAt + summary.keyBytes
    val sums = Array(
      LocalFile.sumOf(crc, columns, 0, 4 * summary.rows),
      LocalFile.sumOf(crc, columns, 4 * summary.rows, 4 * summary.rows),
      LocalFile.sumOf(crc, columns, keysAt.toInt, summary.keyBytes.toInt),
      LocalFile.sumOf(crc, columns, valuesAt.toInt, summary.valueBytes.toInt))
    new SpilledPart(part.family, part.keyGroup, summary, start, sums)
  }

  override def close(): Unit = channel.close()

  private def guarded[A](what: String)(body: => A): A =
    try body catch { case e: IOException => throw new SortFileException(file, s"$what: $e", e) }

  private final class SpilledPart(
      override val family: Int,
      override val keyGroup: Int,
      override val summary: PartSummary,
      start: Long,
      sums: Array[Int])
      extends RowPart {
    private def lengths = 4L * summary.rows

    override def copyKeyLengths(to: Array[Byte], at: Int): Unit = read(start, to, at, lengths, sums(0))

    override def copyValueLengths(to: Array[Byte], at: Int): Unit = read(start + lengths, to, at, lengths, sums(1))

    override def copyRows(to: Array[Byte], keysAt: Int, valuesAt: Int): Unit = {
      read(start + 2 * lengths, to, keysAt, summary.keyBytes, sums(2))
      read(start + 2 * lengths + summary.keyBytes, to, valuesAt, summary.valueBytes, sums(3))
    }

    private def read(from: Long, to: Array[Byte], at: Int, count: Long, sum: Int): Unit = guarded("cannot be read") {
      val buffer = ByteBuffer.wrap(to, at, count.toInt)
      var position = from
      while (buffer.hasRemaining) {
        val n = channel.read(buffer, position)
        if (n < 0) throw new EOFException(s"it ends at $position")
        position += n
      }
      if (LocalFile.sumOf(crc, to, at, count.toInt) != sum) {
        throw new IOException(s"$count bytes at $from do not have their checksum")
      }
    }
  }
}
