package org.apache.spark.sql.ckpt.backend

/**
 * A cursor over keys and values that points into the pages and copies nothing.
 *
 * Puts and removes, also of the current key, may happen between two calls of `advance`. A key is never
 * given twice; a key that is removed before its turn is skipped; a value put before its turn is given as
 * it is then; a key that was new to the store after the iterator was made is not given, so an iteration
 * always ends.
 *
 * What the cursor points at stays as it is until the next `advance` of this iterator, whatever is put or
 * removed meanwhile. After the batch has ended by `discard`, `fold` or another `openForWrite`, `advance`
 * throws `IllegalStateException`. Iterators hold nothing that has to be closed.
 */
abstract class EntryIterator {

  /** Goes to the next entry; false at the end, again and again. */
  def advance(): Boolean

  def keyBase: AnyRef
  def keyOffset: Long

  /** Length of the key in bytes. */
  def keyLength: Int

  def valueBase: AnyRef
  def valueOffset: Long

  /** Length of the value in bytes. The value of a multi-value family is read with [[ListCursor]]. */
  def valueLength: Int
}
