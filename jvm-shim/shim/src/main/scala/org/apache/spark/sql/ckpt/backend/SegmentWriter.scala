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

import java.io.OutputStream
import java.util.Arrays

import org.apache.spark.unsafe.Platform

/**
 * Writes segments (docs/protocol.md section 2), block by block.
 *
 * Entries are brought into the order of key groups by a counting sort over their numbers; keys and values
 * are then copied once, from the pages into the block. A writer can be used again, by one thread.
 *
 * @param maxParallelism number of key groups
 * @param idsAtOnce entries that are ordered at once: bounds the memory beside the block to 4 bytes times
 *                  this; more entries take several walks over the headers
 */
private[backend] final class SegmentWriter(maxParallelism: Int, idsAtOnce: Int = 1 << 23) {
  import SegmentFormat._

  private val cursor = new EntryCursor
  private val block = new BlockBuilder
  private var keyLengths = new Array[Int](64)
  private var valueLengths = new Array[Int](64)

  private var groups: Array[Int] = _
  private var offsets: Array[Long] = _
  private var blocks = 0
  private var written = 0L
  private var entries = 0L

  /**
   * Writes a segment with the entries of the sources.
   *
   * @param version version of the state; of a delta the one it leads to
   * @throws StateTooLargeException if one key group has more than 1 GiB
   */
  def write(sources: Array[SegmentSource], isBase: Boolean, version: Long, out: OutputStream): SegmentInfo = {
    val counts = new Array[Array[Int]](sources.length)
    var s = 0
    while (s < sources.length) {
      counts(s) = new Array[Int](maxParallelism)
      sources(s).countGroups(counts(s))
      s += 1
    }
    start(counts)
    var first = 0
    while (first < maxParallelism) {
      val until = rangeFrom(first, counts)
      writeRange(sources, counts, first, until, isBase, version, out)
      first = until
    }
    SegmentInfo(Arrays.copyOf(groups, blocks), Arrays.copyOf(offsets, blocks), entries, written)
  }

  private def start(counts: Array[Array[Int]]): Unit = {
    var used = 0
    var group = 0
    while (group < maxParallelism) {
      if (total(counts, group) > 0) used += 1
      group += 1
    }
    groups = new Array[Int](used)
    offsets = new Array[Long](used)
    blocks = 0
    written = 0
    entries = 0
  }

  private def total(counts: Array[Array[Int]], group: Int): Long = {
    var sum = 0L
    var s = 0
    while (s < counts.length) {
      sum += counts(s)(group)
      s += 1
    }
    sum
  }

  private def rangeFrom(first: Int, counts: Array[Array[Int]]): Int = {
    var until = first + 1
    var sum = total(counts, first)
    while (until < maxParallelism && sum + total(counts, until) <= idsAtOnce) {
      sum += total(counts, until)
      until += 1
    }
    until
  }

  private def writeRange(
      sources: Array[SegmentSource],
      counts: Array[Array[Int]],
      first: Int,
      until: Int,
      isBase: Boolean,
      version: Long,
      out: OutputStream): Unit = {
    val ids = new Array[Array[Int]](sources.length)
    val ends = new Array[Array[Int]](sources.length)
    var s = 0
    while (s < sources.length) {
      ends(s) = new Array[Int](until)
      var sum = 0
      var group = first
      while (group < until) {
        ends(s)(group) = sum
        sum = Math.addExact(sum, counts(s)(group))
        group += 1
      }
      ids(s) = new Array[Int](sum)
      if (sum > 0) sources(s).fill(first, until, ends(s), ids(s))
      s += 1
    }
    var group = first
    while (group < until) {
      if (total(counts, group) > 0) {
        block.start()
        s = 0
        while (s < sources.length) {
          val n = counts(s)(group)
          if (n > 0) {
            writeSection(sources(s), ids(s), ends(s)(group) - n, n, group)
            entries += n
          }
          s += 1
        }
        groups(blocks) = group
        offsets(blocks) = written
        blocks += 1
        written += block.writeTo(out, group, isBase, version)
      }
      group += 1
    }
  }

  private def writeSection(source: SegmentSource, ids: Array[Int], from: Int, n: Int, group: Int): Unit = {
    if (n > keyLengths.length) {
      keyLengths = new Array[Int](math.max(n, keyLengths.length * 2))
      valueLengths = new Array[Int](keyLengths.length)
    }
    var keyBytes = 0L
    var valueBytes = 0L
    var sameKeys = true
    var sameValues = true
    var i = 0
    while (i < n) {
      source.point(ids(from + i), cursor)
      keyLengths(i) = cursor.keyLength
      valueLengths(i) = cursor.valueLength
      keyBytes += cursor.keyLength
      if (cursor.valueLength > 0) valueBytes += cursor.valueLength
      sameKeys &= cursor.keyLength == keyLengths(0)
      sameValues &= cursor.valueLength == valueLengths(0)
      i += 1
    }
    // Entries of the empty key get a length each: a reader trusts no number of entries that takes no bytes.
    if (keyBytes == 0 && n > 1) sameKeys = false
    block.startSection(source.family, (if (source.multiValue) Lists else 0) | (if (source.appends) Appends else 0),
      group, n, sameKeys, sameValues, keyBytes + valueBytes)
    block.putInts(keyLengths, if (sameKeys) 1 else n)
    block.putInts(valueLengths, if (sameValues) 1 else n)
    var keyAt = Platform.BYTE_ARRAY_OFFSET.toLong + block.position
    var valueAt = keyAt + keyBytes
    i = 0
    while (i < n) {
      source.point(ids(from + i), cursor)
      Bytes.copy(cursor.keyBase, cursor.keyOffset, block.bytes, keyAt, cursor.keyLength)
      keyAt += cursor.keyLength
      if (cursor.valueLength > 0) {
        Bytes.copy(cursor.valueBase, cursor.valueOffset, block.bytes, valueAt, cursor.valueLength)
        valueAt += cursor.valueLength
      }
      i += 1
    }
    block.position += (keyBytes + valueBytes).toInt
  }
}
