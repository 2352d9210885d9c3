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

/**
 * Entries of a [[HashIndex]] to be built once all of them are known. An index that grows entry by entry misses the
 * cache for nearly each of them; one that is built part by part does not.
 */
private[backend] final class PendingEntries {
  import PendingEntries._

  private val chunks = mutable.ArrayBuffer.empty[Array[Long]]
  private var last: Array[Long] = _
  private var used = ChunkEntries

  /** Number of entries. */
  def count: Long = if (last == null) 0 else (chunks.size - 1L) * ChunkEntries + used

  /** Bytes of memory. */
  def bytes: Long = chunks.size * 8L * ChunkEntries

  def add(hash: Int, value: Int): Unit = {
    if (used == ChunkEntries) {
      last = new Array[Long](ChunkEntries)
      chunks += last
      used = 0
    }
    last(used) = (hash.toLong << 32) | (value & 0xFFFFFFFFL)
    used += 1
  }

  /** All entries, hash above value, in the order of the upper bits of their hashes. There are none afterwards. */
  def takeSorted(bits: Int): Array[Long] = {
    val sorted = new Array[Long](Math.toIntExact(count))
    val next = new Array[Int](1 << bits)
    foreach(entry => next(partOf(entry, bits)) += 1)
    var sum = 0
    var part = 0
    while (part < next.length) {
      val here = next(part)
      next(part) = sum
      sum += here
      part += 1
    }
    foreach { entry =>
      val part = partOf(entry, bits)
      sorted(next(part)) = entry
      next(part) += 1
    }
    chunks.clear()
    last = null
    used = ChunkEntries
    sorted
  }

  private def partOf(entry: Long, bits: Int): Int = ((entry >>> 33) >>> (31 - bits)).toInt

  @inline private def foreach(body: Long => Unit): Unit = {
    var c = 0
    while (c < chunks.size) {
      val chunk = chunks(c)
      val end = if (chunk eq last) used else ChunkEntries
      var i = 0
      while (i < end) {
        body(chunk(i))
        i += 1
      }
      c += 1
    }
  }
}

private object PendingEntries {
  private final val ChunkEntries = 1 << 16
}
