// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import scala.collection.mutable

import io.github.sparkckpt.engine.bytes.{Bytes, ListCursor}
import io.github.sparkckpt.engine.segment.{SegmentFormat, StateTooLargeException}

import org.apache.spark.unsafe.Platform

/**
 * Rows of column families, one family after the other, in parts by key group. Not thread-safe.
 *
 * Each part has pages of its own, which are written and later read in order: a sort at the end would touch memory at
 * random, and cost more than all else. The first page of a part is small, because a store may have many parts. The
 * buffer grows without copies.
 *
 * @param maxParallelism number of key groups
 */
private[engine] final class RowBuffer(maxParallelism: Int) {
  private var family = -1

  /** Parts of the family by key group, and those of all families in the order of [[parts]]. */
  private var ofFamily: Array[BufferedPart] = _
  private val earlier = mutable.ArrayBuffer.empty[BufferedPart]
  private var bytes = 0L

  def isEmpty: Boolean = bytes == 0

  /** Bytes of all pages. */
  def size: Long = bytes

  def add(
      inFamily: Int,
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit = {
    if (inFamily != family) {
      endFamily()
      family = inFamily
      ofFamily = new Array[BufferedPart](maxParallelism)
    }
    var part = ofFamily(keyGroup)
    if (part == null) {
      part = new BufferedPart(inFamily, keyGroup)
      ofFamily(keyGroup) = part
    }
    bytes += part.add(keyBase, keyOffset, keyLength, valueBase, valueOffset, valueLength)
  }

  private def endFamily(): Unit = if (ofFamily != null) {
    earlier ++= ofFamily.iterator.filter(_ != null)
    ofFamily = null
    family = -1
  }

  def clear(): Unit = {
    ofFamily = null
    family = -1
    earlier.clear()
    bytes = 0
  }

  /** Parts of all families and key groups, by family and then by key group. */
  def parts: Iterator[RowPart] = {
    endFamily()
    earlier.iterator
  }
}

/** Rows of one family and key group in memory. A row is the lengths of key and value, the key and the value. */
private final class BufferedPart(override val family: Int, override val keyGroup: Int) extends RowPart {
  import BufferedPart._

  private val full = mutable.ArrayBuffer.empty[Array[Byte]]
  private var page = Array.emptyByteArray
  private var position = 0

  private var rows = 0
  private var keyBytes = 0L
  private var valueBytes = 0L
  private var sameKey = 0
  private var sameValue = 0

  /** Adds a row; returns the bytes by which the pages grew. */
  def add(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Int = {
    val length = HeaderBytes + keyLength.toLong + valueLength
    val grown = if (length > page.length - position) startPage(length) else 0
    val at = Platform.BYTE_ARRAY_OFFSET.toLong + position
    Platform.putInt(page, at, keyLength)
    Platform.putInt(page, at + ValueLengthAt, valueLength)
    Bytes.copy(keyBase, keyOffset, page, at + HeaderBytes, keyLength)
    Bytes.copy(valueBase, valueOffset, page, at + HeaderBytes + keyLength, valueLength)
    position += length.toInt
    if (rows == 0) {
      sameKey = keyLength
      sameValue = valueLength
    } else {
      if (keyLength != sameKey) sameKey = PartSummary.Various
      if (valueLength != sameValue) sameValue = PartSummary.Various
    }
    rows += 1
    keyBytes += keyLength
    valueBytes += valueLength
    grown
  }

  private def startPage(least: Long): Int = {
    if (least > SegmentFormat.maxBlockBytes) throw new StateTooLargeException("A row of the state has more than 1 GiB.")
    if (page.length > 0) {
      // A length that no key has marks the end of the rows, if there is room.
      if (page.length - position >= HeaderBytes) Platform.putInt(page, Platform.BYTE_ARRAY_OFFSET.toLong + position, -1)
      full += page
    }
    val usual = math.min(math.max(FirstPageBytes, 2 * page.length), MaxPageBytes)
    page = new Array[Byte](math.max(least, usual.toLong).toInt)
    position = 0
    page.length
  }

  override def summary: PartSummary = PartSummary(rows, keyBytes, valueBytes, sameKey, sameValue)

  override def copyKeyLengths(to: Array[Byte], at: Int): Unit = copyInts(0, to, at)

  override def copyValueLengths(to: Array[Byte], at: Int): Unit = copyInts(ValueLengthAt, to, at)

  private def copyInts(field: Int, to: Array[Byte], at: Int): Unit = {
    var target = Platform.BYTE_ARRAY_OFFSET.toLong + at
    val cursor = new PageCursor
    while (cursor.advance()) {
      ListCursor.putInt(to, target, Platform.getInt(cursor.in, cursor.row + field))
      target += 4
    }
  }

  override def copyRows(to: Array[Byte], keysAt: Int, valuesAt: Int): Unit = {
    var keyTarget = Platform.BYTE_ARRAY_OFFSET.toLong + keysAt
    var valueTarget = Platform.BYTE_ARRAY_OFFSET.toLong + valuesAt
    val cursor = new PageCursor
    while (cursor.advance()) {
      Bytes.copy(cursor.in, cursor.row + HeaderBytes, to, keyTarget, cursor.keyLength)
      Bytes.copy(cursor.in, cursor.row + HeaderBytes + cursor.keyLength, to, valueTarget, cursor.valueLength)
      keyTarget += cursor.keyLength
      valueTarget += cursor.valueLength
    }
  }

  /** Walk over the rows. */
  private final class PageCursor {
    var in: Array[Byte] = Array.emptyByteArray
    var row = 0L
    var keyLength = 0
    var valueLength = 0
    private var next = Platform.BYTE_ARRAY_OFFSET.toLong
    private var pages = 0
    private var seen = 0

    def advance(): Boolean = seen < rows && {
      if (isAtEnd) {
        in = if (pages < full.size) full(pages) else page
        pages += 1
        next = Platform.BYTE_ARRAY_OFFSET
      }
      row = next
      keyLength = Platform.getInt(in, row)
      valueLength = Platform.getInt(in, row + ValueLengthAt)
      next = row + HeaderBytes + keyLength + valueLength
      seen += 1
      true
    }

    private def isAtEnd: Boolean =
      next + HeaderBytes > Platform.BYTE_ARRAY_OFFSET + in.length || Platform.getInt(in, next) < 0
  }
}

private object BufferedPart {
  final val FirstPageBytes = 512
  final val MaxPageBytes = 1 << 14

  /** Length of the key, length of the value. */
  final val HeaderBytes = 8
  final val ValueLengthAt = 4
}

/**
 * Numbers of a part.
 *
 * @param keyLength   length of all keys in bytes, or `Various`
 * @param valueLength length of all values in bytes, or `Various`
 */
private[engine] final case class PartSummary(
    rows: Int,
    keyBytes: Long,
    valueBytes: Long,
    keyLength: Int,
    valueLength: Int)

private[engine] object PartSummary {
  final val Various = -1
}

/** Rows of one family and key group. The copies go to an array, from a position on. */
private[engine] abstract class RowPart {
  def family: Int
  def keyGroup: Int
  def summary: PartSummary

  /** Copies the lengths of the keys, 4 bytes each, big-endian. */
  def copyKeyLengths(to: Array[Byte], at: Int): Unit
  def copyValueLengths(to: Array[Byte], at: Int): Unit

  /** Copies the keys to one position, one after the other, and the values to another. */
  def copyRows(to: Array[Byte], keysAt: Int, valuesAt: Int): Unit
}
