// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import java.util.Arrays

import io.github.sparkckpt.engine.bytes.Bytes
import io.github.sparkckpt.engine.pages.TableRecord

import org.apache.spark.unsafe.Platform

/**
 * Queue of the lookups that a thread made in a table, for its writes of the same keys: operators read a key and then
 * write it, or read all keys of a batch and write them in the same order. Such a write needs neither the hash nor the
 * table, whose index and record may have left the processor's caches since.
 *
 * A write takes its lookup from the head of the queue, from a few places behind that, or from the tail. If many writes
 * find none, the queue closes.
 *
 * A lookup is the hash (upper half) and address of the record (0 if there is none) as one word, the record's header
 * (see [[TableRecord]]; of no record the length of the key alone), and the key.
 *
 * @param table    the table; lookups are valid until it changes
 * @param maxBytes limit of the memory
 */
private[engine] final class LookupQueue(table: StateTable, maxBytes: Int) {
  import LookupQueue._

  private val thread = Thread.currentThread()
  private val generation = table.generation

  // The queue leads through chunks; those before the head are null. `ends` has the bytes used of each.
  private var chunks = new Array[Array[Byte]](4)
  private var ends = new Array[Int](4)
  private var count = 0
  private var headChunk = 0
  private var headAt = 0
  private var lastAt = 0
  private var held = 0

  private var isClosed = false
  private var misses = 0
  private var foundWords = 0L
  private var foundHeader = 0L
  private var taken = 0L
  private var takenBytes = 0L

  /** Bytes of memory. */
  def bytes: Int = held

  /** Number of lookups that writes have taken. */
  def hits: Long = taken

  /** Bytes of the lookups that writes have taken. */
  def hitBytes: Long = takenBytes

  /** Hash of the lookup that was taken last. */
  def hash: Int = (foundWords >>> 32).toInt

  /** Address of the record of the lookup that was taken last, 0 if there is none. */
  def address: Int = foundWords.toInt

  /** Header of the record of the lookup that was taken last. */
  def header: Long = foundHeader

  /** True if this thread made the lookups, and they hold for a table. */
  def isOf(other: StateTable): Boolean =
    (other eq table) && generation == table.generation && (thread eq Thread.currentThread())

  /** Adds a lookup, unless there is no room. */
  def add(hash: Int, address: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit =
    if (!isClosed && keyLength <= MaxKey && hasRoom(HeadBytes + keyLength)) {
      val chunk = chunks(count - 1)
      val at = ends(count - 1)
      val offset = Platform.BYTE_ARRAY_OFFSET.toLong + at
      Platform.putLong(chunk, offset, (hash.toLong << 32) | (address & 0xFFFFFFFFL))
      Platform.putLong(chunk, offset + 8,
        if (address == 0) TableRecord.header(0, keyLength >>> 3, 0) else table.header(address))
      Bytes.copy(keyBase, keyOffset, chunk, offset + HeadBytes, keyLength)
      lastAt = at
      ends(count - 1) = at + HeadBytes + keyLength
    }

  private def hasRoom(size: Int): Boolean =
    (count > 0 && ends(count - 1) + size <= chunks(count - 1).length) ||
      (held + nextChunk(held) <= maxBytes && {
        addChunk()
        true
      })

  /** Takes the lookup of a key out of the queue, with those before it; false if none is found. */
  def take(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean =
    nonEmpty && (takeNear(keyBase, keyOffset, keyLength) || takeLast(keyBase, keyOffset, keyLength) || miss())

  private def nonEmpty: Boolean = count > 0 && headAt < ends(headChunk)

  private def takeNear(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    var chunk = headChunk
    var at = headAt
    var tries = 0
    while (tries < LookAhead && chunk < count && !isKey(chunks(chunk), at, keyBase, keyOffset, keyLength)) {
      at += sizeAt(chunks(chunk), at)
      if (at == ends(chunk)) {
        chunk += 1
        at = 0
      }
      tries += 1
    }
    tries < LookAhead && chunk < count && {
      takeAt(chunk, at, keyLength)
      true
    }
  }

  private def takeLast(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean =
    isKey(chunks(count - 1), lastAt, keyBase, keyOffset, keyLength) && {
      takeAt(count - 1, lastAt, keyLength)
      true
    }

  private def isKey(chunk: Array[Byte], at: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean =
    sizeAt(chunk, at) == HeadBytes + keyLength &&
      Bytes.equalWords(chunk, Platform.BYTE_ARRAY_OFFSET + at + HeadBytes, keyBase, keyOffset, keyLength)

  private def sizeAt(chunk: Array[Byte], at: Int): Int =
    HeadBytes + (TableRecord.shortKeyWords(Platform.getLong(chunk, Platform.BYTE_ARRAY_OFFSET.toLong + at + 8)) << 3)

  private def takeAt(chunk: Int, at: Int, keyLength: Int): Unit = {
    val offset = Platform.BYTE_ARRAY_OFFSET.toLong + at
    foundWords = Platform.getLong(chunks(chunk), offset)
    foundHeader = Platform.getLong(chunks(chunk), offset + 8)
    taken += 1
    takenBytes += HeadBytes + keyLength
    while (headChunk < chunk) dropHead()
    headAt = at + HeadBytes + keyLength
    if (headAt == ends(chunk)) {
      if (chunk == count - 1) rewind() else dropHead()
    }
  }

  private def dropHead(): Unit = {
    held -= chunks(headChunk).length
    chunks(headChunk) = null
    headChunk += 1
    headAt = 0
  }

  /** The queue is empty: the last chunk is used again. */
  private def rewind(): Unit = {
    if (count > 1) {
      chunks(0) = chunks(count - 1)
      chunks(count - 1) = null
      count = 1
      headChunk = 0
    }
    ends(0) = 0
    headAt = 0
  }

  private def miss(): Boolean = {
    misses += 1
    if (misses > MaxMisses + taken / 4) {
      isClosed = true
      chunks = new Array[Array[Byte]](0)
      count = 0
      held = 0
    }
    false
  }

  private def addChunk(): Unit = {
    if (count == chunks.length) {
      chunks = Arrays.copyOf(chunks, count * 2)
      ends = Arrays.copyOf(ends, count * 2)
    }
    chunks(count) = new Array[Byte](nextChunk(held))
    held += chunks(count).length
    ends(count) = 0
    count += 1
  }
}

private[engine] object LookupQueue {

  /** Bounds of the memory of a queue, in bytes. */
  final val MinBytes = 1 << 16
  final val MaxBytes = 1 << 22

  private final val HeadBytes = 16
  private final val MaxKey = 512
  private final val LookAhead = 4
  private final val MaxMisses = 64

  private def nextChunk(held: Int): Int = math.max(1 << 10, math.min(held, 1 << 16))

  /** Limit of the next queue, after one whose lookups were taken in this many bytes. */
  def limitAfter(hitBytes: Long): Int = math.max(MinBytes.toLong, math.min(hitBytes * 16, MaxBytes.toLong)).toInt
}
