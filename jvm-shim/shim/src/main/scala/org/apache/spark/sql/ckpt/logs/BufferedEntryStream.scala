// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/** An entry of one of Spark's logs, put as a whole when it is closed, or streamed if it is too large for that. */
private[ckpt] abstract class BufferedEntryStream(buffer: EntryBuffer) extends CancellableFSDataOutputStream(buffer) {

  private var ended = false

  /** Puts the entry. Called once, unless the entry is cancelled or streamed. */
  protected def put(content: Array[Byte]): Unit

  override def cancel(): Unit = if (!ended) {
    ended = true
    buffer.streamed.foreach(_.cancel())
  }

  override def close(): Unit = if (!ended) {
    ended = true
    buffer.streamed match {
      case Some(entry) => entry.close()
      case None => put(buffer.content)
    }
  }
}
