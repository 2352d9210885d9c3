// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.buffer

import java.util.Arrays

import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor, ListCursor}
import io.github.sparkckpt.engine.pages.RecordPages
import io.github.sparkckpt.engine.table.{HashIndex, KeyAccess, OrderedIndex, StateTable}

import org.apache.spark.unsafe.Platform

/**
 * Changes of one batch to one column family.
 *
 * Each changed key has one entry. Entries are numbered from 0 in the order of their first change, until the end of the
 * batch: iterators and the fold go by these numbers. An entry has the address of the table's record for its key (so
 * that the fold need not look it up), and of the records of the key and the current value in the buffer's own pages.
 *
 * A value is overwritten in place only if no reader can see it: not if the last `get` returned it, and never once an
 * iterator has. Otherwise the entry gets a second place, and then alternates between the two while they are free. So a
 * key that is read and put a million times in a batch takes two places. Values that an open iterator still has to
 * return keep their places: see [[EntryVersions]].
 *
 * If a batch appends to a list of the table, the buffer has only the appended rows, as a list of their own: the
 * ''tail''. A read joins the two in the buffer; otherwise the fold does.
 *
 * @param access the access of the family: new keys are kept in its prefix chains or order
 */
private[engine] final class WriteBuffer(access: KeyAccess) {
  import WriteBuffer._

  private var pages = new RecordPages
  private var values = new ValueRecords(pages)
  private val cursor = new EntryCursor
  private var index = new HashIndex(0)
  private var entries = 0
  private var hint = 0

  private var hashes = new Array[Int](8)
  private var tableAddresses = new Array[Int](8)

  // Addresses of the key (upper half) and the value of each entry: a delta reads both, in the order of key groups.
  private var places = new Array[Long](8)
  private var groups = new Array[Short](8)

  // Bytes of the table's values. Null if the table stays in memory.
  private var tableLengths: Array[Int] = _
  private var spares: Array[Int] = _

  // Bytes of the table's list that the batch has appended to: positive if the value begins with them, negative if it is
  // the tail. 0 if the value is another. Null if there are no such lists.
  private var listStarts: Array[Int] = _

  // Has the lists that were appended to.
  private var lists: StateTable = _
  private val listAt = new EntryCursor
  private var lastGet = 0

  // Null until an iterator is opened over entries.
  private var versions: EntryVersions = _

  private var newKeys = 0L
  private var updatedKeys = 0L
  private var removedKeys = 0L
  private var droppedKeys = 0L

  /** New keys by prefix, or in order. */
  private var newByPrefix: BufferChains = _
  private var newInOrder: OrderedIndex = _
  private var encoder: KeyAccess.Ordered = _
  access match {
    case prefix: KeyAccess.Prefix => newByPrefix = new BufferChains(this, prefix)
    case ordered: KeyAccess.Ordered =>
      newInOrder = new OrderedIndex
      encoder = ordered
    case KeyAccess.Point =>
  }

  /** Takes the functions of an access that maps keys in the same way. */
  def adopt(other: KeyAccess): Unit = other match {
    case prefix: KeyAccess.Prefix => newByPrefix.adopt(prefix)
    case ordered: KeyAccess.Ordered => encoder = ordered
    case KeyAccess.Point =>
  }

  /** Number of entries: changed keys, including keys both added and removed in the batch. */
  def count: Int = entries

  /** New keys with a value. */
  def inserted: Long = newKeys

  /** Keys of the table with a new value. */
  def updated: Long = updatedKeys

  /** Removed keys of the table, including those of a dropped family that nothing replaces. */
  def removed: Long = removedKeys + droppedKeys

  /** Change of the number of keys. */
  def growth: Long = newKeys - removedKeys

  /** Bytes of memory, estimated while another thread writes. */
  def memoryBytes: Long = {
    val open = versions
    val perEntry = 18L + Seq(spares, listStarts, tableLengths).count(_ != null) * 4
    pages.bytes + index.bytes + hashes.length * perEntry + (if (open == null) 0L else open.bytes) +
      (if (newByPrefix == null) 0L else newByPrefix.bytes) + (if (newInOrder == null) 0L else newInOrder.bytes)
  }

  def hash(entry: Int): Int = hashes(entry)

  /** Address in the table; 0 if the key is new; see [[WriteBuffer.isExisting]] for others that are none. */
  def tableAddress(entry: Int): Int = tableAddresses(entry)

  /** Notes the bytes of the table's value, so that the fold need not read an evicted record. */
  def noteTableLength(entry: Int, length: Int): Unit = {
    if (tableLengths == null) tableLengths = new Array[Int](hashes.length)
    tableLengths(entry) = length
  }

  /** The noted bytes of the table's value. */
  def tableLength(entry: Int): Int = tableLengths(entry)

  /** True if the entry has a value. */
  def isLive(entry: Int): Boolean = valueAddress(entry) != 0

  /** True if the entry belongs in the delta: not if its key was both added and removed in the batch. */
  def isChange(entry: Int): Boolean = valueAddress(entry) != 0 || tableAddresses(entry) != 0

  /** True if there are entries whose value is the table's list with rows appended. */
  def hasAppends: Boolean = listStarts != null

  /** True if the value of an entry is the table's list with rows appended. */
  def isAppend(entry: Int): Boolean = listStarts != null && listStarts(entry) != 0 && isLive(entry)

  /** True if the entry holds only the rows that are appended to the table's list. */
  def isTail(entry: Int): Boolean = listStarts != null && listStarts(entry) < 0 && isLive(entry)

  def keyGroup(entry: Int): Int = groups(entry)

  private def keyAddress(entry: Int): Int = (places(entry) >>> 32).toInt

  private def valueAddress(entry: Int): Int = places(entry).toInt

  private def setValueAddress(entry: Int, address: Int): Unit =
    places(entry) = (places(entry) & ~0xFFFFFFFFL) | (address & 0xFFFFFFFFL)

  private[engine] def prefixChains: BufferChains = newByPrefix

  private[engine] def orderedIndex: OrderedIndex = newInOrder

  /** The entry of a key, -1 if there is none. */
  def find(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
    val slots = index.part(hash)
    var i = HashIndex.home(hash, slots)
    var found = 0
    while (found == 0 && slots(i) != 0L) {
      if ((slots(i) >>> 32).toInt == hash && isKey(slots(i).toInt - 1, keyBase, keyOffset, keyLength)) {
        found = slots(i).toInt
      }
      i = HashIndex.after(i, slots)
    }
    found - 1
  }

  /** The entry of the key that has this address in the table, -1 if there is none. */
  def findExisting(hash: Int, tableAddress: Int): Int = {
    val slots = index.part(hash)
    var i = HashIndex.home(hash, slots)
    var found = 0
    while (found == 0 && slots(i) != 0L) {
      if ((slots(i) >>> 32).toInt == hash && tableAddresses(slots(i).toInt - 1) == tableAddress) {
        found = slots(i).toInt
      }
      i = HashIndex.after(i, slots)
    }
    found - 1
  }

  private def isKey(entry: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    val page = pages.page(keyAddress(entry))
    val offset = RecordPages.offset(keyAddress(entry))
    Platform.getLong(page, offset).toInt == keyLength &&
      Bytes.equalWords(page, offset + 8, keyBase, keyOffset, keyLength)
  }

  /** Adds an entry for a new key; it stands for a removed key until it gets a value. */
  def add(
      hash: Int,
      tableAddress: Int,
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int): Int = {
    RecordPages.checkRowBytes(keyLength)
    if (entries == 0 && hint > 8) {
      // The size of the last batch predicts the size of this one. Memory is allocated at the first change, because most
      // stores are idle.
      makeArrays(hint)
      index = new HashIndex(hint)
      hint = 0
    }
    if (entries == hashes.length) growEntries()
    val address = pages.allocate(1 + (keyLength >>> 3))
    val page = pages.page(address)
    val offset = RecordPages.offset(address)
    Platform.putLong(page, offset, keyLength)
    Bytes.copy(keyBase, keyOffset, page, offset + 8, keyLength)
    val entry = entries
    hashes(entry) = hash
    tableAddresses(entry) = tableAddress
    places(entry) = address.toLong << 32
    groups(entry) = keyGroup.toShort
    if (spares != null) spares(entry) = 0
    if (listStarts != null) listStarts(entry) = 0
    if (versions != null) versions.added(entry)
    index.insert(hash, entry + 1)
    entries += 1
    if (tableAddress == 0) {
      link(entry, keyBase, keyOffset, keyLength)
    } else if (tableAddress == Dropped) {
      droppedKeys += 1
    } else {
      removedKeys += 1
    }
    entry
  }

  private def link(entry: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    if (newByPrefix != null) {
      newByPrefix.link(entry)
    } else if (newInOrder != null) {
      newInOrder.insert(encoder.encode(keyBase, keyOffset, keyLength), entry + 1)
    }
  }

  /** Gives an entry a value. */
  def put(entry: Int, valueBase: AnyRef, valueOffset: Long, valueLength: Int): Unit = {
    val words = Bytes.words(valueLength)
    saveSeen(entry)
    val old = valueAddress(entry)
    if (listStarts != null) listStarts(entry) = 0
    val spare = if (spares == null) 0 else spares(entry)
    val place = if (canOverwrite(old, words)) old else if (canOverwrite(spare, words)) spare else 0
    if (old != 0 && place != old) setSpare(entry, old)
    if (place == 0) {
      setLive(entry, values.write(words, valueBase, valueOffset, valueLength))
    } else {
      values.overwrite(place, valueBase, valueOffset, valueLength)
      setLive(entry, place)
    }
  }

  /** Removes the value of an entry. */
  def remove(entry: Int): Unit = {
    val old = valueAddress(entry)
    if (old != 0) {
      saveSeen(entry)
      setSpare(entry, old)
      setValueAddress(entry, 0)
      countLive(entry, -1)
    }
  }

  /**
   * Gives a new entry the table's list with rows of another list appended.
   *
   * @param table  which does not change before this buffer is folded into it
   * @param length bytes of the list in the table
   */
  def appendToTable(
      entry: Int,
      table: StateTable,
      length: Int,
      tailBase: AnyRef,
      tailOffset: Long,
      tailLength: Int): Unit = {
    RecordPages.checkRowBytes(length.toLong + tailLength)
    setLive(entry, values.write(Bytes.words(tailLength), tailBase, tailOffset, tailLength))
    lists = table
    if (listStarts == null) listStarts = new Array[Int](hashes.length)
    listStarts(entry) = -length
  }

  /** Appends rows to the list of an entry with one. */
  def append(entry: Int, rows: Int, rowsBase: AnyRef, rowsOffset: Long, rowsLength: Int): Unit = {
    val had = values.length(valueAddress(entry)).toLong
    RecordPages.checkRowBytes(rowsLength + had - (if (isTail(entry)) listStarts(entry) else 0))
    // In place, the list would grow for an open iterator, too.
    if (saveSeen(entry) || !values.append(valueAddress(entry), rows, rowsBase, rowsOffset, rowsLength)) {
      values.point(valueAddress(entry), cursor)
      setLive(entry, values.writeAppended(cursor, rows, rowsBase, rowsOffset, rowsLength))
    }
  }

  /** Joins the table's list and the tail of an entry into one value, if it has only the tail. */
  private def join(entry: Int): Unit = if (isTail(entry)) {
    lists.point(tableAddresses(entry), listAt)
    pointTail(entry, cursor)
    val rows = ListCursor.getInt(cursor.valueBase, cursor.valueOffset)
    setValueAddress(
      entry,
      values.writeAppended(listAt, rows, cursor.valueBase, cursor.valueOffset + 4, cursor.valueLength - 4))
    listStarts(entry) = -listStarts(entry)
  }

  /** Points a cursor at the key of an entry. */
  def pointKey(entry: Int, cursor: EntryCursor): Unit = {
    val page = pages.page(keyAddress(entry))
    val offset = RecordPages.offset(keyAddress(entry))
    cursor.keyBase = page
    cursor.keyOffset = offset + 8
    cursor.keyLength = Platform.getLong(page, offset).toInt
  }

  /** Points a cursor at the tail of an entry that has only this, a list. */
  def pointTail(entry: Int, cursor: EntryCursor): Unit = values.point(valueAddress(entry), cursor)

  /** Points a cursor at the value of an entry; length -1 if it has none. */
  def pointValue(entry: Int, cursor: EntryCursor): Unit = {
    join(entry)
    val address = valueAddress(entry)
    if (address == 0) cursor.valueLength = -1 else values.point(address, cursor)
  }

  /** Points a cursor at an entry's part in the delta: its value, or the appended rows. */
  def pointChange(entry: Int, cursor: EntryCursor): Unit = {
    pointKey(entry, cursor)
    if (isTail(entry)) pointTail(entry, cursor) else pointValue(entry, cursor)
    if (isAppend(entry)) {
      // Of a tail the rows follow the count.
      val start = math.max(listStarts(entry), 4)
      cursor.valueOffset += start
      cursor.valueLength -= start
    }
  }

  /** Protects the value of an entry until the next call. */
  def keepUntilNextGet(entry: Int): Unit = lastGet = valueAddress(entry)

  /** Protects the present value of an entry until the end of the batch. */
  def keep(entry: Int): Unit = values.keep(valueAddress(entry))

  /** Versions for an iterator that is about to be opened. */
  def openVersions(): EntryVersions = {
    if (versions == null) versions = new EntryVersions
    versions
  }

  /**
   * Points a cursor at the value that an older entry had when an iterator was opened; false if it had none.
   * The value stays as it is until the end of the batch.
   */
  def pointValueFor(iterator: EntryVersions.OpenIterator, entry: Int, cursor: EntryCursor): Boolean = {
    val seen = versions.addressFor(iterator, entry, valueAddress(entry))
    val isPresent = seen == valueAddress(entry)
    if (isPresent) join(entry)
    val address = if (isPresent) valueAddress(entry) else seen
    address != 0 && {
      values.point(address, cursor)
      values.keep(address)
      true
    }
  }

  /** Saves the value of an entry that is about to change if an open iterator sees it; true if one does. */
  private def saveSeen(entry: Int): Boolean = versions != null && versions.isSeen(entry) && {
    join(entry)
    val address = valueAddress(entry)
    versions.replaced(entry, address)
    if (address != 0) values.keep(address)
    true
  }

  /** Clears the buffer. */
  def reset(): Unit = {
    if (entries > 0) {
      pages = new RecordPages
      values = new ValueRecords(pages)
      index = new HashIndex(0)
      hint = entries
      makeArrays(8)
      entries = 0
      if (newByPrefix != null) newByPrefix.reset()
      if (newInOrder != null) newInOrder = new OrderedIndex
    }
    versions = null
    lists = null
    lastGet = 0
    newKeys = 0
    updatedKeys = 0
    removedKeys = 0
    droppedKeys = 0
  }

  private def setLive(entry: Int, address: Int): Unit = {
    if (valueAddress(entry) == 0) {
      if (tableAddresses(entry) == Dropped) {
        // Not earlier: the keys of the dropped family may have had another schema.
        val page = pages.page(keyAddress(entry))
        val offset = RecordPages.offset(keyAddress(entry))
        link(entry, page, offset + 8, Platform.getLong(page, offset).toInt)
        tableAddresses(entry) = DroppedAndPut
      }
      countLive(entry, 1)
    }
    setValueAddress(entry, address)
  }

  /** Counts an entry that gained (1) or lost (-1) a value. */
  private def countLive(entry: Int, by: Int): Unit = {
    val table = tableAddresses(entry)
    if (isExisting(table)) {
      updatedKeys += by
      removedKeys -= by
    } else {
      newKeys += by
      if (table == DroppedAndPut) droppedKeys -= by
    }
  }

  private def canOverwrite(address: Int, words: Int): Boolean =
    address != 0 && address != lastGet && values.canOverwrite(address, words)

  private def setSpare(entry: Int, address: Int): Unit = {
    if (spares == null) spares = new Array[Int](hashes.length)
    spares(entry) = address
  }

  private def makeArrays(length: Int): Unit = {
    hashes = new Array[Int](length)
    tableAddresses = new Array[Int](length)
    places = new Array[Long](length)
    groups = new Array[Short](length)
    tableLengths = null
    spares = null
    listStarts = null
  }

  private def growEntries(): Unit = {
    val length = entries * 2
    hashes = Arrays.copyOf(hashes, length)
    tableAddresses = Arrays.copyOf(tableAddresses, length)
    places = Arrays.copyOf(places, length)
    groups = Arrays.copyOf(groups, length)
    if (tableLengths != null) tableLengths = Arrays.copyOf(tableLengths, length)
    if (spares != null) spares = Arrays.copyOf(spares, length)
    if (listStarts != null) listStarts = Arrays.copyOf(listStarts, length)
  }
}

private[engine] object WriteBuffer {

  /** Placeholder for a table address: the key was in a family that this batch dropped. Never a real address. */
  final val Dropped = -1

  /** [[Dropped]], after the batch has put the key again. */
  final val DroppedAndPut = -2

  /** True if the address is one of a record: the table holds the key. */
  def isExisting(tableAddress: Int): Boolean =
    tableAddress != 0 && tableAddress != Dropped && tableAddress != DroppedAndPut
}
