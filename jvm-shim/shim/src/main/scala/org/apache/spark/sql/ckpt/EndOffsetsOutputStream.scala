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

import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * An entry of the offset log that ends a batch in real-time mode. The checkpoint of the batch becomes durable when the
 * entry is closed, before it appears.
 *
 * @param complete completes the checkpoint, with the text of the entry
 * @param put      begins the entry
 */
private[ckpt] final class EndOffsetsOutputStream(complete: String => Unit, put: () => CancellableFSDataOutputStream)
    extends CancellableFSDataOutputStream(new ByteArrayOutputStream) {

  private var ended = false

  override def cancel(): Unit = ended = true

  /** @throws CheckpointFailure if the checkpoint is not complete; the entry does not appear then */
  override def close(): Unit = if (!ended) {
    ended = true
    val content = underlyingStream.asInstanceOf[ByteArrayOutputStream].toByteArray
    complete(new String(content, UTF_8))
    val entry = put()
    try entry.write(content)
    catch {
      case e: Throwable =>
        entry.cancel()
        throw e
    }
    entry.close()
  }
}
