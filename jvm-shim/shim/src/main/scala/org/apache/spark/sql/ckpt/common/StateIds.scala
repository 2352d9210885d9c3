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
package org.apache.spark.sql.ckpt.common

import java.nio.ByteBuffer
import java.util.UUID

/**
 * Ids of the state of one store in one subtask: UUIDs, as in Spark's RocksDB provider. Spark's commit log keeps their
 * text; releases before 0.2 wrote it without dashes.
 */
private[ckpt] object StateIds {
  def newId(): String = UUID.randomUUID().toString

  /** The id in 16 bytes. */
  def of(bytes: Array[Byte]): String = {
    val buffer = ByteBuffer.wrap(bytes)
    new UUID(buffer.getLong, buffer.getLong).toString
  }

  /** True if two texts are the same id, with or without dashes. */
  def areEqual(one: String, other: String): Boolean = one == other || undashed(one) == undashed(other)

  private def undashed(id: String): String = id.replace("-", "")
}
