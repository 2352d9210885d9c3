// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

/**
 * A column family in the open batch: reads the batch's changes so far, and writes to it.
 *
 * Not thread-safe: the task with the open batch uses it. Keys and values are copied; they may point anywhere, even at
 * results of this table. Key lengths are multiples of 8, as in `UnsafeRow`.
 *
 * Every writing method throws `IllegalStateException` without an open batch, and [[TableRetiredException]] if another
 * batch has replaced the table.
 */
trait KeyedTable extends TableReader {

  /** Puts a value. In a multi-value family the value is an encoded list, see [[ListCursor]]. */
  def put(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit

  /** Removes a key; true if it existed. */
  def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean

  /** Appends one row to the list of a key in a multi-value family; creates the list for a new key. */
  def append(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      rowBase: AnyRef,
      rowOffset: Long,
      rowLength: Int): Unit

  /**
   * Begins a list in scratch space, for [[addToList]] and then [[putList]] or [[appendList]].
   *
   * @throws UnsupportedOperationException if the family has one value per key
   */
  def startList(): Unit

  /** Adds a row to the begun list. */
  def addToList(rowBase: AnyRef, rowOffset: Long, rowLength: Int): Unit

  /** Puts the begun list as the value of a key. */
  def putList(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit

  /** Appends the begun list to that of a key. */
  def appendList(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit

  /** Removes the entries of a range scan; returns their number. */
  def removeRange(start: Array[Byte], end: Array[Byte]): Long
}
