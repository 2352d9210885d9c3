// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.buffer

import java.util.Arrays

/**
 * Versions of the entries of a [[WriteBuffer]] for open iterators: an entry that changes keeps the address of its
 * previous value if an open iterator sees that.
 *
 * Iterators are numbered from 1 in the order of opening. A value is marked with the number of iterators opened before
 * it, so an iterator sees the newest value with a mark below its own number. Marks are set only while an iterator is
 * open: for later iterators a lower mark means the same.
 */
private[engine] final class EntryVersions {
  import EntryVersions._

  private var opened = 0
  private var newest: OpenIterator = _

  // By entry: mark of the present value, and position of the previous one in `older` (0: none).
  private var marks = new Array[Int](8)
  private var before = new Array[Int](8)

  // Three numbers per replaced value: its address, its mark, and the position of the previous one.
  private var older = new Array[Int](24)
  private var used = 3

  /** Bytes of memory. */
  def bytes: Long = marks.length * 8L + older.length * 4L

  /** Opens an iterator. */
  def open(): OpenIterator = {
    opened += 1
    val iterator = new OpenIterator(opened, newest)
    if (newest != null) newest.newer = iterator
    newest = iterator
    iterator
  }

  /** Closes an iterator; once only. */
  def close(iterator: OpenIterator): Unit = {
    if (iterator.older != null) iterator.older.newer = iterator.newer
    if (iterator.newer != null) iterator.newer.older = iterator.older else newest = iterator.older
  }

  /** Adds a new entry, which no open iterator sees. */
  def added(entry: Int): Unit = if (newest != null) mark(entry)

  /** True if an open iterator sees the present value of an entry. */
  def isSeen(entry: Int): Boolean = newest != null && newest.number > markOf(entry)

  /** The present value of an entry (0 if none), which an open iterator sees, is about to be replaced. */
  def replaced(entry: Int, address: Int): Unit = {
    if (used == older.length) older = Arrays.copyOf(older, used * 2)
    older(used) = address
    older(used + 1) = markOf(entry)
    mark(entry)
    older(used + 2) = before(entry)
    before(entry) = used
    used += 3
  }

  /**
   * Address of the value that an open iterator sees of an entry, 0 if none.
   *
   * @param entry entry that existed when the iterator was opened
   * @param present address of the entry's present value
   */
  def addressFor(iterator: OpenIterator, entry: Int, present: Int): Int = {
    if (markOf(entry) < iterator.number) {
      present
    } else {
      var at = before(entry)
      while (older(at + 1) >= iterator.number) at = older(at + 2)
      older(at)
    }
  }

  private def markOf(entry: Int): Int = if (entry < marks.length) marks(entry) else 0

  private def mark(entry: Int): Unit = {
    if (entry >= marks.length) {
      val length = math.max(entry + 1, marks.length * 2)
      marks = Arrays.copyOf(marks, length)
      before = Arrays.copyOf(before, length)
    }
    marks(entry) = opened
  }
}

private[engine] object EntryVersions {

  /** Open iterator, in the order of opening. */
  final class OpenIterator(val number: Int, var older: OpenIterator) {
    var newer: OpenIterator = _
  }
}
