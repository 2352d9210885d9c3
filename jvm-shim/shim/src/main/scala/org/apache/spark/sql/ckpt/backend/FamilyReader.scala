package org.apache.spark.sql.ckpt.backend

/**
 * Reads one column family at one version.
 *
 * Not thread-safe. What `get` points at stays valid until the next `get` of the same reader: puts and removes do
 * not disturb it. After the batch ended (`discard`, `fold`, `openForWrite`) a reader must not be used.
 */
abstract class FamilyReader {

  /** Name of the column family. */
  def name: String

  /** Looks a key up. If it is there, the `value` fields point at its value. */
  def get(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean

  /** Whether a key is there. Leaves the `value` fields alone. */
  def contains(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean

  def valueBase: AnyRef
  def valueOffset: Long

  /** Length of the value in bytes. The value of a multi-value family is read with [[ListCursor]]. */
  def valueLength: Int

  /** Number of keys. */
  def rowCount: Long

  /** All entries. */
  def iterator(): EntryIterator

  /**
   * The entries whose prefix has these bytes.
   *
   * In a `KeyAccess.Prefix` family the bytes are those of a prefix row; in a `KeyAccess.Ordered` family the first
   * bytes of the encoded key, and the entries come in order.
   */
  def prefixScan(prefixBase: AnyRef, prefixOffset: Long, prefixLength: Int): EntryIterator

  /**
   * The entries of a `KeyAccess.Ordered` family from `start` (included) until `end` (excluded), in order.
   *
   * @param start encoded key, null for the first
   * @param end encoded key, null for no end
   */
  def rangeScan(start: Array[Byte], end: Array[Byte]): EntryIterator
}
