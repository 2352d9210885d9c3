package org.apache.spark.sql.ckpt.backend

/** The entries of one column family for a [[SegmentWriter]], known by int ids. */
private[backend] abstract class SegmentSource {

  /** Name of the column family. */
  def family: String

  /** Whether values are lists. */
  def multiValue: Boolean

  /** Whether values are rows to append to the lists that are there. */
  def appends: Boolean

  /** Adds to each key group's number how many entries it has. */
  def countGroups(counts: Array[Int]): Unit

  /**
   * Stores the ids of the entries with key groups from `first` until `until`.
   *
   * @param next where in `ids` the next id of a key group goes, by key group; moved on
   */
  def fill(first: Int, until: Int, next: Array[Int], ids: Array[Int]): Unit

  /** Points a cursor at an entry; value length -1 stands for a removed key. */
  def point(id: Int, cursor: EntryCursor): Unit
}

/**
 * What a batch changed in a family: its puts and removals, or what it appended to lists of the table. Ids are the
 * buffer's entries.
 */
private[backend] final class BufferSource(
    override val family: String,
    override val multiValue: Boolean,
    buffer: WriteBuffer,
    override val appends: Boolean)
  extends SegmentSource {

  private def isMine(entry: Int): Boolean = buffer.isChange(entry) && buffer.isAppend(entry) == appends

  override def countGroups(counts: Array[Int]): Unit = {
    var entry = 0
    while (entry < buffer.count) {
      if (isMine(entry)) counts(buffer.keyGroup(entry)) += 1
      entry += 1
    }
  }

  override def fill(first: Int, until: Int, next: Array[Int], ids: Array[Int]): Unit = {
    var entry = 0
    while (entry < buffer.count) {
      if (isMine(entry)) {
        val group = buffer.keyGroup(entry)
        if (group >= first && group < until) {
          ids(next(group)) = entry
          next(group) += 1
        }
      }
      entry += 1
    }
  }

  override def point(id: Int, cursor: EntryCursor): Unit = buffer.pointChange(id, cursor)
}

private[backend] object BufferSource {

  /** The sources of what a batch changed in a family. */
  def of(family: KeyedFamily): Seq[SegmentSource] = {
    val buffer = family.buffer
    def source(appends: Boolean) = new BufferSource(family.name, family.spec.multiValue, buffer, appends)
    if (buffer.count == 0) Nil
    else if (buffer.hasAppends) Seq(source(appends = false), source(appends = true))
    else Seq(source(appends = false))
  }
}

/** All records of a table as of a snapshot. Ids are addresses. */
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

  override def point(id: Int, cursor: EntryCursor): Unit = snapshot.point(id, cursor)
}
