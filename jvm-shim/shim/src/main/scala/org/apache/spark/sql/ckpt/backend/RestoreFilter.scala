package org.apache.spark.sql.ckpt.backend

/** Which entries a restore takes. */
trait RestoreFilter {

  /** Whether a block of this key group is expected here. If not, the stream is taken as corrupt. */
  def acceptsKeyGroup(keyGroup: Int): Boolean

  /**
   * Whether a key belongs to this subtask. Only asked where [[filtersKeys]] is true, that is when a
   * subtask owns parts of key groups.
   */
  def acceptsKey(family: String, keyBase: AnyRef, keyOffset: Long, keyLength: Int): Boolean = true

  def filtersKeys: Boolean = false
}

object RestoreFilter {

  /** Key groups from `first` to `last`, both included. */
  def range(first: Int, last: Int): RestoreFilter = (keyGroup: Int) => keyGroup >= first && keyGroup <= last
}
