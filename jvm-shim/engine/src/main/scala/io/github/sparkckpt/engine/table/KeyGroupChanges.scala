// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.table

import scala.collection.mutable

/**
 * What deltas change in one key group of a table that is being loaded. It comes before the rows of the bases, so that a
 * row of a base is only looked up among the changes of its key group, which fit into the processor's cache, and each
 * row is written once.
 */
private[engine] final class KeyGroupChanges(table: StateTable) {

  /** Records of the changed keys. */
  val index: HashIndex = new HashIndex(0)

  // Hashes of removed keys by the addresses of their records, which stay until the rows of the bases have passed.
  private val removed = mutable.LongMap.empty[Int]
  private var keyGroup = 0
  private var active = false
  private var inBases = false

  /** Bytes of memory, estimated during a load. */
  def bytes: Long = index.bytes + removed.size * KeyGroupChanges.RemovedBytes

  /** True while a key group is loaded. */
  def isActive: Boolean = active

  /** True until the rows of bases come. */
  def areOpen: Boolean = active && !inBases

  def begin(keyGroup: Int): Unit = {
    this.keyGroup = keyGroup
    active = true
    inBases = false
  }

  def beginBases(): Unit = inBases = true

  /** True if a row replaces the value of this changed key; false for a row of a base. */
  def replaces(address: Int): Boolean = !inBases && {
    removed.remove(keyOf(address))
    true
  }

  /** Removes a key, which a base may have. */
  def remove(hash: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    val known = table.find(index, hash, keyBase, keyOffset, keyLength)
    val address = if (known != 0) known else table.insert(hash, keyGroup, keyBase, keyOffset, keyLength, null, 0, 0)
    removed(keyOf(address)) = hash
  }

  /** Ends the key group, and moves its changed keys to all others. */
  def end(all: PendingEntries): Unit = if (active) {
    removed.foreach { case (address, hash) => table.delete(hash, address.toInt) }
    removed.clear()
    index.moveTo(all)
    active = false
  }

  private def keyOf(address: Int): Long = address & 0xFFFFFFFFL
}

private object KeyGroupChanges {

  /** Bytes of a removed key in the map, with its boxed hash. */
  private final val RemovedBytes = 40L
}
