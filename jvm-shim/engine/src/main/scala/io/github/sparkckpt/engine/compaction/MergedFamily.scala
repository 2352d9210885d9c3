// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import java.util.Arrays

import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor, ListCursor}
import io.github.sparkckpt.engine.segment.{EntrySource, SectionWriter, SegmentTarget}

import org.apache.spark.unsafe.Platform

/**
 * Outcome of several deltas for one column family in one key group: the last value or the removal of each key, or rows
 * to append to the list that the first delta finds. It points into the blocks that it receives, and copies only joined
 * lists.
 */
private[engine] final class MergedFamily(name: String, lists: Boolean) extends SegmentTarget {
  import MergedFamily._

  // By entry.
  private var kinds = new Array[Byte](64)
  private var hashes = new Array[Int](64)
  private var keyBases = new Array[AnyRef](64)
  private var keyOffsets = new Array[Long](64)
  private var keyLengths = new Array[Int](64)
  private var valueBases = new Array[AnyRef](64)
  private var valueOffsets = new Array[Long](64)
  private var valueLengths = new Array[Int](64)
  private var count = 0

  // Numbers of entries plus 1, by hash; 0 is free.
  private var slots = new Array[Int](256)

  /** Forgets all entries. */
  def clear(): Unit = {
    if (count > 0) Arrays.fill(slots, 0)
    Arrays.fill(keyBases, 0, count, null)
    Arrays.fill(valueBases, 0, count, null)
    count = 0
  }

  /** Adds the sections of the outcome to a block; returns the number of entries. */
  def writeTo(sections: SectionWriter, group: Int): Int = {
    Seq(false, true).foreach { appended =>
      val ids = (0 until count).filter(kinds(_) == Appended == appended).toArray
      if (ids.nonEmpty) sections.write(new Outcome(appended), ids, 0, ids.length, group)
    }
    count
  }

  override def put(
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit =
    set(entryOf(keyBase, keyOffset, keyLength), Put, valueBase, valueOffset, valueLength)

  override def append(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      rows: Int,
      rowsBase: AnyRef,
      rowsOffset: Long,
      rowsLength: Int): Boolean = {
    val entry = entryOf(keyBase, keyOffset, keyLength)
    kinds(entry) match {
      case Removed => false
      case New =>
        set(entry, Appended, rowsBase, rowsOffset, rowsLength)
        true
      case kind =>
        val joined = new Array[Byte](Math.addExact(valueLengths(entry), rowsLength))
        Platform.copyMemory(valueBases(entry), valueOffsets(entry), joined, Start, valueLengths(entry))
        Platform.copyMemory(rowsBase, rowsOffset, joined, Start + valueLengths(entry), rowsLength)
        if (kind == Put) ListCursor.putInt(joined, Start, ListCursor.getInt(joined, Start) + rows)
        set(entry, kind, joined, Start, joined.length)
        true
    }
  }

  override def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit =
    set(entryOf(keyBase, keyOffset, keyLength), Removed, null, 0, -1)

  private def set(entry: Int, kind: Byte, base: AnyRef, offset: Long, length: Int): Unit = {
    kinds(entry) = kind
    valueBases(entry) = base
    valueOffsets(entry) = offset
    valueLengths(entry) = length
  }

  private def entryOf(base: AnyRef, offset: Long, length: Int): Int = {
    val hash = Bytes.hash(base, offset, length)
    var slot = hash & (slots.length - 1)
    while (slots(slot) != 0 && !isKey(slots(slot) - 1, hash, base, offset, length)) {
      slot = (slot + 1) & (slots.length - 1)
    }
    if (slots(slot) != 0) {
      slots(slot) - 1
    } else {
      if (count == kinds.length) grow()
      kinds(count) = New
      hashes(count) = hash
      keyBases(count) = base
      keyOffsets(count) = offset
      keyLengths(count) = length
      count += 1
      slots(slot) = count
      if (count * 2 > slots.length) rehash()
      count - 1
    }
  }

  private def isKey(entry: Int, hash: Int, base: AnyRef, offset: Long, length: Int): Boolean =
    hashes(entry) == hash && keyLengths(entry) == length &&
      Bytes.equalWords(keyBases(entry), keyOffsets(entry), base, offset, length)

  private def grow(): Unit = {
    val length = Math.multiplyExact(count, 2)
    kinds = Arrays.copyOf(kinds, length)
    hashes = Arrays.copyOf(hashes, length)
    keyBases = Arrays.copyOf(keyBases, length)
    keyOffsets = Arrays.copyOf(keyOffsets, length)
    keyLengths = Arrays.copyOf(keyLengths, length)
    valueBases = Arrays.copyOf(valueBases, length)
    valueOffsets = Arrays.copyOf(valueOffsets, length)
    valueLengths = Arrays.copyOf(valueLengths, length)
  }

  private def rehash(): Unit = {
    slots = new Array[Int](Math.multiplyExact(slots.length, 4))
    var entry = 0
    while (entry < count) {
      var slot = hashes(entry) & (slots.length - 1)
      while (slots(slot) != 0) slot = (slot + 1) & (slots.length - 1)
      slots(slot) = entry + 1
      entry += 1
    }
  }

  private final class Outcome(override val appends: Boolean) extends EntrySource {
    override def family: String = name

    override def multiValue: Boolean = lists

    override def point(id: Int, cursor: EntryCursor): Unit = {
      cursor.keyBase = keyBases(id)
      cursor.keyOffset = keyOffsets(id)
      cursor.keyLength = keyLengths(id)
      cursor.valueBase = valueBases(id)
      cursor.valueOffset = valueOffsets(id)
      cursor.valueLength = valueLengths(id)
    }
  }
}

private object MergedFamily {
  private val Start = Platform.BYTE_ARRAY_OFFSET.toLong

  private final val New: Byte = 0
  private final val Removed: Byte = 1
  private final val Put: Byte = 2
  private final val Appended: Byte = 3
}
