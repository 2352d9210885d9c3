// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import io.github.sparkckpt.engine.buffer.WriteBuffer
import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor}
import io.github.sparkckpt.engine.table.{LookupQueue, StateTable}

import org.apache.spark.unsafe.Platform

/** Reader of a table and the write buffer on top of it. */
private[engine] abstract class HashMapReader extends TableReader {

  /** The folded state. */
  private[engine] def table: StateTable

  /** Changes on top of the table, null if there are none. */
  private[engine] def buffer: WriteBuffer

  /** The family, which tracks the validity of iterators. */
  private[engine] def owner: HashMapTable

  /** Lookups in the table, for later writes; null if this reader keeps none. */
  private[engine] def lookups: LookupQueue

  private val cursor = new EntryCursor
  private[engine] var foundBase: AnyRef = _
  private[engine] var foundOffset = 0L
  private[engine] var foundLength = 0

  override def name: String = owner.name

  override def rowCount: Long = table.count + (if (buffer == null) 0L else buffer.growth)

  override def valueBase: AnyRef = foundBase

  override def valueOffset: Long = foundOffset

  override def valueLength: Int = foundLength

  override def get(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
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
      val cold = table.cold
      if (cold == null) {
        getFromTable(hash, keyBase, keyOffset, keyLength)
      } else {
        cold.enter(keyBase, keyOffset, keyLength)
        try getFromTable(hash, keyBase, keyOffset, keyLength) finally cold.leave()
      }
    }
  }

  private def getFromTable(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    val address = lookUp(hash, keyBase, keyOffset, keyLength)
    address != 0 && {
      table.point(address, cursor)
      found()
    }
  }

  /** Protects the value of `get` from being overwritten too early. */
  private[engine] def keepFound(b: WriteBuffer, entry: Int): Unit = b.keep(entry)

  /** Throws if the key is invalid, or this reader is out of date. */
  private[engine] def checkRead(keyLength: Int): Unit = HashMapTable.checkKeyLength(keyLength)

  private def found(): Boolean = {
    foundBase = cursor.valueBase
    foundOffset = cursor.valueOffset
    foundLength = cursor.valueLength
    true
  }

  override def contains(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    checkRead(keyLength)
    val hash = Bytes.hash(keyBase, keyOffset, keyLength)
    val b = buffer
    val entry = if (b == null || b.count == 0) -1 else b.find(hash, keyBase, keyOffset, keyLength)
    if (entry >= 0) {
      b.isLive(entry)
    } else {
      val cold = table.cold
      if (cold == null) {
        lookUp(hash, keyBase, keyOffset, keyLength) != 0
      } else {
        cold.enter(keyBase, keyOffset, keyLength)
        try lookUp(hash, keyBase, keyOffset, keyLength) != 0 finally cold.leave()
      }
    }
  }

  /** Address of a key in the table, 0 if there is none; kept for a later write. */
  private def lookUp(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
    val address = table.find(hash, keyBase, keyOffset, keyLength)
    val queue = lookups
    if (queue != null) queue.add(hash, address, keyBase, keyOffset, keyLength)
    address
  }

  /** Before a read of entries that no key names. */
  private def checkScan(): Unit = {
    checkRead(0)
    val cold = table.cold
    if (cold != null) cold.loadForReader()
  }

  override def iterator(): EntryIterator = {
    checkScan()
    if (table.orderedIndex != null) new OrderedIterator(this, null, null) else new FullIterator(this)
  }

  override def prefixScan(prefixBase: AnyRef, prefixOffset: Long, prefixLength: Int): EntryIterator = {
    checkScan()
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

  override def rangeScan(start: Array[Byte], end: Array[Byte]): EntryIterator = {
    checkScan()
    if (table.orderedIndex == null) {
      throw new UnsupportedOperationException(s"Column family $name has no range scan.")
    }
    new OrderedIterator(this, start, end)
  }
}
