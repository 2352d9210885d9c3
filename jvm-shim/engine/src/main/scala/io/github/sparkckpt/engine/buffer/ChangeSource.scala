// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.buffer

import io.github.sparkckpt.engine.bytes.EntryCursor
import io.github.sparkckpt.engine.segment.{SegmentSource, UniformRows}

/** Part of a batch's changes to a family: by entries of the write buffer, or by writes. */
private[engine] abstract class ChangeSource(override val family: String, override val multiValue: Boolean)
    extends SegmentSource {

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
private[engine] final class OutcomeSource(
    family: String, multiValue: Boolean, buffer: WriteBuffer, override val appends: Boolean)
    extends ChangeSource(family, multiValue) {
  override def count: Int = buffer.count

  override def contains(id: Int): Boolean = buffer.isChange(id) && buffer.isAppend(id) == appends

  override protected def keyGroup(id: Int): Int = buffer.keyGroup(id)

  override def point(id: Int, cursor: EntryCursor): Unit = buffer.pointChange(id, cursor)
}

/** A batch's writes to a family in one round, see [[WriteLog]]. */
private[engine] final class WritesSource(
    family: String, multiValue: Boolean, buffer: WriteBuffer, log: WriteLog, round: Int)
    extends ChangeSource(family, multiValue) {
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

private[engine] object ChangeSource {

  /**
   * Sources of a batch's changes to a family, in the order of application.
   *
   * @param log writes of the batch in order; null if only their outcome counts
   */
  def of(family: String, multiValue: Boolean, buffer: WriteBuffer, log: WriteLog): Seq[ChangeSource] =
    if (buffer.count == 0) Nil
    else if (log != null) (0 until log.rounds).map(new WritesSource(family, multiValue, buffer, log, _))
    else if (buffer.hasAppends) Seq(false, true).map(new OutcomeSource(family, multiValue, buffer, _))
    else Seq(new OutcomeSource(family, multiValue, buffer, appends = false))
}
