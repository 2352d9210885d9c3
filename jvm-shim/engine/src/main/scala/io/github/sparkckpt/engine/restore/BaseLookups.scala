// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.restore

import scala.collection.mutable

import io.github.sparkckpt.engine.bytes.Bytes
import io.github.sparkckpt.engine.segment._
import io.github.sparkckpt.engine.table.KeyGroupFunction

import org.apache.spark.unsafe.Platform

/**
 * Lookups of single keys in a base that stays in its file. Its rows are in the order of their keys' hashes
 * ([[HashOrder]]), so the hash of a key tells about where it is: one read finds most keys, and another one reads the
 * value. Of a compressed block, a read restores the chunks that have the bytes. The first lookup in a key group reads
 * and checks its block, since single rows have no checksums. Not thread-safe.
 *
 * @param segment   the base, with the key groups of its blocks
 * @param keyGroups key group of a key
 * @param newest    highest version that a block may have
 */
private[engine] final class BaseLookups(segment: StateSegment, keyGroups: KeyGroupFunction, newest: Long) {
  import BaseLookups._

  private var group = 0
  private val isExpected: RestoreFilter = (found: Int) => found == group
  // Reads no more than a block at a time.
  private val reader = new SegmentReader((_: String, _: Boolean) => null, isExpected, window = 0)
  private val places = mutable.LongMap.empty[RowPlaces]

  private var rows: RowPlaces = _
  // Keys from `first` until `end` are in the window.
  private var window = new Array[Byte](WindowBytes)
  private var first = 0
  private var end = 0
  // Bounds of a search, and the hashes beside them.
  private var low = 0
  private var high = 0
  private var least = 0L
  private var most = 0L

  private val buffers = new BlockBody.Buffers
  private var value = new Array[Byte](256)
  private var length = 0
  private var placeBytes = 0L

  reader.start(segment)

  /** Bytes of memory, estimated during a lookup. */
  def memoryBytes: Long = placeBytes + window.length + value.length + buffers.memoryBytes + reader.memoryBytes

  /** Value of the key of the last lookup that has found one. It is valid until the next one. */
  def valueBase: AnyRef = value

  def valueOffset: Long = Platform.BYTE_ARRAY_OFFSET

  def valueLength: Int = length

  /** True if lookups in this key group have begun. */
  def isOpen(keyGroup: Int): Boolean = places.contains(keyGroup)

  /**
   * Begins lookups in a key group.
   *
   * @return false if its rows cannot be looked up: they have to be loaded
   * @throws StateStreamDamagedException if the contents were changed after they were written
   * @throws MisplacedRowException       if the rows are in a key group where no reader looks
   */
  def open(keyGroup: Int): Boolean = isOpen(keyGroup) || {
    group = keyGroup
    segment.keyGroups.indexOf(keyGroup) match {
      case -1 =>
        places(keyGroup) = null
        true
      case i =>
        reader.placesOf(i, newest).exists { found =>
          places(keyGroup) = found
          placeBytes += found.memoryBytes
          end = 0
          rows = found
          if (found.rows > 0) {
            val at = keyAt(0)
            PlacedRows.check(keyGroups, keyGroup, window, at, keyLength(0))
          }
          true
        }
    }
  }

  /** Looks a key up in an open key group; false if the base does not have it. */
  def find(keyGroup: Int, hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    val wanted = places(keyGroup)
    if (wanted ne rows) {
      rows = wanted
      end = 0
      first = 0
    }
    rows != null && {
      var i = firstOf(hash)
      var found = false
      while (!found && i < rows.rows && hashOf(i) == hash) {
        val at = keyAt(i)
        if (this.keyLength(i) == keyLength && Bytes.equalWords(window, at, keyBase, keyOffset, keyLength)) {
          readValue(i)
          found = true
        }
        i += 1
      }
      found
    }
  }

  /** The first row whose hash is not less: by a guess, and a binary search around it. */
  private def firstOf(hash: Int): Int = {
    low = 0
    high = rows.rows
    least = 0
    most = 0xFFFFFFFFL
    val wanted = hash & 0xFFFFFFFFL
    if (high > 0) {
      fill(((wanted * high) >>> 32).toInt)
      narrow(first, wanted)
      if (low < end && end <= high) narrow(end - 1, wanted)
    }
    while (low < high) narrow((low + high) >>> 1, wanted)
    low
  }

  /** Compares a row between `low` and `high`. */
  private def narrow(i: Int, wanted: Long): Unit = {
    val found = hashOf(i) & 0xFFFFFFFFL
    if (found < least || found > most) {
      throw new StateStreamDamagedException(segment.source.name, rows.body.start + rows.keyAt(i),
        "the rows are not in the order of their keys' hashes", null)
    }
    if (found < wanted) {
      low = i + 1
      least = found
    } else {
      high = i
      most = found
    }
  }

  private def hashOf(i: Int): Int = {
    val at = keyAt(i)
    Bytes.hash(window, at, keyLength(i))
  }

  private def keyLength(i: Int): Int = rows.keyAt(i + 1) - rows.keyAt(i)

  /** Offset of a key in the window, which is read anew unless it has the key. */
  private def keyAt(i: Int): Long = {
    if (i < first || i >= end) fill(i)
    Platform.BYTE_ARRAY_OFFSET + rows.keyAt(i) - rows.keyAt(first)
  }

  /** Reads the keys around one. */
  private def fill(i: Int): Unit = {
    val each = math.max(1, keyLength(i))
    val around = math.max(0, WindowBytes / each / 2 - 1)
    first = math.max(0, i - around)
    end = math.min(rows.rows, i + around + 1)
    // Of different lengths, keys beside this one may be longer.
    while (end - first > 1 && rows.keyAt(end) - rows.keyAt(first) > WindowBytes) {
      if (end - 1 > i) end = i + 1 + (end - 1 - i) / 2
      if (first < i) first = i - (i - first) / 2
    }
    val count = rows.keyAt(end) - rows.keyAt(first)
    if (count > window.length) window = new Array[Byte](count)
    rows.body.readFully(rows.keyAt(first), window, count, buffers)
  }

  private def readValue(i: Int): Unit = {
    length = rows.valueAt(i + 1) - rows.valueAt(i)
    if (length > value.length) value = new Array[Byte](math.max(length, 2 * value.length))
    rows.body.readFully(rows.valueAt(i), value, length, buffers)
  }
}

private[engine] object BaseLookups {

  /** Bytes of keys per read. Most keys of a key group with 60,000 are this near to the place that is guessed. */
  private final val WindowBytes = 1 << 13
}
