// SPDX-License-Identifier: Apache-2.0
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
