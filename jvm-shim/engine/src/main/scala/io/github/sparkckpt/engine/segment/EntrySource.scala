// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

import io.github.sparkckpt.engine.bytes.EntryCursor

/** Entries of one column family for a [[SectionWriter]], identified by ints. */
private[engine] abstract class EntrySource {

  /** Name of the column family. */
  def family: String

  /** True if values are lists. */
  def multiValue: Boolean

  /** True if values are rows to append to existing lists. */
  def appends: Boolean

  /** True if each key has one value, so that their order does not matter. */
  def hasSingleValues: Boolean = !multiValue

  /** Points a cursor at an entry; value length -1 stands for a removed key. */
  def point(id: Int, cursor: EntryCursor): Unit
}

/** Entries of one column family for a [[SegmentWriter]]. */
private[engine] abstract class SegmentSource extends EntrySource {

  /** Adds the number of entries to each key group's count. */
  def countGroups(counts: Array[Int]): Unit

  /**
   * Stores the ids of the entries with key groups from `first` until `until`.
   *
   * @param next position in `ids` of the next id, by key group; advanced
   */
  def fill(first: Int, until: Int, next: Array[Int], ids: Array[Int]): Unit

  /** Adds the entries with key groups from `first` until `until`; false if not all of them could be added. */
  def gather(first: Int, until: Int, rows: UniformRows): Boolean
}
