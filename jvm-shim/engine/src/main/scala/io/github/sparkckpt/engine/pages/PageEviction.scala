// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.util.Arrays

/**
 * Moves pages of one table to the local disk while all tables together exceed the budget: those with the fewest recent
 * changes first.
 *
 * Pages move while the table changes, in the thread that changes it, or by [[evict]], while a task may read. Indexes by
 * prefix and in order lead from record to record, so tables with one stay in memory; the budget counts them.
 */
private[engine] final class PageEviction(owner: RecordOwner, space: RecordSpace, tier: LocalTier) {
  import PageEviction._

  // A table that never changes needs none.
  private var account: MemoryAccount = _
  private var file: LocalFile = _
  private val step = math.max(tier.maxPageWords << 3, math.min(tier.limit / 256, 1L << 20))

  // Number of changes per page, decaying.
  private var heat = new Array[Int](8)
  private var ownHeat = new Array[Int](8)

  private var changing = false
  private var nextLook = 0L
  private var buffered = 0L
  private var alone = false

  private val evictable = owner.mayEvict

  /** Bytes of bookkeeping. */
  def bytes: Long = (heat.length + ownHeat.length) * 4L

  /** True if evicted pages may be lost. */
  def isBroken: Boolean = {
    val f = file
    f != null && f.isBroken
  }

  /**
   * The table is about to change.
   *
   * @param buffered bytes of the changes, which count as memory until the end
   * @param isAlone  true if only this table gives memory up
   */
  def begin(buffered: Long, isAlone: Boolean = false): Unit = {
    alone = isAlone
    this.buffered = buffered
    changing = true
    nextLook = 0
  }

  /** The table has changed. */
  def end(): Unit = {
    buffered = 0
    if (tier.limit < MinPage && evictable) space.pages.closeOpen()
    look()
    changing = false
  }

  /** Evicts as at the end of a change, while the table does not change. */
  def evict(): Unit = if (account != null && account.excess(tier.limit) > 0) relieve()

  /** Runs an action during which no page moves. */
  def without(action: => Unit): Unit = {
    val before = changing
    changing = false
    try action finally changing = before
  }

  /** Before memory is allocated for a record: frees some if too much is used. */
  def beforeAllocation(): Unit = if (changing && space.pages.bytes >= nextLook) look()

  /** A record was added or changed. */
  def touched(address: Int): Unit =
    if (RecordPages.isOwn(address)) {
      val number = RecordPages.ownNumber(address)
      if (number >= ownHeat.length) ownHeat = Arrays.copyOf(ownHeat, number * 2)
      ownHeat(number) += OwnHeat
    } else {
      val number = address >>> RecordPages.PageShift
      if (number >= heat.length) heat = Arrays.copyOf(heat, number * 2)
      heat(number) += 1
    }

  private def look(): Unit = {
    if (account == null) {
      account = tier.budget.open()
      Cleanups.whenUnreachable(this)(closing(account))
    }
    relieve()
    if (!alone && account.excess(tier.limit) > tier.limit / 20 && account.othersCanEvict) tier.shedAll()
    nextLook = space.pages.bytes + step
  }

  private def relieve(): Unit = {
    report()
    val excess = account.excess(tier.limit)
    if (excess > 0 && evictable) {
      evict(excess + tier.limit / 64)
      report()
    }
  }

  private def report(): Unit = account.set(owner.memoryBytes + buffered, if (evictable) space.pages.bytes else 0L)

  private def evict(bytes: Long): Unit = {
    val pages = space.pages
    val candidates = new Array[Long](pages.numbers + pages.ownNumbers)
    var n = 0
    var number = 0
    while (number < pages.numbers) {
      if (pages.pageAt(number) != null && !pages.isOpen(number)) {
        candidates(n) = (coolDown(heat, number).toLong << 32) | number
        n += 1
      }
      number += 1
    }
    number = 0
    while (number < pages.ownNumbers) {
      if (pages.ownAt(number) != null) {
        candidates(n) = (coolDown(ownHeat, number).toLong << 32) | Own | number
        n += 1
      }
      number += 1
    }
    Arrays.sort(candidates, 0, n)
    if (n > 0) evictFirst(candidates, n, bytes)
  }

  private def coolDown(of: Array[Int], number: Int): Int =
    if (number >= of.length) {
      0
    } else {
      of(number) -= (of(number) + 7) >>> 3
      of(number)
    }

  private def evictFirst(candidates: Array[Long], count: Int, bytes: Long): Unit = {
    val pages = space.pages
    if (file == null) file = new LocalFile(tier.newFile(), tier.traffic)
    // Addresses of evicted records may be those of records read before.
    owner.forgetRead()
    val chosen = new Array[Boolean](pages.numbers)
    var left = bytes
    var i = 0
    while (i < count && left > 0) {
      if ((candidates(i) & Own) != 0) {
        val number = (candidates(i) & (Own - 1)).toInt
        left -= pages.ownAt(number).length
        val length = TableRecord.bytesAt(pages.ownAt(number), 0, owner.linkWords)
        pages.evictOwn(number, file, length.toInt)
      } else {
        val number = candidates(i).toInt
        left -= pages.pageAt(number).length
        chosen(number) = true
      }
      i += 1
    }
    space.evict(chosen, file)
  }

  private def end(last: MemoryAccount): Unit = last.close()

  /** Gives up the files. Nothing may be read from evicted pages afterwards, except through snapshots. */
  def close(): Unit = {
    changing = false
    val last = account
    account = null
    // A snapshot that is still being written keeps memory. Until its end, this object keeps the account open.
    if (last != null) space.pages.afterSnapshots(last.set(_, 0), () => end(last))
    if (file != null) space.pages.close()
    file = null
  }
}

private object PageEviction {
  private final val Own = 1L << 31

  /** A record with a page of its own weighs as much as its bytes in a page of several. */
  private final val OwnHeat = 128

  /** With a budget below the bytes of the smallest page, not even open pages stay: tests of small states do so. */
  private final val MinPage = RecordPages.FirstPageWords * 8L

  private def closing(account: MemoryAccount): Runnable = () => account.close()
}
