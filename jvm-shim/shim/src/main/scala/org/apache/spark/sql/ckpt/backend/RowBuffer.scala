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

import java.util.Arrays

import org.apache.spark.unsafe.Platform

/** Rows of column families, one family after the other, each row with its key group. Not thread-safe. */
private[backend] final class RowBuffer {
  private var bytes = new Array[Byte](1 << 16)
  private var used = 0
  private var groups = new Array[Int](1024)
  private var starts = new Array[Int](1024)
  private var keyLengths = new Array[Int](1024)
  private var valueLengths = new Array[Int](1024)
  private var rows = 0

  /** Rows before the first of each family, by number of the family. */
  private var families = Vector.empty[(Int, Int)]

  def isEmpty: Boolean = rows == 0

  /** Bytes of this row with its description. */
  def sizeOf(keyLength: Int, valueLength: Int): Long = keyLength.toLong + valueLength + RowBuffer.BytesPerRow

  /** Bytes of all rows with their descriptions. */
  def size: Long = used + rows.toLong * RowBuffer.BytesPerRow

  def add(
      family: Int,
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit = {
    reserve(keyLength.toLong + valueLength)
    if (!families.lastOption.exists(_._1 == family)) families :+= family -> rows
    groups(rows) = keyGroup
    starts(rows) = used
    keyLengths(rows) = keyLength
    valueLengths(rows) = valueLength
    val at = Platform.BYTE_ARRAY_OFFSET.toLong + used
    Bytes.copy(keyBase, keyOffset, bytes, at, keyLength)
    Bytes.copy(valueBase, valueOffset, bytes, at + keyLength, valueLength)
    used += keyLength + valueLength
    rows += 1
  }

  private def reserve(size: Long): Unit = {
    if (used + size > bytes.length) {
      if (used + size > SegmentFormat.MaxBlockBytes) {
        throw new StateTooLargeException("A row of the state has more than 1 GiB.")
      }
      val length = math.max(used + size, bytes.length * 2L)
      bytes = Arrays.copyOf(bytes, math.min(SegmentFormat.MaxBlockBytes.toLong, length).toInt)
    }
    if (rows == groups.length) {
      groups = Arrays.copyOf(groups, rows * 2)
      starts = Arrays.copyOf(starts, rows * 2)
      keyLengths = Arrays.copyOf(keyLengths, rows * 2)
      valueLengths = Arrays.copyOf(valueLengths, rows * 2)
    }
  }

  def clear(): Unit = {
    used = 0
    rows = 0
    families = Vector.empty
  }

  /** Parts of all families and key groups, by family and then by key group; valid until the next change. */
  def parts(maxParallelism: Int): Iterator[RowPart] = {
    val ends = families.drop(1).map(_._2) :+ rows
    families.iterator.zip(ends.iterator).flatMap { case ((family, from), until) =>
      partsOf(family, from, until, maxParallelism)
    }
  }

  /** A counting sort over the key groups. It is stable. */
  private def partsOf(family: Int, from: Int, until: Int, maxParallelism: Int): Iterator[RowPart] = {
    val ends = new Array[Int](maxParallelism + 1)
    var i = from
    while (i < until) {
      ends(groups(i) + 1) += 1
      i += 1
    }
    var group = 0
    while (group < maxParallelism) {
      ends(group + 1) += ends(group)
      group += 1
    }
    val order = new Array[Int](until - from)
    i = from
    while (i < until) {
      order(ends(groups(i))) = i
      ends(groups(i)) += 1
      i += 1
    }
    // The start of a group is now the end of the one before.
    (0 until maxParallelism).iterator
      .map(group => (group, if (group == 0) 0 else ends(group - 1), ends(group)))
      .collect { case (group, first, end) if end > first => new BufferedPart(family, group, order, first, end) }
  }

  private final class BufferedPart(
      override val family: Int,
      override val keyGroup: Int,
      order: Array[Int],
      from: Int,
      until: Int)
      extends RowPart {
    override val summary: PartSummary = {
      var keyBytes = 0L
      var valueBytes = 0L
      val keyLength = keyLengths(order(from))
      val valueLength = valueLengths(order(from))
      var sameKeys = true
      var sameValues = true
      var i = from
      while (i < until) {
        val row = order(i)
        keyBytes += keyLengths(row)
        valueBytes += valueLengths(row)
        sameKeys &= keyLengths(row) == keyLength
        sameValues &= valueLengths(row) == valueLength
        i += 1
      }
      PartSummary(until - from, keyBytes, valueBytes,
        if (sameKeys) keyLength else PartSummary.Various, if (sameValues) valueLength else PartSummary.Various)
    }

    override def copyKeyLengths(to: Array[Byte], at: Int): Unit = copyInts(keyLengths, to, at)

    override def copyValueLengths(to: Array[Byte], at: Int): Unit = copyInts(valueLengths, to, at)

    override def copyKeys(to: Array[Byte], at: Int): Unit = {
      var target = Platform.BYTE_ARRAY_OFFSET.toLong + at
      var i = from
      while (i < until) {
        val row = order(i)
        Bytes.copy(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + starts(row), to, target, keyLengths(row))
        target += keyLengths(row)
        i += 1
      }
    }

    override def copyValues(to: Array[Byte], at: Int): Unit = {
      var target = Platform.BYTE_ARRAY_OFFSET.toLong + at
      var i = from
      while (i < until) {
        val row = order(i)
        val start = Platform.BYTE_ARRAY_OFFSET.toLong + starts(row) + keyLengths(row)
        Bytes.copy(bytes, start, to, target, valueLengths(row))
        target += valueLengths(row)
        i += 1
      }
    }

    private def copyInts(of: Array[Int], to: Array[Byte], at: Int): Unit = {
      var target = Platform.BYTE_ARRAY_OFFSET.toLong + at
      var i = from
      while (i < until) {
        ListCursor.putInt(to, target, of(order(i)))
        target += 4
        i += 1
      }
    }
  }
}

private[backend] object RowBuffer {
  private final val BytesPerRow = 16
}

/**
 * Numbers of a part.
 *
 * @param keyLength   length of all keys in bytes, or `Various`
 * @param valueLength length of all values in bytes, or `Various`
 */
private[backend] final case class PartSummary(
    rows: Int,
    keyBytes: Long,
    valueBytes: Long,
    keyLength: Int,
    valueLength: Int)

private[backend] object PartSummary {
  final val Various = -1
}

/** Rows of one family and key group. The copies go to an array, from a position on. */
private[backend] abstract class RowPart {
  def family: Int
  def keyGroup: Int
  def summary: PartSummary

  /** Copies the lengths of the keys, 4 bytes each, big-endian. */
  def copyKeyLengths(to: Array[Byte], at: Int): Unit
  def copyValueLengths(to: Array[Byte], at: Int): Unit

  /** Copies the keys, one after the other. */
  def copyKeys(to: Array[Byte], at: Int): Unit
  def copyValues(to: Array[Byte], at: Int): Unit
}
