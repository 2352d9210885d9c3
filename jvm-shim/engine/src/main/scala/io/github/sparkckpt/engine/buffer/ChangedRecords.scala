// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.buffer

import java.util.Arrays

import io.github.sparkckpt.engine.pages.RecordPages

/**
 * The records of a table that a batch has changed, in the order of a walk over the table. So a walk finds the changes
 * by one comparison per record, instead of a lookup of each key in the write buffer.
 *
 * Not for records with pages of their own: see [[RecordPages.isOwn]].
 *
 * @param limit number of entries of the buffer that count
 */
private[engine] final class ChangedRecords(buffer: WriteBuffer, limit: Int) {
  import ChangedRecords._

  // The address above the entry, ascending.
  private val changes = sorted()
  private var next = 0
  private var nextAddress = addressOf(changes, 0)

  /** The entry of the record at an address, -1 if there is none. Addresses must ascend from call to call. */
  def entry(address: Int): Int = {
    val wanted = address & AddressMask
    while (nextAddress < wanted) skip()
    if (nextAddress == wanted) (changes(next) & EntryMask).toInt else -1
  }

  private def skip(): Unit = {
    next += 1
    nextAddress = addressOf(changes, next)
  }

  private def sorted(): Array[Long] = {
    var found = new Array[Long](math.min(limit, 64))
    var n = 0
    var entry = 0
    while (entry < limit) {
      val address = buffer.tableAddress(entry)
      if (WriteBuffer.isExisting(address) && !RecordPages.isOwn(address)) {
        if (n == found.length) found = Arrays.copyOf(found, math.min(limit, n * 2))
        found(n) = ((address & AddressMask) << EntryBits) | entry
        n += 1
      }
      entry += 1
    }
    Arrays.sort(found, 0, n)
    Arrays.copyOf(found, n)
  }
}

private[engine] object ChangedRecords {
  private final val EntryBits = 31
  private final val EntryMask = (1L << EntryBits) - 1
  private final val AddressMask = 0xFFFFFFFFL

  private def addressOf(changes: Array[Long], i: Int): Long =
    if (i < changes.length) changes(i) >>> EntryBits else Long.MaxValue
}
