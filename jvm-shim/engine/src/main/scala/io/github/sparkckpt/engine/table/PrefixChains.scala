// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor}
import io.github.sparkckpt.engine.pages.{RecordPages, TableRecord}

import org.apache.spark.unsafe.Platform

/**
 * Records of a table with a common prefix, as doubly linked chains through the records: one word per record and no
 * objects; linking, unlinking and finding a chain take constant time.
 *
 * An index maps the hash of the prefix to the first record of its chain. A new record becomes the second one, so the
 * index stays unchanged.
 */
private[engine] final class PrefixChains(table: StateTable, initial: KeyAccess.Prefix) {
  private val heads = new HashIndex(0)
  private val cursor = new EntryCursor
  private var access = initial
  private var scratch = new Array[Byte](64)

  def bytes: Long = heads.bytes

  def adopt(other: KeyAccess.Prefix): Unit = access = other

  /** Address of the first record with this prefix, 0 if there is none. */
  def head(hash: Int, prefixBase: AnyRef, prefixOffset: Long, prefixLength: Int): Int = {
    val slots = heads.part(hash)
    var i = HashIndex.home(hash, slots)
    var found = 0
    while (found == 0 && slots(i) != 0L) {
      if ((slots(i) >>> 32).toInt == hash) {
        table.point(slots(i).toInt, cursor)
        val prefix = access.prefixOf(cursor.keyBase, cursor.keyOffset, cursor.keyLength)
        if (Bytes.isEqual(prefix, prefixBase, prefixOffset, prefixLength)) {
          found = slots(i).toInt
        }
      }
      i = HashIndex.after(i, slots)
    }
    found
  }

  /** The record after one in its chain, 0 at the end. */
  def next(address: Int): Int = links(address).toInt

  /** Adds a record to the chain of its prefix. */
  def link(address: Int): Unit = {
    table.point(address, cursor)
    // The prefix may be a reused slice: copied, because finding the chain computes other prefixes.
    val prefix = access.prefixOf(cursor.keyBase, cursor.keyOffset, cursor.keyLength)
    val size = prefix.length
    if (size > scratch.length) scratch = new Array[Byte](size * 2)
    Bytes.copy(prefix.base, prefix.offset, scratch, Platform.BYTE_ARRAY_OFFSET, size)
    val hash = Bytes.hash(scratch, Platform.BYTE_ARRAY_OFFSET, size)
    val first = head(hash, scratch, Platform.BYTE_ARRAY_OFFSET, size)
    if (first == 0) {
      setLinks(address, 0, 0)
      heads.insert(hash, address)
    } else {
      val second = next(first)
      setLinks(address, first, second)
      setNext(first, address)
      if (second != 0) setPrevious(second, address)
    }
  }

  /** Removes a record from its chain. */
  def unlink(address: Int): Unit = {
    val previous = (links(address) >>> 32).toInt
    val following = next(address)
    if (previous != 0) {
      setNext(previous, following)
    } else {
      val hash = prefixHash(address)
      if (following != 0) heads.replace(hash, address, following) else heads.delete(hash, address)
    }
    if (following != 0) setPrevious(following, previous)
  }

  /** A record of a chain moved; it is at both addresses, with its old links or none. */
  def moved(from: Int, to: Int): Unit = {
    val old = links(from)
    val previous = (old >>> 32).toInt
    val following = old.toInt
    setLinks(to, previous, following)
    if (previous != 0) setNext(previous, to) else heads.replace(prefixHash(to), from, to)
    if (following != 0) setPrevious(following, to)
  }

  private def prefixHash(address: Int): Int = {
    table.point(address, cursor)
    val prefix = access.prefixOf(cursor.keyBase, cursor.keyOffset, cursor.keyLength)
    Bytes.hash(prefix.base, prefix.offset, prefix.length)
  }

  private def linkOffset(page: Array[Byte], address: Int): Long = {
    val offset = RecordPages.offset(address)
    offset + (TableRecord.headWords(Platform.getLong(page, offset)) << 3)
  }

  private def links(address: Int): Long = {
    val page = table.pages.page(address)
    Platform.getLong(page, linkOffset(page, address))
  }

  private def setLinks(address: Int, previous: Int, following: Int): Unit = {
    val page = table.pages.writable(address)
    Platform.putLong(page, linkOffset(page, address), (previous.toLong << 32) | (following & 0xFFFFFFFFL))
  }

  private def setNext(address: Int, following: Int): Unit =
    setLinks(address, (links(address) >>> 32).toInt, following)

  private def setPrevious(address: Int, previous: Int): Unit = setLinks(address, previous, next(address))
}
