// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.util.Arrays

import io.github.sparkckpt.engine.buffer.{ChangedRecords, WriteBuffer}
import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor}
import io.github.sparkckpt.engine.pages.{RecordPages, RecordWalk}
import io.github.sparkckpt.engine.table.StateTable

import org.apache.spark.unsafe.Platform

/** Base of iterators over a table and the buffer on top of it: they show both as of their creation. */
private[engine] abstract class LayeredIterator(reader: HashMapReader) extends EntryIterator {
  protected val table: StateTable = reader.table
  protected val buffer: WriteBuffer = reader.buffer
  private val owner = reader.owner
  private val epoch = owner.epoch
  private val generation = table.generation
  private val cursor = new EntryCursor
  private var ended = false

  /** Entries from here on are newer than this iterator. */
  protected val entryLimit: Int = if (buffer == null) 0 else buffer.count

  // Null if the buffer has nothing visible.
  private val versions = if (entryLimit == 0) null else buffer.openVersions()
  private val opened = if (entryLimit == 0) null else versions.open()

  override def keyBase: AnyRef = cursor.keyBase
  override def keyOffset: Long = cursor.keyOffset
  override def keyLength: Int = cursor.keyLength
  override def valueBase: AnyRef = cursor.valueBase
  override def valueOffset: Long = cursor.valueOffset
  override def valueLength: Int = cursor.valueLength

  override def close(): Unit = {
    if (!ended && opened != null) versions.close(opened)
    ended = true
  }

  override def advance(): Boolean = {
    if (table.generation != generation || (buffer != null && owner.epoch != epoch)) {
      throw new IllegalStateException("The batch of this iterator has ended.")
    }
    val more = !ended && move()
    if (!more) close()
    more
  }

  /** Moves to the next visible entry; false at the end. */
  protected def move(): Boolean

  /** Points at a record of the table as the batch had left it; false if the batch had removed it. */
  protected def takeRecord(address: Int): Boolean = {
    table.point(address, cursor)
    takePointed(address)
  }

  /** The same for a record that a walk has come to. */
  protected def takeRecord(address: Int, walk: RecordWalk, changed: ChangedRecords): Boolean = {
    walk.point(cursor)
    if (entryLimit == 0 || RecordPages.isOwn(address)) takePointed(address) else takeChange(changed.entry(address))
  }

  private def takePointed(address: Int): Boolean =
    entryLimit == 0 || {
      val hash = Bytes.hash(cursor.keyBase, cursor.keyOffset, cursor.keyLength)
      takeChange(buffer.findExisting(hash, address))
    }

  private def takeChange(entry: Int): Boolean =
    entry < 0 || entry >= entryLimit || buffer.pointValueFor(opened, entry, cursor)

  /** Points at a new key of the buffer; false if it was removed again, or is newer than this iterator. */
  protected def takeEntry(entry: Int): Boolean = {
    entry < entryLimit && !WriteBuffer.isExisting(buffer.tableAddress(entry)) && {
      buffer.pointKey(entry, cursor)
      buffer.pointValueFor(opened, entry, cursor)
    }
  }
}

/** All entries: the table's in the order of memory, then the new ones. */
private[engine] final class FullIterator(reader: HashMapReader) extends LayeredIterator(reader) {
  private val walk = table.pages.walk(table.linkWords)
  private val changed = if (entryLimit == 0) null else new ChangedRecords(buffer, entryLimit)
  private var inTable = true
  private var entry = 0

  override protected def move(): Boolean = {
    var taken = false
    while (!taken && inTable) {
      val address = walk.next()
      if (address == 0) inTable = false else taken = takeRecord(address, walk, changed)
    }
    while (!taken && entry < entryLimit) {
      taken = takeEntry(entry)
      entry += 1
    }
    taken
  }
}

/** The entries of one prefix: the table's chain, then the new ones. */
private[engine] final class PrefixIterator(
    reader: HashMapReader,
    prefixBase: AnyRef,
    prefixOffset: Long,
    prefixLength: Int)
  extends LayeredIterator(reader) {

  // Copied, because the prefix may be a reused row of the family's own function.
  private val prefix = new Array[Byte](prefixLength)
  private val prefixAt = Platform.BYTE_ARRAY_OFFSET
  Bytes.copy(prefixBase, prefixOffset, prefix, prefixAt, prefixLength)

  private val hash = Bytes.hash(prefix, prefixAt, prefixLength)
  private var record = table.prefixChains.head(hash, prefix, prefixAt, prefixLength)
  private var entry =
    if (entryLimit == 0) -1 else buffer.prefixChains.head(hash, prefix, prefixAt, prefixLength)

  override protected def move(): Boolean = {
    var taken = false
    while (!taken && record != 0) {
      taken = takeRecord(record)
      record = table.prefixChains.next(record)
    }
    while (!taken && entry >= 0) {
      taken = takeEntry(entry)
      entry = buffer.prefixChains.next(entry)
    }
    taken
  }
}

/** The entries of a range in order: the table's order and that of the new ones, merged. */
private[engine] final class OrderedIterator(reader: HashMapReader, start: Array[Byte], end: Array[Byte])
  extends LayeredIterator(reader) {

  private val records = table.orderedIndex.cursor(start)
  private val entries = if (entryLimit == 0) null else buffer.orderedIndex.cursor(start)

  override protected def move(): Boolean = {
    var taken = false
    var more = true
    while (!taken && more) {
      val record = inRange(records.peek)
      val entry = if (entries == null) null else inRange(entries.peek)
      if (record != null && (entry == null || Arrays.compareUnsigned(record, entry) < 0)) {
        taken = takeRecord(records.value)
        records.take()
      } else if (entry != null) {
        taken = takeEntry(entries.value - 1)
        entries.take()
      } else {
        more = false
      }
    }
    taken
  }

  private def inRange(key: Array[Byte]): Array[Byte] =
    if (key == null || end == null || Arrays.compareUnsigned(key, end) < 0) key else null
}

private[engine] object OrderedIterator {

  /** The first key above all with a prefix, null if there is none. */
  def afterPrefix(prefix: Array[Byte]): Array[Byte] = {
    var last = prefix.length - 1
    while (last >= 0 && prefix(last) == -1) last -= 1
    if (last < 0) {
      null
    } else {
      val next = Arrays.copyOf(prefix, last + 1)
      next(last) = (next(last) + 1).toByte
      next
    }
  }
}
