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

import scala.collection.mutable

import org.apache.spark.unsafe.Platform

/**
 * Rows of column families, one family after the other, each row with its key group. Not thread-safe.
 *
 * The rows lie in pages of a fixed size, so that the buffer grows without copies; a larger row has a page of its own.
 */
private[backend] final class RowBuffer {
  import RowBuffer._

  private val pages = mutable.ArrayBuffer.empty[Array[Byte]]

  // The page that rows go to, and the bytes of those before it.
  private var number = -1
  private var page = Array.emptyByteArray
  private var position = 0
  private var earlier = 0L

  /** Places of the rows: number of the page times the size of a page, plus the position in the page. */
  private var starts = new Array[Int](1024)
  private var rows = 0

  /** Rows before the first of each family, by number of the family. */
  private var families = Vector.empty[(Int, Int)]
  private var family = -1

  def isEmpty: Boolean = rows == 0

  /** Bytes of this row with its description. */
  def sizeOf(keyLength: Int, valueLength: Int): Long = HeaderBytes + keyLength.toLong + valueLength + IndexBytes

  /** Bytes of all rows with their descriptions, and the unused ends of pages. */
  def size: Long = earlier + position + rows.toLong * IndexBytes

  /** Bytes of all arrays. */
  def heldBytes: Long = pages.iterator.map(_.length.toLong).sum + 4L * starts.length

  def add(
      ofFamily: Int,
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit = {
    val length = HeaderBytes + keyLength.toLong + valueLength
    if (length > page.length - position) startPage(length)
    if (rows == starts.length) starts = Arrays.copyOf(starts, rows * 2)
    if (ofFamily != family) {
      families :+= ofFamily -> rows
      family = ofFamily
    }
    starts(rows) = number * PageBytes + position
    rows += 1
    val at = Platform.BYTE_ARRAY_OFFSET.toLong + position
    Platform.putInt(page, at, keyGroup)
    Platform.putInt(page, at + KeyLengthAt, keyLength)
    Platform.putInt(page, at + ValueLengthAt, valueLength)
    Bytes.copy(keyBase, keyOffset, page, at + HeaderBytes, keyLength)
    Bytes.copy(valueBase, valueOffset, page, at + HeaderBytes + keyLength, valueLength)
    position += length.toInt
  }

  private def startPage(least: Long): Unit = {
    if (least > SegmentFormat.MaxBlockBytes) throw new StateTooLargeException("A row of the state has more than 1 GiB.")
    val size = math.max(least.toInt, PageBytes)
    earlier += page.length
    number += 1
    if (number == pages.size) pages += new Array[Byte](size)
    else if (pages(number).length < size) pages(number) = new Array[Byte](size)
    page = pages(number)
    position = 0
  }

  /** Removes the rows, and keeps the pages of the usual size. */
  def clear(): Unit = {
    pages.filterInPlace(_.length == PageBytes)
    number = -1
    page = Array.emptyByteArray
    position = 0
    earlier = 0
    rows = 0
    families = Vector.empty
    family = -1
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
    val totals = new Array[PartTotals](maxParallelism)
    var i = from
    while (i < until) {
      val (of, at) = (pageOf(starts(i)), addressOf(starts(i)))
      val group = Platform.getInt(of, at)
      if (totals(group) == null) totals(group) = new PartTotals
      totals(group).add(Platform.getInt(of, at + KeyLengthAt), Platform.getInt(of, at + ValueLengthAt))
      i += 1
    }
    val groups = totals.indices.filter(totals(_) != null)
    var sum = 0
    groups.foreach { group =>
      totals(group).start = sum
      totals(group).end = sum
      sum += totals(group).rows
    }
    val order = new Array[Int](until - from)
    i = from
    while (i < until) {
      val total = totals(Platform.getInt(pageOf(starts(i)), addressOf(starts(i))))
      order(total.end) = starts(i)
      total.end += 1
      i += 1
    }
    groups.iterator.map(group => new BufferedPart(family, group, totals(group), order))
  }

  private def pageOf(start: Int): Array[Byte] = pages(start / PageBytes)

  private def addressOf(start: Int): Long = Platform.BYTE_ARRAY_OFFSET.toLong + start % PageBytes

  private final class BufferedPart(
      override val family: Int,
      override val keyGroup: Int,
      totals: PartTotals,
      order: Array[Int])
      extends RowPart {
    override val summary: PartSummary = totals.summary

    override def copyKeyLengths(to: Array[Byte], at: Int): Unit = copyInts(KeyLengthAt, to, at)

    override def copyValueLengths(to: Array[Byte], at: Int): Unit = copyInts(ValueLengthAt, to, at)

    private def copyInts(field: Int, to: Array[Byte], at: Int): Unit = {
      var target = Platform.BYTE_ARRAY_OFFSET.toLong + at
      var i = totals.start
      while (i < totals.end) {
        ListCursor.putInt(to, target, Platform.getInt(pageOf(order(i)), addressOf(order(i)) + field))
        target += 4
        i += 1
      }
    }

    override def copyRows(to: Array[Byte], keysAt: Int, valuesAt: Int): Unit = {
      var keyTarget = Platform.BYTE_ARRAY_OFFSET.toLong + keysAt
      var valueTarget = Platform.BYTE_ARRAY_OFFSET.toLong + valuesAt
      var i = totals.start
      while (i < totals.end) {
        val (of, at) = (pageOf(order(i)), addressOf(order(i)))
        val keyLength = Platform.getInt(of, at + KeyLengthAt)
        val valueLength = Platform.getInt(of, at + ValueLengthAt)
        Bytes.copy(of, at + HeaderBytes, to, keyTarget, keyLength)
        Bytes.copy(of, at + HeaderBytes + keyLength, to, valueTarget, valueLength)
        keyTarget += keyLength
        valueTarget += valueLength
        i += 1
      }
    }
  }
}

private object RowBuffer {
  /** Size of a page: small enough that the JVM's collector does not treat it as a large object. */
  final val PageBytes = 1 << 18

  /** Key group, length of the key, length of the value. */
  final val HeaderBytes = 12
  final val KeyLengthAt = 4
  final val ValueLengthAt = 8

  /** Memory of a row outside the pages: its place, and its place in the order of key groups. */
  final val IndexBytes = 8
}

/** Sums over the rows of a key group, and their places in the order of key groups. */
private final class PartTotals {
  var start = 0
  var end = 0
  var rows = 0
  private var keyBytes = 0L
  private var valueBytes = 0L
  private var keyLength = 0
  private var valueLength = 0

  def add(ofKey: Int, ofValue: Int): Unit = {
    if (rows == 0) {
      keyLength = ofKey
      valueLength = ofValue
    } else {
      if (ofKey != keyLength) keyLength = PartSummary.Various
      if (ofValue != valueLength) valueLength = PartSummary.Various
    }
    rows += 1
    keyBytes += ofKey
    valueBytes += ofValue
  }

  def summary: PartSummary = PartSummary(rows, keyBytes, valueBytes, keyLength, valueLength)
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

  /** Copies the keys to one position, one after the other, and the values to another. */
  def copyRows(to: Array[Byte], keysAt: Int, valuesAt: Int): Unit
}
