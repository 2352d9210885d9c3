// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.io.{BufferedOutputStream, DataOutputStream, OutputStream}
import java.nio.file.{Files, Path}
import java.util.zip.CRC32

/**
 * A new file, and the checksum file of Hadoop's `ChecksumFs` for it: a magic number, the chunk size, a CRC-32 per
 * chunk. Both are written through a buffer, so a file of any length takes no more memory than that.
 *
 * @param file      the file
 * @param checksums its checksum file, created when the buffer is full or the file is closed
 */
private[ckpt] final class ChecksummedFile(val file: Path, val checksums: Path) extends OutputStream {
  import ChecksummedFile._

  private val out = Files.newOutputStream(file)
  private var sums: DataOutputStream = _
  private val crc = new CRC32
  private val buffer = new Array[Byte](BufferBytes)
  private var count = 0

  override def write(byte: Int): Unit = {
    if (count == BufferBytes) drain()
    buffer(count) = byte.toByte
    count += 1
  }

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
    var done = 0
    while (done < length) {
      if (count == BufferBytes) drain()
      val n = math.min(length - done, BufferBytes - count)
      System.arraycopy(bytes, offset + done, buffer, count, n)
      count += n
      done += n
    }
  }

  /** Writes what is left. Both files are complete then. */
  override def close(): Unit = {
    drain()
    out.close()
    sums.close()
  }

  /** Ends the writing, and deletes what there is. */
  def delete(): Unit =
    try {
      out.close()
      if (sums != null) sums.close()
    } finally {
      Files.deleteIfExists(file)
      Files.deleteIfExists(checksums)
    }

  /** A chunk ends at each multiple of its size: the buffer is full, or these are the last bytes. */
  private def drain(): Unit = {
    if (sums == null) sums = beginSums()
    var start = 0
    while (start < count) {
      crc.reset()
      crc.update(buffer, start, math.min(BytesPerChecksum, count - start))
      sums.writeInt(crc.getValue.toInt)
      start += BytesPerChecksum
    }
    out.write(buffer, 0, count)
    count = 0
  }

  private def beginSums(): DataOutputStream = {
    val out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(checksums)))
    out.writeBytes("crc")
    out.writeByte(0)
    out.writeInt(BytesPerChecksum)
    out
  }
}

private object ChecksummedFile {
  private final val BytesPerChecksum = 512
  private final val BufferBytes = 128 * BytesPerChecksum
}
