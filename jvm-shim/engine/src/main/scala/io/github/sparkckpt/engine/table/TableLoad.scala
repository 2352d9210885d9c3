// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

/**
 * The index of a [[StateTable]] during a load. Keys that are known to differ from each other are indexed at the end,
 * all at once ([[PendingEntries]]); changes by deltas come before them, key group by key group ([[KeyGroupChanges]]).
 *
 * @param expected expected number of keys
 */
private[engine] final class TableLoad(table: StateTable, expected: Long) {
  private var entries: PendingEntries = _
  private var changes: KeyGroupChanges = _

  /** True until [[end]]. */
  def isRunning: Boolean = entries != null

  /** Bytes of memory. */
  def bytes: Long =
    (if (entries == null) 0L else entries.bytes) + (if (changes == null) 0L else changes.bytes)

  /** If the table is empty: the keys that follow differ from each other, as those of bases do. */
  def begin(): Unit = if (table.storedKeys == 0 && !isRunning) entries = new PendingEntries(expected)

  /** The keys that follow differ from each other and from all others. */
  def beginMore(): Unit = {
    entries = new PendingEntries(table.count)
    table.index.copyTo(entries)
  }

  /**
   * The changes that follow are those of a key group by deltas, oldest first, until [[beginBases]]. No key of another
   * group may come.
   */
  def beginKeyGroup(keyGroup: Int): Unit = if (isRunning) {
    if (changes == null) changes = new KeyGroupChanges(table)
    changes.begin(keyGroup)
  }

  /** The rows of the key group in bases follow, until [[endKeyGroup]]. Those that deltas have changed are left out. */
  def beginBases(): Unit = if (changes != null) changes.beginBases()

  /** All rows of the key group are there. */
  def endKeyGroup(): Unit = if (changes != null) changes.end(entries)

  /** Makes the loaded keys findable. */
  def end(): Unit = if (isRunning) {
    table.index.fill(entries)
    entries = null
    changes = null
  }

  /** The index of the changes of the current key group; null if there is none. */
  def changed: HashIndex = if (changes != null && changes.isActive) changes.index else null

  /** Address of the record of a key that deltas have changed; 0 if there is none. */
  def find(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Int = {
    val index = changed
    if (index == null) 0 else table.find(index, hash, keyBase, keyOffset, keyLength)
  }

  /** Takes a new key. */
  def add(hash: Int, address: Int): Unit =
    if (changes != null && changes.areOpen) changes.index.insert(hash, address) else entries.add(hash, address)

  /** True if a row replaces the value of a changed key; false for a row of a base. */
  def replaces(address: Int): Boolean = changes.replaces(address)

  /** Removes a key. */
  def remove(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit =
    if (changed == null) {
      throw new IllegalStateException("A base has no removed keys.")
    } else {
      changes.remove(hash, keyBase, keyOffset, keyLength)
    }
}
