// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.restore

import io.github.sparkckpt.engine.bytes.Bytes
import io.github.sparkckpt.engine.segment.{SegmentReader, StateSegment}
import io.github.sparkckpt.engine.table.{KeyGroupFunction, KeySet, StateTable}

/**
 * Loads of single rows into the table of a [[PendingRestore]]. The changes by deltas, which are few, are loaded before
 * the first row; other rows come from the base, by [[BaseLookups]].
 *
 * @param family    column family, the only one of the store
 * @param keyGroups key group of a key
 * @param budget    what lookups may cost
 * @param newest    version of the state
 * @param phases    of a load of the table
 */
private[engine] final class RowLoads(
    table: StateTable,
    family: String,
    keyGroups: KeyGroupFunction,
    budget: LookupBudget,
    newest: Long,
    segments: StoredSegments,
    phases: LoadPhases) {
  import RowLoads._

  private var lookups: BaseLookups = _
  private var lacks = true

  // The other changes by deltas are in the table.
  private val removed = new KeySet

  private var spent = 0L

  /** Bytes of memory, estimated while a row is loaded. */
  def memoryBytes: Long = {
    val base = lookups
    removed.memoryBytes + (if (base == null) 0L else base.memoryBytes)
  }

  /** True before [[loadDeltas]]. */
  def lackDeltas: Boolean = lacks

  /** True if so much was loaded row by row that the rest is better loaded at once. */
  def isBulkCheaper: Boolean = spent > budget.total

  /** True if the table has the row of a key, or a delta has removed it. */
  def hasLoaded(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean =
    table.find(hash, keyBase, keyOffset, keyLength) != 0 || removed.contains(hash, keyBase, keyOffset, keyLength)

  /** Loads all changes of the base. */
  def loadDeltas(open: Int => StateSegment): Unit = {
    val opened = deltas(segments).map(open)
    table.load.begin()
    new KeyGroupLoad(opened, changes.sink(family), _ => true, newest).load(phases)
    table.load.end()
    lacks = false
  }

  /**
   * Loads the row of a key, unless the base lacks it.
   *
   * @return false if the base cannot be searched
   */
  def load(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = {
    val group = keyGroups.keyGroup(keyBase, keyOffset, keyLength)
    var isOpen = true
    segments.lookingUp(0) { base =>
      if (lookups == null) lookups = new BaseLookups(base, keyGroups, newest)
      if (!lookups.isOpen(group)) {
        isOpen = lookups.open(group)
        spent += budget.perKeyGroup
      }
      if (isOpen && lookups.find(group, hash, keyBase, keyOffset, keyLength)) {
        table.insert(hash, group, keyBase, keyOffset, keyLength,
          lookups.valueBase, lookups.valueOffset, lookups.valueLength)
      }
    }
    spent += budget.perRow
    isOpen
  }

  /** Loads the rest of the base, while a load of the table is running. */
  def loadRest(base: StateSegment): Unit = {
    var keyGroup = 0
    val reader = new SegmentReader(others.sink(family), (found: Int) => found == keyGroup)
    reader.start(base)
    segments.keyGroups.head.indices.foreach { i =>
      phases.checkOpen()
      keyGroup = segments.keyGroups.head(i)
      reader.loadBlock(i, newest)
    }
  }

  private object changes extends PlacedRows(table, keyGroups) {
    override protected def take(
        keyGroup: Int,
        keyBase: AnyRef,
        keyOffset: Long,
        keyLength: Int,
        valueBase: AnyRef,
        valueOffset: Long,
        valueLength: Int): Unit = {
      if (removed.nonEmpty) removed.remove(Bytes.hash(keyBase, keyOffset, keyLength), keyBase, keyOffset, keyLength)
      super.take(keyGroup, keyBase, keyOffset, keyLength, valueBase, valueOffset, valueLength)
    }

    override def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
      super.remove(keyBase, keyOffset, keyLength)
      removed.add(Bytes.hash(keyBase, keyOffset, keyLength), keyBase, keyOffset, keyLength)
    }
  }

  private object others extends PlacedRows(table, keyGroups) {
    override protected def take(
        keyGroup: Int,
        keyBase: AnyRef,
        keyOffset: Long,
        keyLength: Int,
        valueBase: AnyRef,
        valueOffset: Long,
        valueLength: Int): Unit = {
      val hash = Bytes.hash(keyBase, keyOffset, keyLength)
      if (!hasLoaded(hash, keyBase, keyOffset, keyLength)) {
        table.insert(hash, keyGroup, keyBase, keyOffset, keyLength, valueBase, valueOffset, valueLength)
      }
    }

    override def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit =
      throw new IllegalStateException("A base has no removed keys.")
  }
}

private[engine] object RowLoads {

  /** Positions of the deltas. */
  def deltas(segments: StoredSegments): Range = segments.keyGroups.indices.drop(1)
}
