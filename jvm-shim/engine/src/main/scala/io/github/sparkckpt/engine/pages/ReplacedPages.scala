// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import scala.collection.mutable

/**
 * Counts the bytes of pages that a table has replaced and that live snapshots still have. A page is in the snapshots
 * that are younger than it and older than its replacement: so pages are counted by the oldest and the newest of these,
 * which are few pairs. Snapshots are numbered from 1. Guarded by its owner's lock; `bytes` may be read without.
 */
private[engine] final class ReplacedPages {
  private var live = Vector.empty[Int] // ascending
  private val byOwners = mutable.HashMap.empty[(Int, Int), Long]
  @volatile private var sum = 0L

  /** Bytes of memory that only snapshots keep. */
  def bytes: Long = sum

  /** A snapshot begins, with a number above all others. */
  def opened(snapshot: Int): Unit = live :+= snapshot

  /** A page that is younger than the snapshots up to `birth` leaves the table. */
  def add(birth: Int, bytes: Int): Unit = live.find(_ > birth).foreach { oldest =>
    val owners = (oldest, live.last)
    byOwners(owners) = byOwners.getOrElse(owners, 0L) + bytes
    sum += bytes
  }

  /** A snapshot ends. */
  def closed(snapshot: Int): Unit = {
    live = live.filterNot(_ == snapshot)
    val gone = byOwners.keys.filterNot { case (oldest, newest) => live.exists(id => id >= oldest && id <= newest) }
    gone.toSeq.foreach(owners => sum -= byOwners.remove(owners).get)
  }
}
