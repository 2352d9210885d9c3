// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

/**
 * A cursor over keys and values that points into the pages and copies nothing.
 *
 * It returns the entries present at its creation, as an iterator of RocksDB does. Puts, appends and removes between two
 * calls of `advance`, even of the current key, do not change that.
 *
 * The current bytes stay unchanged until the next `advance` of this iterator, regardless of puts and removes. After the
 * end of the batch by `discard`, `fold` or another `openForWrite`, `advance` throws `IllegalStateException`.
 */
abstract class EntryIterator {

  /** Moves to the next entry; false at the end, also when repeated. */
  def advance(): Boolean

  /**
   * Ends the iteration, as its last entry does: until then the batch keeps the replaced values that this iterator still
   * has to return. Idempotent.
   */
  def close(): Unit

  def keyBase: AnyRef
  def keyOffset: Long

  /** Length of the key in bytes. */
  def keyLength: Int

  def valueBase: AnyRef
  def valueOffset: Long

  /** Length of the value in bytes. The value of a multi-value family is read with [[ListCursor]]. */
  def valueLength: Int
}
