// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.backend

import io.github.sparkckpt.engine.buffer.WriteBuffer
import io.github.sparkckpt.engine.table.{LookupQueue, StateTable}

/**
 * A column family at one version, apart from the table that writes. Its results stay unchanged until the end of the
 * batch. A view of the folded version is valid until the table changes, regardless of batches opened, dropped or
 * reopened on top; a view of a committed version is valid until that is folded or dropped. Then it refuses to read.
 */
private[engine] final class HashMapTableView(
    override private[engine] val owner: HashMapTable,
    override private[engine] val table: StateTable,
    override private[engine] val buffer: WriteBuffer)
  extends HashMapReader {

  private val epoch = owner.epoch
  private val generation = table.generation
  private var queue: LookupQueue = _

  override private[engine] def lookups: LookupQueue = {
    if (queue == null && buffer == null) queue = owner.openReadersLookups()
    queue
  }

  override private[engine] def checkRead(keyLength: Int): Unit = {
    HashMapTable.checkKeyLength(keyLength)
    if (table.generation != generation || (buffer != null && owner.epoch != epoch)) {
      throw new IllegalStateException(
        s"The state version of this reader of column family $name is no longer in memory.")
    }
  }
}
