// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor}

import org.apache.spark.unsafe.Platform

/**
 * Entries of a column family whose keys have one length and whose values have one length, by key group, as a section
 * holds them: the keys, then the values. Entries come in the order of memory and are copied to their groups, because
 * to read them in the order of groups would miss the processor's caches for each.
 *
 * Each group has an array of its own, so that none is a humongous object for G1.
 *
 * @param counts number of entries of each key group
 */
private[engine] final class UniformRows(counts: Array[Int]) {
  import UniformRows._

  private val parts = new Array[Array[Byte]](counts.length)
  private val filled = new Array[Int](counts.length)
  private var isEmpty = true
  private var lengthOfKeys = 0
  private var lengthOfValues = 0
  private var bytes = 0L

  /** Bytes of memory. */
  def memoryBytes: Long = bytes

  def keyLength: Int = lengthOfKeys

  def valueLength: Int = lengthOfValues

  /** Keys and values of a group. */
  def part(group: Int): Array[Byte] = parts(group)

  /** Adds the entry at a cursor; false if its lengths differ from those before, or memory would exceed the limit. */
  def add(group: Int, cursor: EntryCursor): Boolean = {
    if (isEmpty) {
      isEmpty = false
      lengthOfKeys = cursor.keyLength
      lengthOfValues = cursor.valueLength
    }
    // Sections tell removals and empty keys in another way.
    cursor.keyLength == lengthOfKeys && cursor.valueLength == lengthOfValues && lengthOfKeys > 0 &&
    lengthOfValues >= 0 && (parts(group) != null || startPart(group)) && {
      val at = filled(group)
      val start = Platform.BYTE_ARRAY_OFFSET.toLong
      val valuesAt = start + counts(group) * lengthOfKeys
      Bytes.copy(cursor.keyBase, cursor.keyOffset, parts(group), start + at * lengthOfKeys, lengthOfKeys)
      Bytes.copy(cursor.valueBase, cursor.valueOffset, parts(group), valuesAt + at * lengthOfValues, lengthOfValues)
      filled(group) = at + 1
      true
    }
  }

  private def startPart(group: Int): Boolean = {
    val length = counts(group) * (lengthOfKeys.toLong + lengthOfValues)
    bytes += length
    bytes <= MaxBytes && {
      parts(group) = new Array[Byte](length.toInt)
      true
    }
  }
}

private[engine] object UniformRows {

  /** Limit of the memory, in bytes. */
  final val MaxBytes = 32L << 20

  /** Fewer entries stay in the processor's caches, and may be few in each group. */
  final val MinEntries = 8192
}
