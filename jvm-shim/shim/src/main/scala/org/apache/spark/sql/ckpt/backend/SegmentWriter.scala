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

import java.io.{ByteArrayOutputStream, DataOutputStream, OutputStream}
import java.util.Arrays
import java.util.zip.CRC32C

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
  private val checksum = new CRC32C
  private var block = new Array[Byte](4096)
  private var position = 0
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
        position = HeaderBytes
        var sections = 0
        s = 0
        while (s < sources.length) {
          val n = counts(s)(group)
          if (n > 0) {
            writeSection(sources(s), ids(s), ends(s)(group) - n, n, group)
            sections += 1
            entries += n
          }
          s += 1
        }
        writeBlock(group, sections, isBase, version, out)
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
    val name = encodedName(source.family)
    val lengths = (if (sameKeys) 4L else 4L * n) + (if (sameValues) 4L else 4L * n)
    val size = name.length + 5L + lengths + keyBytes + valueBytes
    if (position + size > MaxBlockBytes) {
      throw new StateTooLargeException(
        s"Key group $group has more than 1 GiB of state in one partition: raise the number of key groups " +
          "(maxParallelism), or the state of one key is too large.")
    }
    reserve(size.toInt)
    System.arraycopy(name, 0, block, position, name.length)
    position += name.length
    block(position) =
      ((if (source.multiValue) Lists else 0) | (if (source.appends) Appends else 0) |
        (if (sameKeys) UniformKeys else 0) | (if (sameValues) UniformValues else 0)).toByte
    position += 1
    putInt(n)
    putInts(keyLengths, if (sameKeys) 1 else n)
    putInts(valueLengths, if (sameValues) 1 else n)
    var keyAt = Platform.BYTE_ARRAY_OFFSET.toLong + position
    var valueAt = keyAt + keyBytes
    i = 0
    while (i < n) {
      source.point(ids(from + i), cursor)
      Bytes.copy(cursor.keyBase, cursor.keyOffset, block, keyAt, cursor.keyLength)
      keyAt += cursor.keyLength
      if (cursor.valueLength > 0) {
        Bytes.copy(cursor.valueBase, cursor.valueOffset, block, valueAt, cursor.valueLength)
        valueAt += cursor.valueLength
      }
      i += 1
    }
    position += (keyBytes + valueBytes).toInt
  }

  private def writeBlock(
      group: Int,
      sections: Int,
      isBase: Boolean,
      version: Long,
      out: OutputStream): Unit = {
    val end = position
    position = 0
    putInt(Magic)
    putInt((Version << 24) | ((if (isBase) KindBase else KindDelta) << 16) | (CodecNone << 8))
    putInt(group)
    putInt((version >>> 32).toInt)
    putInt(version.toInt)
    putInt(sections)
    putInt(end - HeaderBytes)
    checksum.reset()
    checksum.update(block, 0, ChecksumAt)
    checksum.update(block, HeaderBytes, end - HeaderBytes)
    putInt(checksum.getValue.toInt)
    out.write(block, 0, end)
    groups(blocks) = group
    offsets(blocks) = written
    blocks += 1
    written += end
  }

  private var lastFamily: String = _
  private var lastName: Array[Byte] = _

  private def encodedName(family: String): Array[Byte] = {
    if (family != lastFamily) {
      val bytes = new ByteArrayOutputStream
      new DataOutputStream(bytes).writeUTF(writtenName(family))
      lastName = bytes.toByteArray
      lastFamily = family
    }
    lastName
  }

  private def putInt(x: Int): Unit = {
    ListCursor.putInt(block, Platform.BYTE_ARRAY_OFFSET + position, x)
    position += 4
  }

  private def putInts(xs: Array[Int], n: Int): Unit = {
    var i = 0
    while (i < n) {
      putInt(xs(i))
      i += 1
    }
  }

  private def reserve(size: Int): Unit = {
    if (position + size > block.length) {
      val length = math.max(position + size.toLong, block.length * 2L)
      block = Arrays.copyOf(block, math.min(MaxBlockBytes.toLong, length).toInt)
    }
  }
}
