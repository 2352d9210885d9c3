// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.apache.spark.sql.ckpt.protocol.SegmentRef

/**
 * Version at which a restore of one store begins: the newest one that counts, minus its deltas. While every batch has
 * changes, that is the version of the newest base. An idle partition writes no deltas, and does not seem to lag.
 *
 * Threads: the provider's turn orders changes; reads need none.
 */
private[ckpt] final class NewestBase {
  // Versions of the deltas since the base; for loaded ones, the loaded version.
  private var deltas = Vector.empty[Long]
  private var newest = -1L

  /** Version of the base in the newest ack. An attempt that replaces this one sends its own. */
  private var sent: Option[Long] = None
  @volatile private var current = -1L

  /** The version, -1 before the first load. */
  def version: Long = current

  /** A version was loaded with this many deltas. */
  def loaded(version: Long, count: Int): Unit = {
    deltas = Vector.fill(count)(version)
    sent = None
    newest = version
    current = version - count
  }

  /**
   * A version was committed, and counts.
   *
   * @param hasDelta true if the batch changed anything
   * @param base     version of the base in the ack
   * @param merged   merged deltas in the ack
   */
  def committed(
      version: Long, hasDelta: Boolean, base: Option[Long], merged: Option[SegmentRef] = None): Unit = {
    merged.foreach { segment =>
      deltas = deltas.filterNot(one => one >= segment.firstVersion && one < segment.version)
    }
    if (version > newest) sent.foreach(dropUntil)
    deltas = deltas.takeWhile(_ < version)
    if (hasDelta) deltas :+= version
    sent = base
    newest = version
    current = version - deltas.count(_ > base.getOrElse(-1L))
  }

  private def dropUntil(base: Long): Unit = deltas = deltas.dropWhile(_ <= base)
}
