// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.compaction

import io.github.sparkckpt.engine.bytes.EntryCursor
import io.github.sparkckpt.engine.segment.{SegmentSource, UniformRows}
import io.github.sparkckpt.engine.table.TableSnapshot

/** All records of a table in a snapshot. Ids are addresses. */
private[engine] final class SnapshotSource(
    override val family: String,
    override val multiValue: Boolean,
    snapshot: TableSnapshot)
  extends SegmentSource {

  override def appends: Boolean = false

  override def countGroups(counts: Array[Int]): Unit = {
    val walk = snapshot.walk()
    while (walk.next() != 0) counts(walk.keyGroup) += 1
  }

  override def fill(first: Int, until: Int, next: Array[Int], ids: Array[Int]): Unit = {
    val walk = snapshot.walk()
    var address = walk.next()
    while (address != 0) {
      val group = walk.keyGroup
      if (group >= first && group < until) {
        ids(next(group)) = address
        next(group) += 1
      }
      address = walk.next()
    }
  }

  override def gather(first: Int, until: Int, rows: UniformRows): Boolean = {
    val cursor = new EntryCursor
    val walk = snapshot.walk()
    var added = true
    while (added && walk.next() != 0) {
      val group = walk.keyGroup
      if (group >= first && group < until) {
        walk.point(cursor)
        added = rows.add(group, cursor)
      }
    }
    added
  }

  override def point(id: Int, cursor: EntryCursor): Unit = snapshot.point(id, cursor)
}
