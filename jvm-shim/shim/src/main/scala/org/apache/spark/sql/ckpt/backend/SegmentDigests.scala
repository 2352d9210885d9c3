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
package org.apache.spark.sql.ckpt.backend

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.unsafe.Platform

/**
 * Number of a family's rows and a digest of them, independent of the order of keys: the sum of one hash per row over
 * key, value and, in a list, the place in it. Not thread-safe.
 */
private[ckpt] final class RowDigest {
  private var count = 0L
  private var hashes = 0L

  def rows: Long = count

  def sum: Long = hashes

  /** @param place of the row in the list of its key, from 0; 0 outside lists */
  def add(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      place: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit = {
    val ofKey = XXH64.hashUnsafeBytes(keyBase, keyOffset, keyLength, RowDigest.Seed + place)
    hashes += XXH64.hashUnsafeBytes(valueBase, valueOffset, valueLength, ofKey)
    count += 1
  }
}

private object RowDigest {
  private final val Seed = 42L
}

private[ckpt] object SegmentDigests {

  /**
   * Digests of a base segment's rows, by column family.
   *
   * @param newest highest version that a block may have
   * @throws StateStreamDamagedException if a block is damaged
   */
  def of(segment: StateSegment, newest: Long): Map[String, RowDigest] = {
    val digests = mutable.HashMap.empty[String, RowDigest]
    val sink: SegmentSink = (family, multiValue) =>
      new DigestTarget(digests.getOrElseUpdate(family, new RowDigest), multiValue)
    new SegmentReader(sink, RestoreFilter.range(0, Int.MaxValue - 1)).load(segment, newest)
    digests.toMap
  }

  private final class DigestTarget(digest: RowDigest, multiValue: Boolean) extends SegmentTarget {
    private val cursor = new ListCursor

    override def put(
        keyGroup: Int,
        keyBase: AnyRef,
        keyOffset: Long,
        keyLength: Int,
        valueBase: AnyRef,
        valueOffset: Long,
        valueLength: Int): Unit =
      if (multiValue) {
        cursor.reset(valueBase, valueOffset, valueLength)
        var place = 0
        while (cursor.advance()) {
          digest.add(keyBase, keyOffset, keyLength, place, cursor.rowBase, cursor.rowOffset, cursor.rowLength)
          place += 1
        }
      } else {
        digest.add(keyBase, keyOffset, keyLength, 0, valueBase, valueOffset, valueLength)
      }

    override def append(
        keyBase: AnyRef,
        keyOffset: Long,
        keyLength: Int,
        rows: Int,
        rowsBase: AnyRef,
        rowsOffset: Long,
        rowsLength: Int): Boolean = throw new IllegalStateException("a base has no appended rows")

    override def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit =
      throw new IllegalStateException("a base has no removed keys")
  }
}
