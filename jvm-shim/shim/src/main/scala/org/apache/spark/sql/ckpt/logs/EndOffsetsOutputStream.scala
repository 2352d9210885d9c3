// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.logs

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * An entry of the offset log that ends a batch in real-time mode. The checkpoint of the batch becomes durable when the
 * entry is closed, before it appears. So its text is in memory, as Spark's own copy is.
 *
 * @param complete completes the checkpoint, with the text of the entry
 * @param begin    begins the entry
 */
private[ckpt] final class EndOffsetsOutputStream(complete: String => Unit, begin: () => CancellableFSDataOutputStream)
    extends BufferedEntryStream(EntryBuffer.whole) {

  /** @throws CheckpointFailure if the checkpoint is not complete; the entry does not appear then */
  override protected def put(content: Array[Byte]): Unit = {
    complete(new String(content, UTF_8))
    val entry = begin()
    try entry.write(content)
    catch {
      case e: Throwable =>
        entry.cancel()
        throw e
    }
    entry.close()
  }
}
