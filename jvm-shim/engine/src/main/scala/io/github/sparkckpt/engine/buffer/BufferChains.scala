// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.buffer

import java.util.Arrays

import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor}
import io.github.sparkckpt.engine.table.{HashIndex, KeyAccess}

import org.apache.spark.unsafe.Platform

/**
 * New keys of a write buffer by prefix. Entries are only added, so iterators can follow a chain while the batch
 * continues.
 */
private[engine] final class BufferChains(buffer: WriteBuffer, initial: KeyAccess.Prefix) {
  private var heads = new HashIndex(0)
  private var following = new Array[Int](8)
  private val cursor = new EntryCursor
  private var access = initial
  private var scratch = new Array[Byte](64)

  def bytes: Long = heads.bytes + following.length * 4L

  def adopt(other: KeyAccess.Prefix): Unit = access = other

  def reset(): Unit = {
    heads = new HashIndex(0)
    following = new Array[Int](8)
  }

  /** Adds a new entry. */
  def link(entry: Int): Unit = {
    if (entry >= following.length) {
      following = Arrays.copyOf(following, math.max(entry + 1, following.length * 2))
    }
    buffer.pointKey(entry, cursor)
    val prefix = access.prefixOf(cursor.keyBase, cursor.keyOffset, cursor.keyLength)
    val size = prefix.length
    if (size > scratch.length) scratch = new Array[Byte](size * 2)
    val start = Platform.BYTE_ARRAY_OFFSET
    Bytes.copy(prefix.base, prefix.offset, scratch, start, size)
    val hash = Bytes.hash(scratch, start, size)
    val first = head(hash, scratch, start, size)
    if (first < 0) {
      following(entry) = 0
      heads.insert(hash, entry + 1)
    } else {
      following(entry) = following(first)
      following(first) = entry + 1
    }
  }

  /** The first entry with this prefix, -1 if there is none. */
  def head(hash: Int, prefixBase: AnyRef, prefixOffset: Long, prefixLength: Int): Int = {
    val slots = heads.part(hash)
    var i = HashIndex.home(hash, slots)
    var found = 0
    while (found == 0 && slots(i) != 0L) {
      if ((slots(i) >>> 32).toInt == hash) {
        buffer.pointKey(slots(i).toInt - 1, cursor)
        val prefix = access.prefixOf(cursor.keyBase, cursor.keyOffset, cursor.keyLength)
        if (Bytes.isEqual(prefix, prefixBase, prefixOffset, prefixLength)) {
          found = slots(i).toInt
        }
      }
      i = HashIndex.after(i, slots)
    }
    found - 1
  }

  /** The entry after one in its chain, -1 at the end. */
  def next(entry: Int): Int = following(entry) - 1
}
