// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

/**
 * Reader of one column family at one version.
 *
 * Not thread-safe. The result of `get` stays valid until the next `get` of the same reader, regardless of puts and
 * removes. After the end of the batch (`discard`, `fold`, `openForWrite`) a reader must not be used. Keys and values
 * are places in memory, as in `Platform`; the backend decides where it keeps records.
 */
trait TableReader {

  /** Name of the column family. */
  def name: String

  /** Number of keys. */
  def rowCount: Long

  def valueBase: AnyRef

  def valueOffset: Long

  /** Length of the value in bytes. The value of a multi-value family is read with [[ListCursor]]. */
  def valueLength: Int

  /** Looks a key up. If found, the `value` fields point at its value. */
  def get(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean

  /** True if a key exists. Leaves the `value` fields unchanged. */
  def contains(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean

  /** All entries, of a `KeyAccess.Ordered` family in order. */
  def iterator(): EntryIterator

  /**
   * The entries whose prefix has these bytes.
   *
   * In a `KeyAccess.Prefix` family the bytes are those of a prefix row; in a `KeyAccess.Ordered` family
   * the first bytes of the encoded key, and the entries come in order. The bytes are copied.
   *
   * @throws UnsupportedOperationException if the family's access is `Point`
   */
  def prefixScan(prefixBase: AnyRef, prefixOffset: Long, prefixLength: Int): EntryIterator

  /**
   * The entries of a `KeyAccess.Ordered` family from `start` (included) until `end` (excluded), in order.
   *
   * @param start encoded key, null for the first
   * @param end encoded key, null for no end
   * @throws UnsupportedOperationException if the family's access is another
   */
  def rangeScan(start: Array[Byte], end: Array[Byte]): EntryIterator
}
