// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.segment

/** Blocks to restore. */
trait RestoreFilter {

  /** True if a block of this key group may be here. If not, the stream is damaged. */
  def acceptsKeyGroup(keyGroup: Int): Boolean
}

object RestoreFilter {

  /** Key groups from `first` to `last`, both included. */
  def range(first: Int, last: Int): RestoreFilter = (keyGroup: Int) => keyGroup >= first && keyGroup <= last
}

/** Rows of a segment to restore: subtasks that share key groups have rows in the same blocks. */
trait RowFilter {

  /** True if a key belongs to this subtask. */
  def accepts(family: String, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean
}

object RowFilter {

  /** All rows; never evaluated. */
  val All: RowFilter = (_: String, _: AnyRef, _: Long, _: Int) => true
}
