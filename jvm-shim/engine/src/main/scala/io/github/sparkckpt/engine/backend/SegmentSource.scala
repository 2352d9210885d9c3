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
package io.github.sparkckpt.engine.backend

/** Entries of one column family for a [[SectionWriter]], identified by ints. */
private[backend] abstract class EntrySource {

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
private[backend] abstract class SegmentSource extends EntrySource {

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

/** Part of a batch's changes to a family: by entries of the write buffer, or by writes. */
private[backend] abstract class ChangeSource(of: HashMapTable) extends SegmentSource {
  protected val buffer: WriteBuffer = of.buffer

  override def family: String = of.name

  override def multiValue: Boolean = of.multiValue

  /** Upper bound of ids. */
  def count: Int

  /** True if an id is one of this source. */
  def contains(id: Int): Boolean

  protected def keyGroup(id: Int): Int

  override def countGroups(counts: Array[Int]): Unit = {
    var id = 0
    while (id < count) {
      if (contains(id)) counts(keyGroup(id)) += 1
      id += 1
    }
  }

  override def fill(first: Int, until: Int, next: Array[Int], ids: Array[Int]): Unit = {
    var id = 0
    while (id < count) {
      if (contains(id)) {
        val group = keyGroup(id)
        if (group >= first && group < until) {
          ids(next(group)) = id
          next(group) += 1
        }
      }
      id += 1
    }
  }

  override def gather(first: Int, until: Int, rows: UniformRows): Boolean = {
    val cursor = new EntryCursor
    var added = true
    var id = 0
    while (added && id < count) {
      if (contains(id)) {
        val group = keyGroup(id)
        if (group >= first && group < until) {
          point(id, cursor)
          added = rows.add(group, cursor)
        }
      }
      id += 1
    }
    added
  }
}

/** Outcome of a batch for the keys of a family: puts and removals, or rows appended to lists of the table. */
private[backend] final class OutcomeSource(of: HashMapTable, override val appends: Boolean) extends ChangeSource(of) {
  override def count: Int = buffer.count

  override def contains(id: Int): Boolean = buffer.isChange(id) && buffer.isAppend(id) == appends

  override protected def keyGroup(id: Int): Int = buffer.keyGroup(id)

  override def point(id: Int, cursor: EntryCursor): Unit = buffer.pointChange(id, cursor)
}

/** A batch's writes to a family in one round, see [[WriteLog]]. */
private[backend] final class WritesSource(of: HashMapTable, round: Int) extends ChangeSource(of) {
  private val log = of.log

  override def hasSingleValues: Boolean = false

  override def appends: Boolean = (round & 1) == 1

  override def count: Int = log.count

  override def contains(id: Int): Boolean = log.round(id) == round

  override protected def keyGroup(id: Int): Int = buffer.keyGroup(log.entry(id))

  override def point(id: Int, cursor: EntryCursor): Unit = {
    buffer.pointKey(log.entry(id), cursor)
    log.pointValue(id, cursor)
  }
}

private[backend] object ChangeSource {

  /** Sources of a batch's changes to a family, in the order of application. */
  def of(family: HashMapTable): Seq[ChangeSource] =
    if (family.buffer.count == 0) Nil
    else if (family.log != null) (0 until family.log.rounds).map(new WritesSource(family, _))
    else if (family.buffer.hasAppends) Seq(false, true).map(new OutcomeSource(family, _))
    else Seq(new OutcomeSource(family, appends = false))
}

/** All records of a table in a snapshot. Ids are addresses. */
private[backend] final class SnapshotSource(
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
