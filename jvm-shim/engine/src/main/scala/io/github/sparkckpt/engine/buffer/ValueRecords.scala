// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.buffer

import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor, ListCursor}
import io.github.sparkckpt.engine.pages.RecordPages

import org.apache.spark.unsafe.Platform

/**
 * Values of a [[WriteBuffer]], as records in its pages: a header with the capacity in words (upper half) and the length
 * in bytes, then the value.
 */
private[engine] final class ValueRecords(pages: RecordPages) {
  import ValueRecords._

  /** Bytes of memory. */
  def memoryBytes: Long = pages.bytes

  /** Address of a new record. */
  def write(words: Int, base: AnyRef, valueOffset: Long, length: Int): Int = {
    val address = allocate(words)
    overwrite(address, base, valueOffset, length)
    address
  }

  /** Overwrites a value with one of as many words, even if a reader sees the record. */
  def overwrite(address: Int, base: AnyRef, valueOffset: Long, length: Int): Unit = {
    val page = pages.page(address)
    val offset = RecordPages.offset(address)
    Platform.putInt(page, offset + LengthByte, length)
    Bytes.copy(base, valueOffset, page, offset + 8, length)
  }

  /** True if a record has this capacity and may be overwritten. */
  def canOverwrite(address: Int, words: Int): Boolean = {
    val header = Platform.getLong(pages.page(address), RecordPages.offset(address))
    (header & Kept) == 0 && (header >>> 32).toInt == words
  }

  /** Protects the record until the end of the batch. */
  def keep(address: Int): Unit = {
    val page = pages.page(address)
    val at = RecordPages.offset(address)
    Platform.putLong(page, at, Platform.getLong(page, at) | Kept)
  }

  /** Bytes of a value. */
  def length(address: Int): Int = Platform.getInt(pages.page(address), RecordPages.offset(address) + LengthByte)

  /** Points a cursor at a value. */
  def point(address: Int, cursor: EntryCursor): Unit = {
    val page = pages.page(address)
    val offset = RecordPages.offset(address)
    cursor.valueBase = page
    cursor.valueOffset = offset + 8
    cursor.valueLength = Platform.getInt(page, offset + LengthByte)
  }

  /** Address of a new record: the list under a cursor, with rows appended and spare room. */
  def writeAppended(list: EntryCursor, rows: Int, rowsBase: AnyRef, rowsOffset: Long, rowsLength: Int): Int = {
    val had = list.valueLength
    val words = wordsOf(had, rowsLength)
    // The spare room of a long list ends at the limit of pages.
    val address = allocate(math.min(words + (had >>> 4), math.max(words, (RecordPages.MaxRecordBytes >>> 3) - 1)).toInt)
    val page = pages.page(address)
    val offset = RecordPages.offset(address)
    Platform.copyMemory(list.valueBase, list.valueOffset, page, offset + 8, had)
    extend(page, offset, had, rows, rowsBase, rowsOffset, rowsLength)
    address
  }

  /**
   * Appends rows to the list of a record; false without room. Open readers of the list do not matter: only the count
   * and the bytes behind its end change, and [[ListCursor]] goes by the length.
   */
  def append(address: Int, rows: Int, rowsBase: AnyRef, rowsOffset: Long, rowsLength: Int): Boolean = {
    val page = pages.page(address)
    val offset = RecordPages.offset(address)
    val had = Platform.getInt(page, offset + LengthByte)
    val capacity = ((Platform.getLong(page, offset) & ~Kept) >>> 32).toInt
    val fits = wordsOf(had, rowsLength) <= capacity
    if (fits) extend(page, offset, had, rows, rowsBase, rowsOffset, rowsLength)
    fits
  }

  /** Words of two lengths together, whose sum may be no int. */
  private def wordsOf(length: Int, more: Int): Long = (length.toLong + more + 7) >>> 3

  private def extend(
      page: AnyRef,
      offset: Long,
      had: Int,
      rows: Int,
      rowsBase: AnyRef,
      rowsOffset: Long,
      rowsLength: Int): Unit = {
    ListCursor.putInt(page, offset + 8, ListCursor.getInt(page, offset + 8) + rows)
    Platform.copyMemory(rowsBase, rowsOffset, page, offset + 8 + had, rowsLength)
    Platform.putInt(page, offset + LengthByte, had + rowsLength)
  }

  private def allocate(words: Int): Int = {
    RecordPages.checkRecordBytes(words.toLong << 3)
    val address = pages.allocate(1 + words)
    Platform.putLong(pages.page(address), RecordPages.offset(address), words.toLong << 32)
    address
  }
}

private[engine] object ValueRecords {
  private final val Kept = 1L << 63

  /** Offset of the length in the header: the lower half, in native byte order. */
  private val LengthByte = if (ListCursor.littleEndian) 0 else 4
}
