// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor, ListCursor}
import io.github.sparkckpt.engine.pages.{LocalRecords, LocalTier, RecordOwner, RecordPages, RecordSpace, TableRecord}
import io.github.sparkckpt.engine.segment.SegmentTarget

import org.apache.spark.unsafe.Platform

/**
 * A hash table from key bytes to value bytes, for the folded state of one column family.
 *
 * Records lie in pages (see [[TableRecord]], [[RecordPages]]), a [[HashIndex]] finds them. A record's address stays the
 * same until the table is changed. The memory of removed records is reused for records of the same size;
 * [[RecordSpace.compact]] reclaims the rest.
 *
 * With a [[LocalTier]], pages may be evicted to a local disk, between [[beginChanges]] and [[endChanges]]: see
 * [[PageEviction]]. A record there is read into an array of its own, at most once between two changes of the table if
 * memory allows. It is never changed: a new value goes to another record.
 *
 * Not thread-safe; only [[snapshot]]s may be read by another thread while the table changes.
 *
 * @param access access to records apart from the whole key
 * @param expected expected number of keys of a load
 * @param tier local disk below the memory; null if there is none
 */
private[engine] final class StateTable(val access: KeyAccess, expected: Long, tier: LocalTier = null)
    extends RecordOwner
    with SegmentTarget {
  private val chains = access match {
    case prefix: KeyAccess.Prefix => new PrefixChains(this, prefix)
    case _ => null
  }
  private val order = access match {
    case _: KeyAccess.Ordered => new OrderedIndex
    case _ => null
  }

  /** Words of each record for its place in a prefix chain. */
  override val linkWords: Int = if (chains == null) 0 else 1

  private[engine] var index = new HashIndex(0)
  private val space = new RecordSpace(this, tier)
  private[engine] val pages: RecordPages = space.pages
  private val eviction = space.eviction

  // Null without a tier.
  private val recordsRead =
    if (tier == null) null else new LocalRecords(() =>
      math.max(StateTable.MinRecordsRead, tier.limit / 16 / math.max(1, tier.budget.accounts)))
  private val cursor = new EntryCursor

  /** The load that is running, if any. */
  private[engine] val load: TableLoad = new TableLoad(this, expected)
  private var keys = 0L
  private var rawSize = 0L

  /** Changes before each change of the table: invalidates earlier views and iterators. */
  private[engine] var generation: Int = 0

  // Equal functions of a later batch may replace these.
  private var encoder: KeyAccess.Ordered = access match {
    case ordered: KeyAccess.Ordered => ordered
    case _ => null
  }

  /** Rows that are still in the segments of a restore; null if none are. */
  @volatile private[engine] var cold: ColdRows = _

  /** Number of keys. */
  def count: Long = {
    val rest = cold
    if (rest == null) keys else rest.rows
  }

  /** Number of keys that are loaded. */
  private[engine] def storedKeys: Long = keys

  /** Bytes of all keys and values. */
  def rawBytes: Long = rawSize

  /** Bytes of memory, with what snapshots keep beside the table. */
  override def memoryBytes: Long = pages.bytes + pages.sharedBytes + pages.evictedMemoryBytes + pages.marks.bytes +
    index.bytes + space.bytes + restoreBytes +
    (if (recordsRead == null) 0L else recordsRead.bytes) + load.bytes +
    (if (chains == null) 0L else chains.bytes) + (if (order == null) 0L else order.bytes)

  private def restoreBytes: Long = {
    val rest = cold
    if (rest == null) 0L else rest.memoryBytes
  }

  /** Bytes of evicted pages. */
  def localBytes: Long = pages.localBytes

  override def mayEvict: Boolean = access == KeyAccess.Point

  /** True if pages may be evicted. */
  def evicts: Boolean = eviction != null

  /** True if the record of an address is on an evicted page. */
  def isEvicted(address: Int): Boolean = pages.page(address) == null

  /** True if an error on the local disk may have lost records. */
  def isBroken: Boolean = eviction != null && eviction.isBroken

  /**
   * The table is about to change.
   *
   * @param buffered bytes of memory that the changes take
   * @param changes number of changed records, 0 if unknown
   */
  def beginChanges(buffered: Long, changes: Int = 0): Unit = {
    // The links of a chain are in the records: their pages are copied in any case.
    space.copiesRecords = chains == null && changes > 0 && pages.hasSnapshots &&
      changes < StateTable.MaxCopiedRecords * pages.numbers.toLong
    if (eviction != null) eviction.begin(buffered)
  }

  /** The table has changed. Records that were read from evicted pages are forgotten. */
  def endChanges(): Unit = {
    space.copiesRecords = false
    if (eviction != null) {
      forgetRead()
      eviction.end()
    }
  }

  /** If the table is empty: keys follow that may come several times. */
  def beginDeltas(): Unit = if (keys == 0 && !load.isRunning) index = new HashIndex(expected)

  /** A restore is about to add rows. Tables of other stores keep their memory. */
  def beginLateLoad(): Unit = if (eviction != null) eviction.begin(0, isAlone = true)

  /** Loads what a restore has left. */
  def loadRest(): Unit = {
    val rest = cold
    if (rest != null) rest.loadRest()
  }

  /** Evicts pages if too much memory is used, between two changes. Other threads may read meanwhile. */
  def evict(): Unit = if (eviction != null) {
    val rest = cold
    if (rest == null) eviction.evict() else rest.ifIdle(eviction.evict())
  }

  /** Forgets records that were read from evicted pages. */
  override def forgetRead(): Unit = recordsRead.clear()

  /** Gives up local files. Nothing may be read afterwards, except through snapshots. Idempotent. */
  def close(): Unit = {
    val rest = cold
    if (rest == null) release() else rest.close()
  }

  private[engine] def release(): Unit = if (eviction != null) eviction.close()

  private def evictedRecord(address: Int): Array[Byte] = {
    val generation = recordsRead.generation
    val known = recordsRead.get(address)
    if (known != null) {
      known
    } else {
      val record = pages.localRecord(address, linkWords)
      recordsRead.add(address, record, generation)
      record
    }
  }

  private[engine] def prefixChains: PrefixChains = chains

  private[engine] def orderedIndex: OrderedIndex = order

  /** Takes equal functions of another access. */
  def adopt(other: KeyAccess): Unit = other match {
    case prefix: KeyAccess.Prefix => chains.adopt(prefix)
    case ordered: KeyAccess.Ordered => encoder = ordered
    case KeyAccess.Point =>
  }

  /** Address of the record of a key, 0 if there is none. */
  def find(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int =
    find(index, hash, keyBase, keyOffset, keyLength)

  /** Address of the record of a key by an index of records of this table, 0 if there is none. */
  private[engine] def find(index: HashIndex, hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
    val slots = index.part(hash)
    var i = HashIndex.home(hash, slots)
    var found = 0
    while (found == 0 && slots(i) != 0L) {
      if ((slots(i) >>> 32).toInt == hash && isKey(slots(i).toInt, keyBase, keyOffset, keyLength)) {
        found = slots(i).toInt
      }
      i = HashIndex.after(i, slots)
    }
    found
  }

  private def isKey(address: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    val page = pages.page(address)
    if (page == null) {
      TableRecord.isOf(evictedRecord(address), StateTable.RecordStart, linkWords, keyBase, keyOffset, keyLength)
    } else {
      // Not by a call: this is the hottest place of all.
      val offset = RecordPages.offset(address)
      val header = Platform.getLong(page, offset)
      TableRecord.keyWords(header, page, offset) == (keyLength >>> 3) &&
        Bytes.equalWords(
          page, offset + ((TableRecord.headWords(header) + linkWords) << 3), keyBase, keyOffset, keyLength)
    }
  }

  /** Header of a record, see [[TableRecord]]. */
  def header(address: Int): Long = {
    val page = pages.page(address)
    if (page != null) Platform.getLong(page, RecordPages.offset(address))
    else Platform.getLong(evictedRecord(address), StateTable.RecordStart)
  }

  /** Key group of a record. */
  def keyGroup(address: Int): Int = TableRecord.keyGroup(header(address))

  /** Bytes of the value of a record. */
  def valueLength(address: Int): Int = TableRecord.valueLength(header(address))

  /** Points a cursor at a record. */
  def point(address: Int, cursor: EntryCursor): Unit = {
    val page = pages.page(address)
    if (page != null) TableRecord.point(page, RecordPages.offset(address), linkWords, cursor)
    else TableRecord.point(evictedRecord(address), StateTable.RecordStart, linkWords, cursor)
  }

  /** Adds a new key; returns the address of its record. */
  def insert(
      hash: Int,
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Int = {
    val address = write(keyGroup, keyBase, keyOffset, keyLength, valueBase, valueOffset, valueLength)
    if (load.isRunning) load.add(hash, address) else index.insert(hash, address)
    keys += 1
    rawSize += keyLength.toLong + valueLength
    if (chains != null) {
      chains.link(address)
    } else if (order != null) {
      order.insert(encoder.encode(keyBase, keyOffset, keyLength), address)
    }
    address
  }

  /** Replaces the value of an existing key, in place if it takes the same number of words and no snapshot has it. */
  def update(hash: Int, address: Int, valueBase: AnyRef, valueOffset: Long, valueLength: Int): Unit = {
    val present = pages.page(address)
    val header =
      if (present == null) this.header(address) else Platform.getLong(present, RecordPages.offset(address))
    val oldLength = TableRecord.valueLength(header)
    if (Bytes.words(oldLength) == Bytes.words(valueLength) && present != null && !space.keepsPage(address)) {
      rawSize += valueLength.toLong - oldLength
      if (eviction != null) eviction.touched(address)
      val page = pages.writable(address)
      val offset = RecordPages.offset(address)
      if (oldLength != valueLength) {
        Platform.putInt(page, offset + TableRecord.ValueLengthByte, valueLength)
      }
      val head = TableRecord.headWords(header) + linkWords
      val valueAt = offset + ((head + TableRecord.keyWords(header, page, offset)).toLong << 3)
      Bytes.copy(valueBase, valueOffset, page, valueAt, valueLength)
    } else {
      point(address, cursor)
      replace(hash, address, cursor.keyGroup, cursor.keyBase, cursor.keyOffset, cursor.keyLength, oldLength,
        valueBase, valueOffset, valueLength)
    }
  }

  /**
   * Replaces the value of an existing key with a new record, without reading the old one if that is evicted.
   *
   * @param oldLength bytes of the old value
   */
  def replace(
      hash: Int,
      address: Int,
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      oldLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit = {
    rawSize += valueLength.toLong - oldLength
    val moved = write(keyGroup, keyBase, keyOffset, keyLength, valueBase, valueOffset, valueLength)
    replaceAddress(hash, address, moved)
    space.kill(address, wordsOf(keyLength, oldLength))
  }

  private def wordsOf(keyLength: Int, valueLength: Int): Int = TableRecord.words(keyLength, valueLength) + linkWords

  /** Removes an existing key. */
  def delete(hash: Int, address: Int): Unit = {
    point(address, cursor)
    delete(hash, address, cursor.keyBase, cursor.keyOffset, cursor.keyLength, cursor.valueLength)
  }

  /** Removes an existing key, without reading its record if that is evicted. */
  def delete(
      hash: Int,
      address: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueLength: Int): Unit = {
    indexOfChanges.delete(hash, address)
    keys -= 1
    rawSize -= keyLength.toLong + valueLength
    if (chains != null) {
      chains.unlink(address)
    } else if (order != null) {
      order.delete(encoder.encode(keyBase, keyOffset, keyLength))
    }
    space.kill(address, wordsOf(keyLength, valueLength))
  }

  /** Puts the value of a new or existing key. */
  override def put(
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit = {
    val hash = Bytes.hash(keyBase, keyOffset, keyLength)
    val address =
      if (load.isRunning) load.find(hash, keyBase, keyOffset, keyLength) else find(hash, keyBase, keyOffset, keyLength)
    if (address == 0) {
      insert(hash, keyGroup, keyBase, keyOffset, keyLength, valueBase, valueOffset, valueLength)
    } else if (!load.isRunning || load.replaces(address)) {
      update(hash, address, valueBase, valueOffset, valueLength)
    }
  }

  /** Appends rows to the list of a key; false for a new key. */
  override def append(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      rows: Int,
      rowsBase: AnyRef,
      rowsOffset: Long,
      rowsLength: Int): Boolean = {
    if (load.isRunning) throw new IllegalStateException("Lists are not loaded by key group.")
    val hash = Bytes.hash(keyBase, keyOffset, keyLength)
    val address = find(hash, keyBase, keyOffset, keyLength)
    address != 0 && {
      append(hash, address, rows, rowsBase, rowsOffset, rowsLength)
      true
    }
  }

  /**
   * Appends rows to the list of an existing key. A list that has grown gets spare room, so it is copied once per eighth
   * of growth, not each time.
   */
  def append(hash: Int, address: Int, rows: Int, rowsBase: AnyRef, rowsOffset: Long, rowsLength: Int): Unit = {
    point(address, cursor)
    val had = cursor.valueLength
    RecordPages.checkRecordBytes(cursor.keyLength.toLong + had + rowsLength)
    rawSize += rowsLength
    val evicted = isEvicted(address)
    val from = cursor.keyBase
    val fromOffset = if (evicted) StateTable.RecordStart else RecordPages.offset(address)
    val valueAt = cursor.valueOffset - fromOffset
    val words = ((valueAt + 7 + had + rowsLength) >>> 3).toInt
    val oldWords = ((valueAt + 7 + had) >>> 3).toInt
    if (!evicted && !space.keepsPage(address) && hasRoom(address, oldWords, words)) {
      if (eviction != null) eviction.touched(address)
      extendList(pages.writable(address), fromOffset, valueAt, had, rows, rowsBase, rowsOffset, rowsLength)
    } else {
      val moved =
        if (words > RecordPages.OwnPageWords) space.allocateWithRoom(words) else space.allocateWithSpare(words)
      val to = space.pageOfNew(moved)
      val toOffset = RecordPages.offset(moved)
      Platform.copyMemory(from, fromOffset, to, toOffset, valueAt + had)
      extendList(to, toOffset, valueAt, had, rows, rowsBase, rowsOffset, rowsLength)
      replaceAddress(hash, address, moved)
      space.kill(address, oldWords)
    }
  }

  /** True if a record in memory can grow where it is, which reserves the room. */
  private def hasRoom(address: Int, oldWords: Int, words: Int): Boolean =
    if (RecordPages.isOwn(address)) words <= (pages.page(address).length >>> 3)
    else words == oldWords || space.takeSpare(address, oldWords, words - oldWords)

  /** Appends rows to the list of a record with spare room. */
  private def extendList(
      page: Array[Byte],
      offset: Long,
      valueAt: Long,
      had: Int,
      rows: Int,
      rowsBase: AnyRef,
      rowsOffset: Long,
      rowsLength: Int): Unit = {
    val list = offset + valueAt
    ListCursor.putInt(page, list, ListCursor.getInt(page, list) + rows)
    Platform.copyMemory(rowsBase, rowsOffset, page, list + had, rowsLength)
    Platform.putInt(page, offset + TableRecord.ValueLengthByte, had + rowsLength)
  }

  /** Removes a key, if present. */
  override def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    val hash = Bytes.hash(keyBase, keyOffset, keyLength)
    if (load.isRunning) {
      load.remove(hash, keyBase, keyOffset, keyLength)
    } else {
      val address = find(hash, keyBase, keyOffset, keyLength)
      if (address != 0) delete(hash, address)
    }
  }

  /** Reclaims memory where many records are dead; a bounded amount of work unless `all`. */
  def compact(all: Boolean): Unit = space.compact(all)

  /** A consistent view of all records. */
  def snapshot(): TableSnapshot = new TableSnapshot(space.share(), linkWords, keys, rawSize)

  /** A table with the same records and another access. */
  def rebuilt(other: KeyAccess): StateTable = {
    val table = new StateTable(other, keys, tier)
    table.beginChanges(0)
    table.load.begin()
    val walk = pages.walk(linkWords)
    var address = walk.next()
    while (address != 0) {
      walk.point(cursor)
      table.insert(
        Bytes.hash(cursor.keyBase, cursor.keyOffset, cursor.keyLength),
        cursor.keyGroup,
        cursor.keyBase,
        cursor.keyOffset,
        cursor.keyLength,
        cursor.valueBase,
        cursor.valueOffset,
        cursor.valueLength)
      address = walk.next()
    }
    table.load.end()
    table.endChanges()
    table
  }

  /** Moves a live record to another place, so that its page can be freed. */
  override def relocate(
      address: Int, from: Array[Byte], fromOffset: Long, moved: Int, words: Int): Unit = {
    TableRecord.point(from, fromOffset, linkWords, cursor)
    val hash = Bytes.hash(cursor.keyBase, cursor.keyOffset, cursor.keyLength)
    val to = space.pageOfNew(moved)
    Platform.copyMemory(from, fromOffset, to, RecordPages.offset(moved), words.toLong << 3)
    replaceAddress(hash, address, moved)
  }

  /** The index of the keys that may change now. */
  private def indexOfChanges: HashIndex = {
    val changed = load.changed
    if (changed == null) index else changed
  }

  private def replaceAddress(hash: Int, address: Int, moved: Int): Unit = {
    if (load.changed == null) load.end()
    indexOfChanges.replace(hash, address, moved)
    if (chains != null) {
      chains.moved(address, moved)
    } else if (order != null) {
      point(moved, cursor)
      order.replace(encoder.encode(cursor.keyBase, cursor.keyOffset, cursor.keyLength), moved)
    }
  }

  private def write(
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Int = {
    RecordPages.checkRecordBytes(keyLength.toLong + valueLength)
    val keyWords = keyLength >>> 3
    val header = TableRecord.header(valueLength, keyWords, keyGroup)
    val head = TableRecord.headWords(header) + linkWords
    val address = space.allocate(head + keyWords + Bytes.words(valueLength))
    val page = space.pageOfNew(address)
    val offset = RecordPages.offset(address)
    Platform.putLong(page, offset, header)
    if (keyWords >= TableRecord.LongKey) Platform.putLong(page, offset + 8, keyWords)
    val keyAt = offset + (head << 3)
    if (linkWords == 1) Platform.putLong(page, keyAt - 8, 0L)
    Bytes.copy(keyBase, keyOffset, page, keyAt, keyLength)
    Bytes.copy(valueBase, valueOffset, page, keyAt + keyLength, valueLength)
    address
  }
}

private[engine] object StateTable {

  /** Offset of a record in an array of its own. */
  val RecordStart: Long = Platform.BYTE_ARRAY_OFFSET.toLong

  /**
   * Most changes per page with which records are copied, not the pages that snapshots share. From some 30 changes per
   * page on, a moved record takes longer than its share of a copied page; and it leaves a place that may stay unused.
   */
  final val MaxCopiedRecords = 8

  /** Least memory for records that were read from evicted pages, in bytes. */
  final val MinRecordsRead = 1L << 20
}
