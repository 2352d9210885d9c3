package org.apache.spark.sql.ckpt.backend

/** Which blocks a restore takes. */
trait RestoreFilter {

  /** Whether a block of this key group is expected here. If not, the stream is taken as corrupt. */
  def acceptsKeyGroup(keyGroup: Int): Boolean
}

object RestoreFilter {

  /** Key groups from `first` to `last`, both included. */
  def range(first: Int, last: Int): RestoreFilter = (keyGroup: Int) => keyGroup >= first && keyGroup <= last
}

/** Which rows of a segment a restore takes: subtasks that share key groups have their rows in the same blocks. */
trait RowFilter {

  /** Whether a key belongs to this subtask. */
  def accepts(family: String, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean
}

object RowFilter {

  /** Takes every row, and is not asked. */
  val All: RowFilter = (_: String, _: AnyRef, _: Long, _: Int) => true
}
