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
package org.apache.spark.sql.ckpt.backend

import java.util.Arrays

import org.apache.spark.unsafe.Platform

/**
 * Allocation of memory for a table's records.
 *
 * The place of a dead record is reused for the next record of the same size. With varying sizes or a shrinking table,
 * dead places add up; [[compact]] then moves live records out of the pages with many dead ones.
 */
private[backend] final class RecordSpace(table: StateTable) {
  import RecordSpace._

  val pages = new RecordPages

  private val freePlaces = new Array[IntStack](LargestReuse + 1)
  private var deadWords = new Array[Int](4)
  private var totalDead = 0L
  private var killedSinceCompaction = 0L
  private var hand = 0

  /** Bytes of bookkeeping. */
  def bytes: Long = {
    var sum = 0L
    var i = 0
    while (i <= LargestReuse) {
      if (freePlaces(i) != null) sum += freePlaces(i).bytes
      i += 1
    }
    sum
  }

  /** Memory for a record; a snapshot may share its page. */
  def allocate(words: Int): Int = {
    val places = if (words <= LargestReuse) freePlaces(words) else null
    if (places != null && places.nonEmpty) {
      val address = places.pop()
      deadWords(address >>> RecordPages.PageShift) -= words
      totalDead -= words
      address
    } else {
      pages.allocate(words)
    }
  }

  /** Memory for a record in a page of its own, with an eighth more for it to grow. */
  def allocateWithRoom(words: Int): Int =
    pages.allocateOwn(math.max(words, math.min(words.toLong + (words >>> 3), RecordPages.MaxRecordBytes >>> 3).toInt))

  /** Frees a record. Nothing may still refer to it. */
  def kill(address: Int): Unit = {
    if (RecordPages.isOwn(address)) {
      pages.freeOwn(address)
    } else {
      val number = address >>> RecordPages.PageShift
      val offset = RecordPages.offset(address)
      val header = Platform.getLong(pages.page(address), offset)
      val words = TableRecord.words(header, pages.page(address), offset, table.linkWords)
      Platform.putLong(pages.writable(address), offset, header | TableRecord.Dead)
      if (number >= deadWords.length) deadWords = Arrays.copyOf(deadWords, math.max(number + 1, number * 2))
      deadWords(number) += words
      totalDead += words
      killedSinceCompaction += words
      if (words <= LargestReuse) {
        if (freePlaces(words) == null) freePlaces(words) = new IntStack
        freePlaces(words).push(address)
      }
    }
  }

  /**
   * Frees pages that are at least a fifth dead, if a fifth of everything is. Moves at most a few words per word that
   * died since, so a batch pays no more than it and its predecessors have removed.
   */
  def compact(all: Boolean): Unit = {
    if (totalDead > SmallestDead && totalDead * 5 > (pages.bytes >>> 3)) {
      val budget = if (all) Long.MaxValue else MinBudget + killedSinceCompaction * 8
      killedSinceCompaction = 0
      val chosen = choose(budget)
      var i = 0
      while (i <= LargestReuse) {
        if (freePlaces(i) != null) freePlaces(i).removePages(chosen)
        i += 1
      }
      i = 0
      while (i < chosen.length) {
        if (chosen(i)) empty(i)
        i += 1
      }
    }
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
      if (dead > 0 && dead.toLong * 5 >= used && hand != pages.openNumber) {
        chosen(hand) = true
        left -= used - dead
      }
      seen += 1
    }
    chosen
  }

  private def empty(number: Int): Unit = {
    val page = pages.pageAt(number)
    val used = pages.usedAt(number)
    var word = if (number == 0) 1 else 0
    while (word < used) {
      val address = (number << RecordPages.PageShift) | word
      val offset = RecordPages.offset(address)
      val header = Platform.getLong(page, offset)
      val words = TableRecord.words(header, page, offset, table.linkWords)
      if (!TableRecord.isDead(header)) table.relocate(address, words)
      word += words
    }
    totalDead -= deadWords(number)
    deadWords(number) = 0
    pages.free(number)
  }
}

private[backend] object RecordSpace {

  /** Words of the largest records with reusable places. */
  final val LargestReuse = 256

  /** Below this many dead words (16 KiB), compaction does not pay. */
  final val SmallestDead = 2048L
  final val MinBudget = 8192L
}
