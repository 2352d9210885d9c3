package org.apache.spark.sql.ckpt.backend

import org.apache.spark.unsafe.Platform

/**
 * Reads one column family at one version.
 *
 * Not thread-safe. What `get` points at stays valid until the next `get` of the same reader: puts and
 * removes do not disturb it. After the batch ended (`discard`, `fold`, `openForWrite`) a reader must not
 * be used.
 */
abstract class FamilyReader {

  /** The folded state. */
  private[backend] def table: StateTable

  /** What lies on top of it, null if nothing does. */
  private[backend] def buffer: WriteBuffer

  /** The family, which knows when iterators have become invalid. */
  private[backend] def owner: KeyedFamily

  private val cursor = new EntryCursor
  private[backend] var foundBase: AnyRef = _
  private[backend] var foundOffset = 0L
  private[backend] var foundLength = 0

  /** Name of the column family. */
  def name: String = owner.spec.name

  /** Number of keys. */
  def rowCount: Long = table.count + (if (buffer == null) 0L else buffer.growth)

  def valueBase: AnyRef = foundBase

  def valueOffset: Long = foundOffset

  /** Length of the value in bytes. The value of a multi-value family is read with [[ListCursor]]. */
  def valueLength: Int = foundLength

  /** Looks a key up. If it is there, the `value` fields point at its value. */
  def get(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    checkRead(keyLength)
    val hash = Bytes.hash(keyBase, keyOffset, keyLength)
    val b = buffer
    val entry = if (b == null || b.count == 0) -1 else b.find(hash, keyBase, keyOffset, keyLength)
    if (entry >= 0) {
      b.isLive(entry) && {
        b.pointValue(entry, cursor)
        keepFound(b, entry)
        found()
      }
    } else {
      val address = table.find(hash, keyBase, keyOffset, keyLength)
      address != 0 && {
        table.point(address, cursor)
        found()
      }
    }
  }

  /** Sees to it that the value that `get` returns is not overwritten too early. */
  private[backend] def keepFound(b: WriteBuffer, entry: Int): Unit = b.keep(entry)

  /** Throws if the key cannot be one, or this reader is out of date. */
  private[backend] def checkRead(keyLength: Int): Unit = KeyedFamily.checkKeyLength(keyLength)

  private def found(): Boolean = {
    foundBase = cursor.valueBase
    foundOffset = cursor.valueOffset
    foundLength = cursor.valueLength
    true
  }

  /** Whether a key is there. Leaves the `value` fields alone. */
  def contains(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    checkRead(keyLength)
    val hash = Bytes.hash(keyBase, keyOffset, keyLength)
    val b = buffer
    val entry = if (b == null || b.count == 0) -1 else b.find(hash, keyBase, keyOffset, keyLength)
    if (entry >= 0) b.isLive(entry) else table.find(hash, keyBase, keyOffset, keyLength) != 0
  }

  /** All entries, of a `KeyAccess.Ordered` family in order. */
  def iterator(): EntryIterator = {
    checkRead(0)
    if (table.orderedIndex != null) new OrderedIterator(this, null, null) else new FullIterator(this)
  }

  /**
   * The entries whose prefix has these bytes.
   *
   * In a `KeyAccess.Prefix` family the bytes are those of a prefix row; in a `KeyAccess.Ordered` family
   * the first bytes of the encoded key, and the entries come in order. The bytes are copied.
   *
   * @throws UnsupportedOperationException if the family's access is `Point`
   */
  def prefixScan(prefixBase: AnyRef, prefixOffset: Long, prefixLength: Int): EntryIterator = {
    checkRead(0)
    if (table.prefixChains != null) {
      new PrefixIterator(this, prefixBase, prefixOffset, prefixLength)
    } else if (table.orderedIndex != null) {
      val start = new Array[Byte](prefixLength)
      Bytes.copy(prefixBase, prefixOffset, start, Platform.BYTE_ARRAY_OFFSET, prefixLength)
      new OrderedIterator(this, start, OrderedIterator.afterPrefix(start))
    } else {
      throw new UnsupportedOperationException(s"Column family $name has no prefix scan.")
    }
  }

  /**
   * The entries of a `KeyAccess.Ordered` family from `start` (included) until `end` (excluded), in order.
   *
   * @param start encoded key, null for the first
   * @param end encoded key, null for no end
   * @throws UnsupportedOperationException if the family's access is another
   */
  def rangeScan(start: Array[Byte], end: Array[Byte]): EntryIterator = {
    checkRead(0)
    if (table.orderedIndex == null) {
      throw new UnsupportedOperationException(s"Column family $name has no range scan.")
    }
    new OrderedIterator(this, start, end)
  }
}
