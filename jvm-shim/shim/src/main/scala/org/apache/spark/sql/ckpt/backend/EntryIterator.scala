package org.apache.spark.sql.ckpt.backend

/**
 * A cursor over keys and values that points into the pages and copies nothing.
 *
 * It gives what was there when it was made, as an iterator of RocksDB does. Puts, appends and removes, also
 * of the current key, may happen between two calls of `advance` and change nothing of that.
 *
 * What the cursor points at stays as it is until the next `advance` of this iterator, whatever is put or
 * removed meanwhile. After the batch has ended by `discard`, `fold` or another `openForWrite`, `advance`
 * throws `IllegalStateException`.
 */
abstract class EntryIterator {

  /** Goes to the next entry; false at the end, again and again. */
  def advance(): Boolean

  /**
   * Ends the iteration, as its last entry does: until then the batch keeps what this iterator is to give of
   * the values that it replaces. Does nothing the second time.
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
