// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import java.util.Arrays

import io.github.sparkckpt.engine.buffer.{ChangeSource, WriteBuffer, WriteLog}
import io.github.sparkckpt.engine.bytes.{Bytes, EntryCursor, ListCursor}
import io.github.sparkckpt.engine.pages.{LocalTier, RecordPages, TableRecord}
import io.github.sparkckpt.engine.restore.{LookupBudget, PendingRestore, StoredSegments, TableRetiredException}
import io.github.sparkckpt.engine.table.{KeyAccess, KeyGroupFunction, LookupQueue, StateTable}

import org.apache.spark.unsafe.Platform

/**
 * Table of a column family, and the write buffer of a batch on top of it. It is retired when its batch ends without a
 * commit: its task may still run, and another table replaces it.
 *
 * @param logsWrites true if the delta records every write, not only the outcome per key
 * @param tier       local disk below the memory; null if there is none
 */
final class HashMapTable private[engine] (
    override val name: String,
    initialKeyGroups: KeyGroupFunction,
    initialAccess: KeyAccess,
    initialMultiValue: Boolean,
    maxParallelism: Int,
    logsWrites: Boolean,
    tier: LocalTier = null)
    extends HashMapReader
    with KeyedTable {
  private var keyGroupFunction = initialKeyGroups
  private var currentAccess = initialAccess
  private var lists = initialMultiValue
  private var currentTable = new StateTable(initialAccess, 0, tier)
  private var currentBuffer = new WriteBuffer(initialAccess)

  /** Writes of the batch in order; null if the delta does not record them. */
  private[engine] val log: WriteLog = if (logsWrites) new WriteLog else null

  private var list = new Array[Byte](256)
  private var listLength = 0
  private var listRows = 0
  private val entryAt = new EntryCursor

  // Lookups of this batch, for its writes: by this table, or by a view of it before the first write.
  private var queue: LookupQueue = _
  @volatile private var readersQueue: LookupQueue = _
  private var queueLimit = LookupQueue.MinBytes

  // Of the key of the last call of `locate`. Address 0 if the table does not have the key; else its record's header.
  private var keyHash = 0
  private var keyAddress = 0
  private var keyHeader = 0L

  /** Changes whenever earlier reads through the buffer become invalid. */
  private[engine] var epoch: Int = 0

  /** True if another table has replaced this one, whose task may not know that it was abandoned. */
  private var retired = false

  private var isWritable = false

  /** True if the batch may write. The backend sets it, so a misplaced write fails instead of getting lost. */
  private[engine] def writable: Boolean = isWritable

  private[engine] def writable_=(on: Boolean): Unit = {
    isWritable = on
    if (!on) forgetLookups()
  }

  /** Key group of a new key. */
  private[engine] def keyGroups: KeyGroupFunction = keyGroupFunction

  /** True if a value is a list of rows. */
  private[engine] def multiValue: Boolean = lists

  private[engine] def access: KeyAccess = currentAccess

  override private[engine] def table: StateTable = currentTable

  override private[engine] def buffer: WriteBuffer = currentBuffer

  override private[engine] def owner: HashMapTable = this

  override private[engine] def lookups: LookupQueue = {
    if (queue == null && isWritable) queue = new LookupQueue(currentTable, queueLimit)
    queue
  }

  /** A queue for the lookups of a view of the table, which the writes of the same thread use. */
  private[engine] def openReadersLookups(): LookupQueue = {
    val opened = new LookupQueue(currentTable, queueLimit)
    readersQueue = opened
    opened
  }

  /** Writes that needed no lookup of their own. */
  private[engine] def lookupHits: Long = if (queue == null) 0 else queue.hits

  private def forgetLookups(): Unit = {
    if (queue != null) queueLimit = LookupQueue.limitAfter(queue.hitBytes)
    queue = null
    readersQueue = null
  }

  override private[engine] def checkRead(keyLength: Int): Unit = {
    if (retired) throw new TableRetiredException(name)
    HashMapTable.checkKeyLength(keyLength)
  }

  override private[engine] def keepFound(b: WriteBuffer, entry: Int): Unit = {
    // Lists are read row by row, possibly beyond the next get.
    if (lists) b.keep(entry) else b.keepUntilNextGet(entry)
  }

  override def put(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit = {
    RecordPages.checkRowBytes(keyLength.toLong + valueLength)
    val entry = entryFor(keyBase, keyOffset, keyLength)
    currentBuffer.put(entry, valueBase, valueOffset, valueLength)
    if (log != null) log.put(entry, valueBase, valueOffset, valueLength)
  }

  override def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    val entry = locate(keyBase, keyOffset, keyLength)
    if (entry >= 0) {
      val was = currentBuffer.isLive(entry)
      currentBuffer.remove(entry)
      if (log != null && was) log.remove(entry)
      was
    } else {
      keyAddress != 0 && {
        val added = add(TableRecord.keyGroup(keyHeader), keyBase, keyOffset, keyLength)
        if (log != null) log.remove(added)
        true
      }
    }
  }

  override def append(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      rowBase: AnyRef,
      rowOffset: Long,
      rowLength: Int): Unit = {
    startList()
    addToList(rowBase, rowOffset, rowLength)
    appendList(keyBase, keyOffset, keyLength)
  }

  override def startList(): Unit = {
    if (!lists) {
      throw new UnsupportedOperationException(s"Column family $name has one value per key.")
    }
    if (list.length > HashMapTable.MaxIdleScratch) list = new Array[Byte](256)
    listLength = 4
    listRows = 0
  }

  override def addToList(rowBase: AnyRef, rowOffset: Long, rowLength: Int): Unit = {
    val needed = listLength + 4L + rowLength
    RecordPages.checkRowBytes(needed)
    if (needed > list.length) {
      val length = math.min(RecordPages.MaxRecordBytes, math.max(needed, list.length * 2L))
      list = Arrays.copyOf(list, length.toInt)
    }
    val at = Platform.BYTE_ARRAY_OFFSET + listLength
    ListCursor.putInt(list, at, rowLength)
    Platform.copyMemory(rowBase, rowOffset, list, at + 4, rowLength)
    listLength += 4 + rowLength
    listRows += 1
  }

  override def putList(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    ListCursor.putInt(list, Platform.BYTE_ARRAY_OFFSET, listRows)
    put(keyBase, keyOffset, keyLength, list, Platform.BYTE_ARRAY_OFFSET, listLength)
  }

  override def appendList(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    val entry = locate(keyBase, keyOffset, keyLength)
    val rows = Platform.BYTE_ARRAY_OFFSET + 4
    if (entry >= 0 && currentBuffer.isLive(entry)) {
      currentBuffer.append(entry, listRows, list, rows, listLength - 4)
      if (log != null) log.append(entry, list, rows, listLength - 4)
    } else if (entry < 0 && keyAddress != 0) {
      val e = add(TableRecord.keyGroup(keyHeader), keyBase, keyOffset, keyLength)
      ListCursor.putInt(list, Platform.BYTE_ARRAY_OFFSET, listRows)
      currentBuffer.appendToTable(
        e, currentTable, TableRecord.valueLength(keyHeader), list, Platform.BYTE_ARRAY_OFFSET, listLength)
      if (log != null) log.append(e, list, rows, listLength - 4)
    } else if (log != null) {
      appendToNothing(keyBase, keyOffset, keyLength)
    } else {
      putList(keyBase, keyOffset, keyLength)
    }
  }

  /** Creates an empty list first: appends require an existing list, for readers of the delta too. */
  private def appendToNothing(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    put(keyBase, keyOffset, keyLength,
      HashMapTable.EmptyList, Platform.BYTE_ARRAY_OFFSET, HashMapTable.EmptyList.length)
    appendList(keyBase, keyOffset, keyLength)
  }

  override def removeRange(start: Array[Byte], end: Array[Byte]): Long = {
    val entries = rangeScan(start, end)
    var removed = 0L
    while (entries.advance()) {
      remove(entries.keyBase, entries.keyOffset, entries.keyLength)
      removed += 1
    }
    removed
  }

  private def entryFor(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
    val entry = locate(keyBase, keyOffset, keyLength)
    if (entry >= 0) {
      entry
    } else {
      val group =
        if (keyAddress != 0) TableRecord.keyGroup(keyHeader) else newKeyGroup(keyBase, keyOffset, keyLength)
      add(group, keyBase, keyOffset, keyLength)
    }
  }

  /** The entry of a key that the batch is about to change, -1 if there is none yet. */
  private def locate(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
    checkWrite(keyLength)
    val known = takeLookup(keyBase, keyOffset, keyLength)
    keyHash = if (known) queue.hash else Bytes.hash(keyBase, keyOffset, keyLength)
    val entry = currentBuffer.find(keyHash, keyBase, keyOffset, keyLength)
    if (entry < 0) {
      if (known) {
        keyAddress = queue.address
        if (keyAddress != 0) keyHeader = queue.header
      } else {
        val cold = currentTable.cold
        if (cold == null) {
          findInTable(keyBase, keyOffset, keyLength)
        } else {
          cold.enter(keyBase, keyOffset, keyLength)
          try findInTable(keyBase, keyOffset, keyLength) finally cold.leave()
        }
      }
    }
    entry
  }

  private def findInTable(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    keyAddress = currentTable.find(keyHash, keyBase, keyOffset, keyLength)
    if (keyAddress != 0) keyHeader = currentTable.header(keyAddress)
  }

  private def takeLookup(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    if (queue == null) {
      val found = readersQueue
      if (found != null && found.isOf(currentTable)) queue = found
    }
    queue != null && queue.take(keyBase, keyOffset, keyLength)
  }

  /** Adds an entry for the key of the last call of `locate`. */
  private def add(group: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
    val entry = currentBuffer.add(keyHash, keyAddress, group, keyBase, keyOffset, keyLength)
    if (keyAddress != 0 && currentTable.evicts) {
      currentBuffer.noteTableLength(entry, TableRecord.valueLength(keyHeader))
    }
    entry
  }

  private def newKeyGroup(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
    val group = keyGroupFunction.keyGroup(keyBase, keyOffset, keyLength)
    if (group < 0 || group >= maxParallelism) {
      throw new IllegalStateException(
        s"Key group $group of a key of column family $name is not in 0..${maxParallelism - 1}.")
    }
    group
  }

  private def checkWrite(keyLength: Int): Unit = {
    if (!writable) {
      if (retired) throw new TableRetiredException(name)
      throw new IllegalStateException(s"No batch is open to write to column family $name.")
    }
    HashMapTable.checkKeyLength(keyLength)
  }

  /** Takes another description; rebuilds the index if the access to keys changes. */
  private[engine] def declare(keyGroups: KeyGroupFunction, access: KeyAccess, multiValue: Boolean): Unit = {
    if (multiValue != lists && (currentTable.count > 0 || currentBuffer.count > 0)) {
      throw new IllegalArgumentException(
        s"Column family $name holds ${if (lists) "lists" else "single values"} already.")
    }
    val a = currentTable.access
    val same = a.id == access.id && HashMapTable.kind(a) == HashMapTable.kind(access)
    if (same) {
      currentTable.adopt(access)
      currentBuffer.adopt(access)
    } else {
      if (currentBuffer.count > 0) {
        throw new IllegalStateException(
          s"Column family $name is redeclared after the batch wrote to it.")
      }
      val before = currentTable
      before.loadRest()
      currentTable = before.rebuilt(access)
      before.close()
      currentBuffer = new WriteBuffer(access)
      forgetLookups()
      epoch += 1
    }
    keyGroupFunction = keyGroups
    currentAccess = access
    lists = multiValue
  }

  /** Replacement with the same records and no changes. */
  private[engine] def successor(): HashMapTable = {
    val next = new HashMapTable(
      name, keyGroupFunction.another, currentAccess.another, lists, maxParallelism, logsWrites, tier)
    next.currentTable = currentTable
    next.queueLimit = queueLimit
    currentTable.adopt(next.access)
    next
  }

  /** Invalidates this table and all reads through its buffer. The buffer stays unchanged. */
  private[engine] def retire(): Unit = {
    retired = true
    writable = false
    epoch += 1
  }

  /** Sources of the changes for a delta, in the order of application. */
  private[engine] def changes: Seq[ChangeSource] = ChangeSource.of(name, lists, currentBuffer, log)

  /** Applies the buffer to the table. */
  private[engine] def fold(): Unit = {
    val b = currentBuffer
    val t = currentTable
    val evicts = t.evicts
    t.generation += 1
    t.beginChanges(b.memoryBytes + (if (log == null) 0L else log.memoryBytes), b.count)
    var entry = 0
    while (entry < b.count) {
      val address = b.tableAddress(entry)
      val existing = WriteBuffer.isExisting(address)
      if (b.isTail(entry)) {
        b.pointTail(entry, entryAt)
        val rows = ListCursor.getInt(entryAt.valueBase, entryAt.valueOffset)
        t.append(
          b.hash(entry), address, rows, entryAt.valueBase, entryAt.valueOffset + 4, entryAt.valueLength - 4)
      } else if (b.isLive(entry)) {
        b.pointValue(entry, entryAt)
        if (existing && evicts && t.isEvicted(address)) {
          b.pointKey(entry, entryAt)
          t.replace(
            b.hash(entry),
            address,
            b.keyGroup(entry),
            entryAt.keyBase,
            entryAt.keyOffset,
            entryAt.keyLength,
            b.tableLength(entry),
            entryAt.valueBase,
            entryAt.valueOffset,
            entryAt.valueLength)
        } else if (existing) {
          t.update(b.hash(entry), address, entryAt.valueBase, entryAt.valueOffset, entryAt.valueLength)
        } else {
          b.pointKey(entry, entryAt)
          t.insert(
            b.hash(entry),
            b.keyGroup(entry),
            entryAt.keyBase,
            entryAt.keyOffset,
            entryAt.keyLength,
            entryAt.valueBase,
            entryAt.valueOffset,
            entryAt.valueLength)
        }
      } else if (existing) {
        if (evicts && t.isEvicted(address)) {
          b.pointKey(entry, entryAt)
          t.delete(
            b.hash(entry), address, entryAt.keyBase, entryAt.keyOffset, entryAt.keyLength, b.tableLength(entry))
        } else {
          t.delete(b.hash(entry), address)
        }
      }
      entry += 1
    }
    t.compact(false)
    dropChanges()
    t.endChanges()
  }

  /** Bytes of memory of the batch's reads and writes, without those of the table. */
  private[engine] def changeBytes: Long =
    currentBuffer.memoryBytes + (if (log == null) 0L else log.memoryBytes) + lookupBytes + list.length

  private def lookupBytes: Long = {
    val (own, readers) = (queue, readersQueue)
    (if (own == null) 0L else own.bytes.toLong) +
      (if (readers == null || (readers eq own)) 0L else readers.bytes.toLong)
  }

  /** Clears the buffer. */
  private[engine] def dropChanges(): Unit = {
    forgetLookups()
    currentBuffer.reset()
    if (log != null) log.reset()
    if (list.length > HashMapTable.MaxIdleScratch) list = new Array[Byte](256)
    epoch += 1
  }

  /** Leaves the rows of an empty table in their segments. */
  private[engine] def restoreLater(
      rows: Long,
      version: Long,
      segments: StoredSegments,
      budget: LookupBudget,
      checkTask: () => Unit): PendingRestore = {
    val groups = if (currentAccess == KeyAccess.Point) keyGroupFunction.another else null
    val pending = new PendingRestore(currentTable, name, groups, rows, budget, version, segments, checkTask)
    currentTable.cold = pending
    pending
  }

  /** Clears everything except the description. */
  private[engine] def clear(expected: Long): Unit = {
    currentTable.close()
    currentTable = new StateTable(currentAccess, expected, tier)
    dropChanges()
  }

  /** Marks all keys of the replaced family as removed. */
  private[engine] def markDropped(other: HashMapTable): Unit = {
    val cursor = new EntryCursor
    val t = other.table
    t.loadRest()
    val walk = t.pages.walk(t.linkWords)
    var address = walk.next()
    while (address != 0) {
      walk.point(cursor)
      markDropped(cursor, cursor.keyGroup)
      address = walk.next()
    }
    var entry = 0
    while (entry < other.buffer.count) {
      val address = other.buffer.tableAddress(entry)
      if (address != 0 && !WriteBuffer.isExisting(address)) {
        other.buffer.pointKey(entry, cursor)
        markDropped(cursor, other.buffer.keyGroup(entry))
      }
      entry += 1
    }
  }

  private def markDropped(key: EntryCursor, group: Int): Unit = {
    val hash = Bytes.hash(key.keyBase, key.keyOffset, key.keyLength)
    val entry = currentBuffer.add(hash, WriteBuffer.Dropped, group, key.keyBase, key.keyOffset, key.keyLength)
    if (log != null) log.remove(entry)
  }
}

private[engine] object HashMapTable {
  final val MaxIdleScratch = 1 << 20

  /** An empty list, see [[ListCursor]]. */
  private val EmptyList = new Array[Byte](4)

  def checkKeyLength(keyLength: Int): Unit = {
    if ((keyLength & 7) != 0) {
      throw new IllegalArgumentException(
        s"A key has $keyLength bytes; keys are rows, whose lengths are multiples of 8.")
    }
  }

  private def kind(access: KeyAccess): Int = access match {
    case KeyAccess.Point => 0
    case _: KeyAccess.Prefix => 1
    case _: KeyAccess.Ordered => 2
  }
}
