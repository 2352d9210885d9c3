package org.apache.spark.sql.ckpt.backend

import java.util.Arrays

import org.apache.spark.unsafe.Platform

/**
 * A column family of the open batch: reads what the batch has done so far, and writes to it.
 *
 * Not thread-safe: used by the task that has the batch open. Keys and values are copied; they may point
 * anywhere, also at what this family returned. Key lengths are multiples of 8, as those of `UnsafeRow`s
 * are.
 *
 * @param logsWrites whether the delta is to have every write, not only what becomes of a key
 */
final class KeyedFamily private[backend] (initialSpec: FamilySpec, maxParallelism: Int, logsWrites: Boolean)
    extends FamilyReader {
  private var currentSpec = initialSpec
  private var currentTable = new StateTable(initialSpec.access, 0)
  private var currentBuffer = new WriteBuffer(initialSpec.access)

  /** The writes of the batch, one by one; null if the delta need not tell them. */
  private[backend] val log: WriteLog = if (logsWrites) new WriteLog else null

  private var list = new Array[Byte](256)
  private var listLength = 0
  private var listRows = 0
  private val entryAt = new EntryCursor

  /** Changes whenever what was read through the buffer becomes invalid. */
  private[backend] var epoch: Int = 0

  /** Whether another family has taken the place of this one, whose task may not know that it was given up. */
  private var retired = false

  /**
   * Whether the batch may write: set by the backend, so that a write out of place is an error and not
   * lost.
   */
  private[backend] var writable: Boolean = false

  private[backend] def spec: FamilySpec = currentSpec

  override private[backend] def table: StateTable = currentTable

  override private[backend] def buffer: WriteBuffer = currentBuffer

  override private[backend] def owner: KeyedFamily = this

  override private[backend] def checkRead(keyLength: Int): Unit = {
    if (retired) throw new IllegalStateException(s"The task that used column family $name was given up.")
    KeyedFamily.checkKeyLength(keyLength)
  }

  override private[backend] def keepFound(b: WriteBuffer, entry: Int): Unit = {
    // Lists are read row by row, maybe beyond the next get.
    if (currentSpec.multiValue) b.keep(entry) else b.keepUntilNextGet(entry)
  }

  /** Puts a value. In a multi-value family the value is an encoded list, see [[ListCursor]]. */
  def put(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit = {
    RecordPages.checkRecordBytes(keyLength.toLong + valueLength)
    val entry = entryFor(keyBase, keyOffset, keyLength)
    currentBuffer.put(entry, valueBase, valueOffset, valueLength)
    if (log != null) log.put(entry, valueBase, valueOffset, valueLength)
  }

  /** Removes a key; true if it was there. */
  def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    checkWrite(keyLength)
    val hash = Bytes.hash(keyBase, keyOffset, keyLength)
    val entry = currentBuffer.find(hash, keyBase, keyOffset, keyLength)
    if (entry >= 0) {
      val was = currentBuffer.isLive(entry)
      currentBuffer.remove(entry)
      if (log != null && was) log.remove(entry)
      was
    } else {
      val address = currentTable.find(hash, keyBase, keyOffset, keyLength)
      address != 0 && {
        val added = currentBuffer.add(hash, address, currentTable.keyGroup(address), keyBase, keyOffset, keyLength)
        if (log != null) log.remove(added)
        true
      }
    }
  }

  /** Appends one row to the list of a key in a multi-value family; makes the list if the key is new. */
  def append(
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

  /**
   * Begins a list in the family's scratch space, for [[addToList]] and then [[putList]] or
   * [[appendList]].
   */
  def startList(): Unit = {
    if (!currentSpec.multiValue) {
      throw new UnsupportedOperationException(s"Column family $name has one value per key.")
    }
    if (list.length > KeyedFamily.LargestIdleScratch) list = new Array[Byte](256)
    listLength = 4
    listRows = 0
  }

  /** Adds a row to the list that was begun. */
  def addToList(rowBase: AnyRef, rowOffset: Long, rowLength: Int): Unit = {
    val needed = listLength + 4L + rowLength
    RecordPages.checkRecordBytes(needed)
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

  /** Puts the list that was begun as the value of a key. */
  def putList(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    ListCursor.putInt(list, Platform.BYTE_ARRAY_OFFSET, listRows)
    put(keyBase, keyOffset, keyLength, list, Platform.BYTE_ARRAY_OFFSET, listLength)
  }

  /** Appends the list that was begun to that of a key. */
  def appendList(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    checkWrite(keyLength)
    val hash = Bytes.hash(keyBase, keyOffset, keyLength)
    val entry = currentBuffer.find(hash, keyBase, keyOffset, keyLength)
    val address = if (entry >= 0) 0 else currentTable.find(hash, keyBase, keyOffset, keyLength)
    val rows = Platform.BYTE_ARRAY_OFFSET + 4
    if (entry >= 0 && currentBuffer.isLive(entry)) {
      currentBuffer.append(entry, listRows, list, rows, listLength - 4)
      if (log != null) log.append(entry, list, rows, listLength - 4)
    } else if (address != 0) {
      currentTable.point(address, entryAt)
      val e = currentBuffer.add(hash, address, entryAt.keyGroup, keyBase, keyOffset, keyLength)
      currentBuffer.appendToTable(e, entryAt, listRows, list, rows, listLength - 4)
      if (log != null) log.append(e, list, rows, listLength - 4)
    } else if (log != null) {
      appendToNothing(keyBase, keyOffset, keyLength)
    } else {
      putList(keyBase, keyOffset, keyLength)
    }
  }

  /** Makes an empty list first: rows are only ever appended to a list that is there, also by who reads the delta. */
  private def appendToNothing(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    put(keyBase, keyOffset, keyLength, KeyedFamily.EmptyList, Platform.BYTE_ARRAY_OFFSET, KeyedFamily.EmptyList.length)
    appendList(keyBase, keyOffset, keyLength)
  }

  /** Removes the entries of a range scan; returns how many there were. */
  def removeRange(start: Array[Byte], end: Array[Byte]): Long = {
    val entries = rangeScan(start, end)
    var removed = 0L
    while (entries.advance()) {
      remove(entries.keyBase, entries.keyOffset, entries.keyLength)
      removed += 1
    }
    removed
  }

  private def entryFor(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
    checkWrite(keyLength)
    val hash = Bytes.hash(keyBase, keyOffset, keyLength)
    val entry = currentBuffer.find(hash, keyBase, keyOffset, keyLength)
    if (entry >= 0) {
      entry
    } else {
      val address = currentTable.find(hash, keyBase, keyOffset, keyLength)
      val group =
        if (address != 0) currentTable.keyGroup(address) else newKeyGroup(keyBase, keyOffset, keyLength)
      currentBuffer.add(hash, address, group, keyBase, keyOffset, keyLength)
    }
  }

  private def newKeyGroup(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
    val group = currentSpec.keyGroups.keyGroup(keyBase, keyOffset, keyLength)
    if (group < 0 || group >= maxParallelism) {
      throw new IllegalStateException(
        s"Key group $group of a key of column family $name is not in 0..${maxParallelism - 1}.")
    }
    group
  }

  private def checkWrite(keyLength: Int): Unit = {
    if (!writable) throw new IllegalStateException(s"No batch is open to write to column family $name.")
    KeyedFamily.checkKeyLength(keyLength)
  }

  /** Takes another specification; rebuilds the table's index if keys are reached in another way now. */
  private[backend] def declare(spec: FamilySpec): Unit = {
    if (spec.multiValue != currentSpec.multiValue && (currentTable.count > 0 || currentBuffer.count > 0)) {
      throw new IllegalArgumentException(
        s"Column family $name holds ${if (currentSpec.multiValue) "lists" else "single values"} already.")
    }
    val a = currentTable.access
    val same = a.id == spec.access.id && KeyedFamily.kind(a) == KeyedFamily.kind(spec.access)
    if (same) {
      currentTable.adopt(spec.access)
      currentBuffer.adopt(spec.access)
    } else {
      if (currentBuffer.count > 0) {
        throw new IllegalStateException(
          s"Column family $name is declared anew after the batch has written to it.")
      }
      currentTable = currentTable.rebuilt(spec.access)
      currentBuffer = new WriteBuffer(spec.access)
      epoch += 1
    }
    currentSpec = spec
  }

  /** A family with the same table and no changes, in place of this one. */
  private[backend] def successor(): KeyedFamily = {
    val next = new KeyedFamily(currentSpec, maxParallelism, logsWrites)
    next.currentTable = currentTable
    next
  }

  /** From now on nobody can use this family, nor what was read through its buffer. */
  private[backend] def retire(): Unit = {
    retired = true
    writable = false
    epoch += 1
  }

  /** Applies the buffer to the table. */
  private[backend] def fold(): Unit = {
    val b = currentBuffer
    val t = currentTable
    t.generation += 1
    var entry = 0
    while (entry < b.count) {
      val address = b.tableAddress(entry)
      val existing = WriteBuffer.isExisting(address)
      if (b.isLive(entry)) {
        b.pointValue(entry, entryAt)
        if (existing) {
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
        t.delete(b.hash(entry), address)
      }
      entry += 1
    }
    t.compact(false)
    dropChanges()
  }

  /** Bytes of memory that the table, its index and what the batch has written use. */
  private[backend] def memoryBytes: Long =
    currentTable.memoryBytes + currentBuffer.memoryBytes + (if (log == null) 0L else log.memoryBytes)

  /** Forgets the buffer. */
  private[backend] def dropChanges(): Unit = {
    currentBuffer.reset()
    if (log != null) log.reset()
    epoch += 1
  }

  /** Forgets everything but the specification. */
  private[backend] def clear(expected: Long): Unit = {
    currentTable = new StateTable(currentSpec.access, expected)
    dropChanges()
  }

  /** Marks all keys of a family that this one takes the place of as removed. */
  private[backend] def markDropped(other: KeyedFamily): Unit = {
    val cursor = new EntryCursor
    val t = other.table
    val walk = t.pages.walk(t.linkWords)
    var address = walk.next()
    while (address != 0) {
      t.point(address, cursor)
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

private[backend] object KeyedFamily {
  final val LargestIdleScratch = 1 << 20

  /** A list of no rows, see [[ListCursor]]. */
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
