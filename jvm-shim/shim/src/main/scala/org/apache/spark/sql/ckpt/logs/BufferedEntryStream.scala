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
