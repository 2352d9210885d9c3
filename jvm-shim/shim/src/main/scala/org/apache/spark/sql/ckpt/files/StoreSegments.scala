// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.files

import java.io.ByteArrayInputStream
import java.nio.{ByteBuffer, ByteOrder}
import java.util.Base64
import java.util.zip.InflaterInputStream

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.ckpt.common.CheckpointFailure
import org.apache.spark.sql.ckpt.common.FormatDescription.MaxUnpackedBytes

/**
 * Place of a segment's handle in a `_metadata`: the subtask that has it, and its index there.
 *
 * @param covers number of versions whose changes the segment has, if it is a delta
 */
private[ckpt] final case class HandlePlace(subtask: Int, place: Int, covers: Int = 1)

/** Segments of a store in the master state `spark-batch` (docs/protocol.md, section 4). */
private[ckpt] object StoreSegments {

  /**
   * Handles of a subtask's segments, in order. After a rescale several subtasks can read the same blocks; then the
   * first of them has the handle.
   *
   * @param store the object that describes the store
   */
  def handles(store: JsonNode, partition: Int): Seq[HandlePlace] = {
    val subtasks = store.path("parallelism").asInt()
    if (partition >= subtasks) Nil
    else {
      val starts = ints(store, "segments").take(subtasks).scanLeft(0)(_ + _)
      val shared = ints(store, "shared").padTo(starts.last, 0)
      val merged = ints(store, "merged").padTo(starts.last, 0)
      (starts(partition) until starts(partition + 1)).map { segment =>
        val owned = segment - shared(segment)
        val subtask = starts.lastIndexWhere(_ <= owned)
        HandlePlace(subtask, (starts(subtask) until owned).count(shared(_) == 0), merged(segment) + 1)
      }
    }
  }

  /** Bytes of a field that is base64 of zlib, none without the field. A longer expansion is refused. */
  def unpacked(store: JsonNode, field: String): Array[Byte] = {
    val packed = Base64.getDecoder.decode(store.path(field).asText(""))
    if (packed.isEmpty) packed
    else {
      val bytes = new InflaterInputStream(new ByteArrayInputStream(packed)).readNBytes(MaxUnpackedBytes + 1)
      if (bytes.length > MaxUnpackedBytes) throw new CheckpointFailure("MetadataFormatError",
        s"the field '$field' of a master state expands to more than $MaxUnpackedBytes bytes: the file is " +
          "damaged, or spark-ckpt did not write it")
      bytes
    }
  }

  private def ints(store: JsonNode, field: String): Array[Int] = {
    val buffer = ByteBuffer.wrap(unpacked(store, field)).order(ByteOrder.LITTLE_ENDIAN)
    Array.fill(buffer.remaining / Integer.BYTES)(buffer.getInt())
  }
}
