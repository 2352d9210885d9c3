// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import io.github.sparkckpt.engine.bytes.Bytes
import io.github.sparkckpt.engine.pages.RecordPages

import org.apache.spark.unsafe.Platform

/** A set of keys, in pages: an object for each key would take several times its bytes. Not thread-safe. */
private[engine] final class KeySet {
  private val pages = new RecordPages
  private val index = new HashIndex(0)
  private var count = 0L

  def nonEmpty: Boolean = count > 0

  /** Bytes of memory. */
  def memoryBytes: Long = pages.bytes + index.bytes

  def contains(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean =
    count > 0 && find(hash, keyBase, keyOffset, keyLength) != 0

  /** Adds a key, unless it is there. */
  def add(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit =
    if (find(hash, keyBase, keyOffset, keyLength) == 0) {
      val address = pages.allocate(1 + (keyLength >>> 3))
      val page = pages.page(address)
      val offset = RecordPages.offset(address)
      Platform.putLong(page, offset, keyLength)
      Bytes.copy(keyBase, keyOffset, page, offset + 8, keyLength)
      index.insert(hash, address)
      count += 1
    }

  /** Removes a key, if it is there; its place stays unused. */
  def remove(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = if (count > 0) {
    val address = find(hash, keyBase, keyOffset, keyLength)
    if (address != 0) {
      index.delete(hash, address)
      count -= 1
    }
  }

  private def find(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
    val slots = index.part(hash)
    var i = HashIndex.home(hash, slots)
    var found = 0
    while (found == 0 && slots(i) != 0L) {
      if ((slots(i) >>> 32).toInt == hash && isKey(slots(i).toInt, keyBase, keyOffset, keyLength)) {
        found = slots(i).toInt
      }
      i = HashIndex.after(i, slots)
    }
    found
  }

  private def isKey(address: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    val page = pages.page(address)
    val offset = RecordPages.offset(address)
    Platform.getLong(page, offset).toInt == keyLength &&
      Bytes.equalWords(page, offset + 8, keyBase, keyOffset, keyLength)
  }
}
