// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.io.{ByteArrayOutputStream, IOException, OutputStream}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * An entry of one of Spark's logs in memory, as long as it is small. The compacted entries of file sources and sinks
 * have a line for each file that there ever was: gigabytes, in time.
 *
 * @param limit bytes in memory
 * @param begin begins an entry that streams, once this one has more bytes
 */
private[ckpt] final class EntryBuffer(limit: Int, begin: () => CancellableFSDataOutputStream) extends OutputStream {
  private var inMemory = new ByteArrayOutputStream
  private var large: Option[CancellableFSDataOutputStream] = None

  /** The entry that streams; None while all bytes are in memory. */
  def streamed: Option[CancellableFSDataOutputStream] = large

  /** The bytes in memory. */
  def content: Array[Byte] = inMemory.toByteArray

  override def write(byte: Int): Unit = target(1).write(byte)

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = target(length).write(bytes, offset, length)

  private def target(more: Int): OutputStream =
    large.getOrElse {
      if (inMemory.size.toLong + more <= limit) {
        inMemory
      } else {
        val stream = begin()
        large = Some(stream)
        inMemory.writeTo(stream)
        inMemory = null
        stream
      }
    }
}

private[ckpt] object EntryBuffer {

  /** A buffer for an entry that must be known as a whole. */
  def whole: EntryBuffer = new EntryBuffer(Int.MaxValue, () => throw new IOException("the entry is above 2 GiB"))
}
