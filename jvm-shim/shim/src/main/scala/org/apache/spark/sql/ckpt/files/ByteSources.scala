// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.io.{File, RandomAccessFile}

import io.github.sparkckpt.engine.segment.ByteSource
import org.apache.hadoop.fs.FSDataInputStream

/** A state file read through Hadoop. */
private[ckpt] final class HadoopByteSource(override val name: String, in: FSDataInputStream, override val length: Long)
    extends ByteSource {

  override def readFully(position: Long, buffer: Array[Byte], from: Int, count: Int): Unit = {
    if (in.getPos != position) in.seek(position)
    in.readFully(buffer, from, count)
  }

  override def close(): Unit = in.close()
}

/** A local file, read without the buffer of Hadoop's streams: that is filled anew for each row that is looked up. */
private[ckpt] class LocalByteSource(override val name: String, file: File, override val length: Long)
    extends ByteSource {
  import LocalByteSource._

  private val in = new RandomAccessFile(file, "r")

  override def readFully(position: Long, buffer: Array[Byte], from: Int, count: Int): Unit = {
    in.seek(position)
    var done = 0
    while (done < count) {
      val piece = math.min(count - done, PieceBytes)
      in.readFully(buffer, from + done, piece)
      done += piece
    }
  }

  override def close(): Unit = in.close()
}

private object LocalByteSource {

  /** Bytes per read. The JVM copies them through new native memory, which is slow for many at a time. */
  private final val PieceBytes = 1 << 16
}
