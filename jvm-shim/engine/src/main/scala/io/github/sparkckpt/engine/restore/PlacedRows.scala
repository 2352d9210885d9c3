// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.restore

import io.github.sparkckpt.engine.segment.{SegmentSink, SegmentTarget}
import io.github.sparkckpt.engine.table.{KeyGroupFunction, StateTable}

/**
 * Rows for the table of a [[PendingRestore]], with a check that the first one of each section is in the key group where
 * its readers look.
 *
 * @param keyGroups key group of a key; null for no check
 */
private[engine] class PlacedRows(table: StateTable, keyGroups: KeyGroupFunction) extends SegmentTarget {
  private var isFirst = false

  /** Receiver of a family's single values. */
  def sink(family: String): SegmentSink = (name: String, multiValue: Boolean) =>
    if (name == family && !multiValue) {
      isFirst = keyGroups != null
      this
    } else {
      null
    }

  final override def put(
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit = {
    if (isFirst) {
      isFirst = false
      PlacedRows.check(keyGroups, keyGroup, keyBase, keyOffset, keyLength)
    }
    take(keyGroup, keyBase, keyOffset, keyLength, valueBase, valueOffset, valueLength)
  }

  /** Takes a row that is in its place. */
  protected def take(
      keyGroup: Int,
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      valueBase: AnyRef,
      valueOffset: Long,
      valueLength: Int): Unit =
    table.put(keyGroup, keyBase, keyOffset, keyLength, valueBase, valueOffset, valueLength)

  override def append(
      keyBase: AnyRef,
      keyOffset: Long,
      keyLength: Int,
      rows: Int,
      rowsBase: AnyRef,
      rowsOffset: Long,
      rowsLength: Int): Boolean =
    table.append(keyBase, keyOffset, keyLength, rows, rowsBase, rowsOffset, rowsLength)

  override def remove(keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit =
    table.remove(keyBase, keyOffset, keyLength)
}

private[engine] object PlacedRows {

  /** Throws [[MisplacedRowException]] if a row is in another key group than its readers look for. */
  def check(keyGroups: KeyGroupFunction, keyGroup: Int, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Unit = {
    val expected = keyGroups.keyGroup(keyBase, keyOffset, keyLength)
    if (expected != keyGroup) throw new MisplacedRowException(keyGroup, expected)
  }
}

/** A row in a key group where its readers do not look. */
final class MisplacedRowException(val keyGroup: Int, val expected: Int)
  extends RuntimeException(s"a row of key group $expected is stored in key group $keyGroup")
