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
