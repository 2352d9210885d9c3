// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import io.github.sparkckpt.engine.bytes.ListCursor
import io.github.sparkckpt.engine.segment.DeltaEntry

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.ckpt.families.{ColumnFamily, ValueEncoding}
import org.apache.spark.sql.ckpt.locate.{FilteredDelta, StateDeltas}
import org.apache.spark.sql.execution.streaming.state.RecordType
import org.apache.spark.unsafe.Platform
import org.apache.spark.util.NextIterator

/**
 * Changes of batches to one column family, for the `statestore` data source: type, key, value and batch of each. A
 * delta has the outcome of a batch per key or, with the setting `changeFeed=writes`, each write. A replaced list is an
 * update with its first row and an append for each further one; a removal has no value.
 */
private[ckpt] final class ChangeFeed(
    family: ColumnFamily,
    encoding: ValueEncoding,
    deltas: StateDeltas,
    chain: List[FilteredDelta])
    extends NextIterator[(RecordType.Value, UnsafeRow, UnsafeRow, Long)] {
  import ChangeFeed._

  private val changes = chain.iterator.flatMap { delta =>
    deltas.read(delta, family.name).iterator.flatMap(entry => changesOf(entry, delta.version - 1))
  }

  override protected def getNext(): Change =
    if (changes.hasNext) changes.next()
    else {
      finished = true
      null
    }

  override protected def close(): Unit = ()

  private def changesOf(entry: DeltaEntry, batch: Long): Iterator[Change] = {
    val key = family.key(entry.key, Platform.BYTE_ARRAY_OFFSET, entry.key.length)
    val start = Platform.BYTE_ARRAY_OFFSET
    if (entry.value == null) Iterator.single((RecordType.DELETE_RECORD, key, null, batch))
    else if (!family.multiValue) {
      Iterator.single((RecordType.PUT_RECORD, key, encoding.decode(entry.value, start, entry.value.length), batch))
    } else {
      val rows = new ListCursor().reset(entry.value, start, entry.value.length)
      Iterator.continually(rows).takeWhile(_.advance()).zipWithIndex.map { case (row, i) =>
        val kind = if (i == 0 && !entry.appended) RecordType.PUT_RECORD else RecordType.MERGE_RECORD
        (kind, key, encoding.decode(row.rowBase, row.rowOffset, row.rowLength), batch)
      }
    }
  }
}

private[ckpt] object ChangeFeed {
  private type Change = (RecordType.Value, UnsafeRow, UnsafeRow, Long)
}
