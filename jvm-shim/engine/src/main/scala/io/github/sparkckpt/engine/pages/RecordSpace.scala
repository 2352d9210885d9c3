// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.util.Arrays

import org.apache.spark.unsafe.Platform

/**
 * Allocation of memory for a table's records.
 *
 * The place of a dead record is reused for the next record of the same size. With varying sizes or a shrinking table,
 * dead places add up; [[compact]] then moves live records out of the pages with many dead ones.
 */
private[engine] final class RecordSpace(owner: RecordOwner, tier: LocalTier) {
  import RecordSpace._

  val pages: RecordPages =
    if (tier == null) new RecordPages else new RecordPages(maxPageWords = tier.maxPageWords)

  /** Moves pages to the local disk; null without a tier. */
  private[engine] val eviction: PageEviction = if (tier == null) null else new PageEviction(owner, this, tier)

  private val freePlaces = new Array[IntStack](MaxReuse + 1)
  private var deadWords = new Array[Int](4)
  private var totalDead = 0L
  private var killedSinceCompaction = 0L
  private var hand = 0

  /**
   * True if a change of a record on a page that a snapshot shares leaves the page as it is: the record moves, and its
   * old place is marked as dead. Else the page is copied.
   */
  var copiesRecords: Boolean = false

  // Of evicted pages.
  private var localWords = 0L
  private var localDead = 0L
  private var localKilled = 0L

  /** Bytes of bookkeeping. */
  def bytes: Long = {
    var sum = 0L
    var i = 0
    while (i <= MaxReuse) {
      if (freePlaces(i) != null) sum += freePlaces(i).bytes
      i += 1
    }
    sum + deadWords.length * 4L + (if (eviction == null) 0L else eviction.bytes)
  }

  /** Memory for a record, to be written through [[pageOfNew]]; a snapshot may share its page. */
  def allocate(words: Int): Int = {
    if (eviction != null) eviction.beforeAllocation()
    val places = if (words <= MaxReuse) freePlaces(words) else null
    if (places != null && places.nonEmpty && !(copiesRecords && pages.isShared(places.top))) {
      val address = places.pop()
      deadWords(address >>> RecordPages.PageShift) -= words
      totalDead -= words
      address
    } else {
      val address = pages.allocate(words)
      if (eviction != null) eviction.touched(address)
      address
    }
  }

  /** Memory for a record in a page of its own, with an eighth more for it to grow. */
  def allocateWithRoom(words: Int): Int = {
    if (eviction != null) eviction.beforeAllocation()
    pages.allocateOwn(math.max(words, math.min(words.toLong + (words >>> 3), RecordPages.MaxRecordBytes >>> 3).toInt))
  }

  /**
   * Memory for a record that is likely to grow, in a page of several: an eighth more, as spare words behind it. They
   * count as dead, so that the accounts of a page need not know whose they are.
   */
  def allocateWithSpare(words: Int): Int = {
    val spare = math.min(words >>> 3, RecordPages.OwnPageWords - words)
    if (spare <= owner.linkWords) {
      allocate(words)
    } else {
      val address = allocate(words + spare)
      putSpare(address + words, spare)
      addDead(address >>> RecordPages.PageShift, spare)
      totalDead += spare
      address
    }
  }

  private def putSpare(address: Int, words: Int): Unit =
    Platform.putLong(pageOfNew(address), RecordPages.offset(address), TableRecord.spare(words, owner.linkWords))

  /** The page of an allocated place, for writing its record. If records are copied, it is no place that was reused. */
  def pageOfNew(address: Int): Array[Byte] = if (copiesRecords) pages.page(address) else pages.writable(address)

  /** Spare words behind a record of this many words in a page of several in memory. */
  def spareAfter(address: Int, words: Int): Int =
    if ((address & RecordPages.WordMask) + words >= pages.usedAt(address >>> RecordPages.PageShift)) {
      0
    } else {
      val page = pages.page(address)
      val offset = RecordPages.offset(address + words)
      val header = Platform.getLong(page, offset)
      if (TableRecord.isSpare(header)) TableRecord.words(header, page, offset, owner.linkWords) else 0
    }

  /** Gives a record some of the spare words behind it; false if the rest would be too small to be any. */
  def takeSpare(address: Int, words: Int, more: Int): Boolean = {
    val rest = spareAfter(address, words) - more
    (rest == 0 || rest > owner.linkWords) && {
      if (rest > 0) putSpare(address + words + more, rest)
      deadWords(address >>> RecordPages.PageShift) -= more
      totalDead -= more
      true
    }
  }

  /** Frees a record of this many words, without reading it if it is evicted. Nothing may still refer to it. */
  def kill(address: Int, words: Int): Unit = {
    if (RecordPages.isOwn(address)) {
      pages.freeOwn(address)
    } else if (pages.page(address) == null) {
      killEvicted(address, words)
    } else {
      addDead(address >>> RecordPages.PageShift, words)
      totalDead += words
      killedSinceCompaction += words
      if (keepsPage(address)) pages.marks.add(address) else freePlace(address, words)
    }
  }

  /** True if a record of this address must move to be changed. */
  def keepsPage(address: Int): Boolean = copiesRecords && pages.isShared(address)

  private def freePlace(address: Int, words: Int): Unit = {
    val page = pages.writable(address)
    val offset = RecordPages.offset(address)
    Platform.putLong(page, offset, TableRecord.dead(Platform.getLong(page, offset)))
    if (words <= MaxReuse) {
      if (freePlaces(words) == null) freePlaces(words) = new IntStack
      freePlaces(words).push(address)
    }
  }

  /** A view of all records. */
  def share(): SharedPages = {
    settle()
    pages.share()
  }

  /** Frees the places of records that died on pages while a snapshot shared them, and none does any more. */
  private def settle(): Unit = pages.marks.take(!pages.isPageShared(_)) { address =>
    val page = pages.page(address)
    if (page != null) {
      val offset = RecordPages.offset(address)
      freePlace(address, TableRecord.words(Platform.getLong(page, offset), page, offset, owner.linkWords))
    }
  }

  private def addDead(number: Int, words: Int): Unit = {
    if (number >= deadWords.length) deadWords = Arrays.copyOf(deadWords, math.max(number + 1, number * 2))
    deadWords(number) += words
  }

  private def killEvicted(address: Int, words: Int): Unit = {
    val number = address >>> RecordPages.PageShift
    addDead(number, words)
    localDead += words
    localKilled += words
    if (deadWords(number) == wordsOf(number)) freeEvicted(number) else pages.markDead(address)
  }

  /** Words of the records of a page. */
  private def wordsOf(number: Int): Int = pages.usedAt(number) - (if (number == 0) 1 else 0)

  private def freeEvicted(number: Int): Unit = {
    localWords -= wordsOf(number)
    localDead -= deadWords(number)
    deadWords(number) = 0
    pages.free(number)
  }

  /** Moves pages of several records to a file. */
  private[engine] def evict(numbers: Array[Boolean], file: LocalFile): Unit = {
    removePlaces(numbers)
    var number = 0
    while (number < numbers.length) {
      if (numbers(number)) {
        addDead(number, 0)
        totalDead -= deadWords(number)
        if (deadWords(number) == wordsOf(number)) {
          deadWords(number) = 0
          pages.free(number)
        } else {
          pages.evict(number, file)
          localWords += wordsOf(number)
          localDead += deadWords(number)
        }
      }
      number += 1
    }
  }

  private def removePlaces(numbers: Array[Boolean]): Unit = {
    var i = 0
    while (i <= MaxReuse) {
      if (freePlaces(i) != null) freePlaces(i).removePages(numbers)
      i += 1
    }
  }

  /**
   * Frees pages that are at least a fifth dead, if a fifth of everything is. Moves at most a few words per word that
   * this batch has killed: enough to keep the share of dead words from growing, so no batch has to catch up.
   */
  def compact(all: Boolean): Unit = {
    settle()
    val budget = if (all) Long.MaxValue else MinBudget + killedSinceCompaction * 8
    killedSinceCompaction = 0
    if (totalDead > SmallestDead && totalDead * 5 > (pages.bytes >>> 3)) {
      val chosen = choose(budget)
      if (eviction == null) empty(chosen) else eviction.without(empty(chosen))
    }
    if (localDead * 10 > localWords * MaxLocalDead) compactEvicted(all)
  }

  /**
   * Moves the live records of the evicted pages with most dead ones to new pages. Reads no more than a few words per
   * word that died since.
   */
  private def compactEvicted(all: Boolean): Unit = {
    var budget = if (all) Long.MaxValue else MinBudget + localKilled * 8
    localKilled = 0
    // By the share of dead words: each entry holds this above the number.
    var shares = new Array[Long](64)
    var n = 0
    var number = 0
    while (number < math.min(pages.numbers, deadWords.length)) {
      if (deadWords(number) > 0 && pages.localAt(number) != null) {
        if (n == shares.length) shares = Arrays.copyOf(shares, n * 2)
        shares(n) = (deadWords(number).toLong * 1000 / wordsOf(number) << 32) | number
        n += 1
      }
      number += 1
    }
    Arrays.sort(shares, 0, n)
    while (n > 0 && budget > 0 && localDead * 10 > localWords * (MaxLocalDead - 0.3)) {
      n -= 1
      val worst = shares(n).toInt
      budget -= wordsOf(worst)
      emptyEvicted(worst)
    }
  }

  private def emptyEvicted(number: Int): Unit = {
    val walk = pages.walkOf(number, owner.linkWords)
    var address = walk.next()
    while (address != 0) {
      val words = walk.words
      owner.relocate(address, walk.page, RecordPages.offset(address), pages.allocateCold(words), words)
      address = walk.next()
    }
    freeEvicted(number)
    if (eviction != null) eviction.beforeAllocation()
  }

  private def choose(budget: Long): Array[Boolean] = {
    val n = pages.numbers
    val chosen = new Array[Boolean](n)
    var left = budget
    var seen = 0
    while (seen < n && left > 0) {
      hand = if (hand + 1 >= n) 0 else hand + 1
      val used = pages.usedAt(hand)
      val dead = if (hand < deadWords.length) deadWords(hand) else 0
      if (dead > 0 && dead.toLong * 5 >= used && !pages.isOpen(hand) && pages.pageAt(hand) != null) {
        chosen(hand) = true
        left -= used - dead
      }
      seen += 1
    }
    chosen
  }

  private def empty(chosen: Array[Boolean]): Unit = {
    removePlaces(chosen)
    var number = 0
    while (number < chosen.length) {
      if (chosen(number)) empty(number)
      number += 1
    }
  }

  private def empty(number: Int): Unit = {
    val page = pages.pageAt(number)
    val used = pages.usedAt(number)
    var word = if (number == 0) 1 else 0
    while (word < used) {
      val address = (number << RecordPages.PageShift) | word
      val offset = RecordPages.offset(address)
      val header = Platform.getLong(page, offset)
      val words = TableRecord.words(header, page, offset, owner.linkWords)
      if (!TableRecord.isDead(header) && !pages.marks.has(address)) {
        owner.relocate(address, page, offset, allocate(words), words)
      }
      word += words
    }
    totalDead -= deadWords(number)
    deadWords(number) = 0
    pages.free(number)
  }
}

private[engine] object RecordSpace {

  /** Words of the largest records with reusable places. */
  final val MaxReuse = 256

  /** Below this many dead words (16 KiB), compaction does not pay. */
  final val SmallestDead = 2048L
  final val MinBudget = 8192L

  /** Tenths of the evicted words that may be dead. */
  final val MaxLocalDead = 3
}
