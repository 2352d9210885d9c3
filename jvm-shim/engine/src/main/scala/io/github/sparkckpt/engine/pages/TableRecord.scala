// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor, ListCursor}

import org.apache.spark.unsafe.Platform

/**
 * Layout of a record of a [[StateTable]], in 8-byte words:
 *
 *  - header: value length in bytes (upper 32 bits), key length in words (16 bits), dead (1 bit), key group
 *    (15 bits);
 *  - the length of the key in words if it does not fit into its 16 bits, which are then all ones;
 *  - links, in tables with prefix chains: previous (upper half) and next address;
 *  - key;
 *  - value, padded to words.
 *
 * The key group is in the record so that snapshots need no hashing. Dead records have none there: their 15 bits are 0,
 * or 1 for the spare words behind a list, which look like a dead record without a key.
 */
private[engine] object TableRecord {
  final val Dead = 1L << 15
  final val LongKey = 0xFFFF
  final val MaxKeyGroups = 1 << 15

  /** Offset of the value length in the header, in bytes: headers are in native byte order. */
  val ValueLengthByte: Int = if (ListCursor.littleEndian) 4 else 0

  def header(valueLength: Int, keyWords: Int, keyGroup: Int): Long =
    (valueLength.toLong << 32) | (math.min(keyWords, LongKey).toLong << 16) | keyGroup

  def valueLength(header: Long): Int = (header >>> 32).toInt

  /** Header of a dead record. */
  def dead(header: Long): Long = (header & ~(Dead - 1)) | Dead

  /** Header of spare words, so many that they fit a header and the links. */
  def spare(words: Int, linkWords: Int): Long = header((words - 1 - linkWords) << 3, 0, 1) | Dead

  def isSpare(header: Long): Boolean = (header & 0xFFFF) == (Dead | 1)

  def isDead(header: Long): Boolean = (header & Dead) != 0

  def keyGroup(header: Long): Int = (header & (Dead - 1)).toInt

  /** Words before the links: the header, and the key length if it is long. */
  def headWords(header: Long): Int = if (((header >>> 16) & LongKey) == LongKey) 2 else 1

  /** Words of a key that is known to be short. */
  def shortKeyWords(header: Long): Int = ((header >>> 16) & LongKey).toInt

  def keyWords(header: Long, page: AnyRef, offset: Long): Int = {
    val words = shortKeyWords(header)
    if (words == LongKey) Platform.getLong(page, offset + 8).toInt else words
  }

  /** Words of the whole record. */
  def words(header: Long, page: AnyRef, offset: Long, linkWords: Int): Int =
    headWords(header) + linkWords + keyWords(header, page, offset) + Bytes.words(valueLength(header))

  /** Words of a record without links, by its lengths. */
  def words(keyLength: Int, valueLength: Int): Int = {
    val keyWords = keyLength >>> 3
    (if (keyWords >= LongKey) 2 else 1) + keyWords + Bytes.words(valueLength)
  }

  /** Bytes of the record at a position of an array. */
  def bytesAt(bytes: Array[Byte], at: Int, linkWords: Int): Long = {
    val offset = Platform.BYTE_ARRAY_OFFSET.toLong + at
    words(Platform.getLong(bytes, offset), bytes, offset, linkWords).toLong << 3
  }

  /** True if a record has this key. */
  def isOf(
      page: AnyRef, offset: Long, linkWords: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    val header = Platform.getLong(page, offset)
    keyWords(header, page, offset) == (keyLength >>> 3) &&
      Bytes.equalWords(page, offset + ((headWords(header) + linkWords) << 3), keyBase, keyOffset, keyLength)
  }

  /** Points a cursor at key and value of a record. */
  def point(page: AnyRef, offset: Long, linkWords: Int, cursor: EntryCursor): Unit = {
    val header = Platform.getLong(page, offset)
    val keyLength = keyWords(header, page, offset) << 3
    val keyOffset = offset + ((headWords(header) + linkWords) << 3)
    cursor.keyGroup = keyGroup(header)
    cursor.keyBase = page
    cursor.keyOffset = keyOffset
    cursor.keyLength = keyLength
    cursor.valueBase = page
    cursor.valueOffset = keyOffset + keyLength
    cursor.valueLength = valueLength(header)
  }
}
