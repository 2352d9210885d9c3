/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
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
