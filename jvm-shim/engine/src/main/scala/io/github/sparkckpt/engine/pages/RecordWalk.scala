// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.lang.invoke.VarHandle

import io.github.sparkckpt.engine.bytes.EntryCursor

import org.apache.spark.unsafe.Platform

/**
 * Walk over a table's live records in the order of memory: of the table itself, which must not change meanwhile, or of
 * a snapshot. Records with a page of their own come last. Evicted pages are read whole, one after another, each into an
 * array of its own.
 *
 * Pages may be evicted or freed during the walk, by [[StateTable.evict]] in another thread. The arrays are plain
 * memory, so both sides have fences, for processors that reorder loads or stores (ARM) and for the compiler. Who frees
 * a page of dead records sets its used words to 0, then removes its marks, then the page; who evicts one has it in
 * `evicted` before it removes the page. The walk loads in the opposite order: the marks, then the page, then the used
 * words. So a walk that misses the marks or the page of a freed page sees 0 used words, and one that misses an evicted
 * page finds it in the file. A walk that sees 0 used words, but marks or page of before, visits nothing there: all are
 * dead.
 *
 * @param pages pages by number, null if freed or evicted
 * @param usedWords used words of each page
 * @param marks    marks of dead records on pages in memory, a bit for each word, null for a page without any
 * @param ownPages pages of single records by number, null if freed or evicted
 * @param evicted      evicted pages, null if there are none. Pages may be evicted during the walk
 * @param linkWords words of links in each record
 * @param from number of the first page
 */
private[engine] final class RecordWalk(
    pages: Array[Array[Byte]],
    usedWords: Array[Int],
    marks: Array[Array[Long]],
    numbers: Int,
    ownPages: Array[Array[Byte]],
    ownNumbers: Int,
    evicted: () => EvictedPages,
    linkWords: Int,
    from: Int = 0) {

  private var number = from - 1
  private var current: Array[Byte] = _
  // Marks of records that died while the page could not be changed, null if there are none.
  private var dead: Array[Long] = _
  private var word = 0
  private var used = 0
  private var header = 0L
  private var own = 0

  // The record of the last `next`.
  private var recordPage: Array[Byte] = _
  private var recordOffset = 0L
  private var recordWords = 0

  /** Address of the next live record, 0 at the end. */
  def next(): Int = {
    var found = 0
    var more = true
    while (found == 0 && more) {
      if (word >= used) {
        more = nextPage()
      } else {
        val offset = RecordPages.offset(word)
        header = Platform.getLong(current, offset)
        if (!TableRecord.isDead(header) && (dead == null || (dead(word >>> 6) & (1L << word)) == 0)) {
          recordPage = current
          recordOffset = offset
          found = (number << RecordPages.PageShift) | word
        }
        recordWords = TableRecord.words(header, current, offset, linkWords)
        word += recordWords
      }
    }
    if (found == 0) nextOwn() else found
  }

  private def nextOwn(): Int = {
    recordPage = null
    recordOffset = Platform.BYTE_ARRAY_OFFSET
    while (own < ownNumbers && recordPage == null) {
      recordPage = ownPages(own)
      VarHandle.acquireFence()
      if (recordPage == null) {
        val all = evicted()
        val local = if (all == null) null else all.ownPage(own)
        if (local != null) recordPage = local.read()
      }
      own += 1
    }
    if (recordPage == null) {
      0
    } else {
      header = Platform.getLong(recordPage, recordOffset)
      RecordPages.ownAddress(own - 1)
    }
  }

  /** Key group of the record of the last [[next]]. */
  def keyGroup: Int = TableRecord.keyGroup(header)

  /** Page of the record of the last [[next]]. */
  def page: Array[Byte] = recordPage

  /** Words of the record of the last [[next]], which has no page of its own. */
  def words: Int = recordWords

  /** Points a cursor at the record of the last [[next]]. */
  def point(cursor: EntryCursor): Unit = TableRecord.point(recordPage, recordOffset, linkWords, cursor)

  private def nextPage(): Boolean = {
    if (number < numbers) number += 1
    if (number < numbers) {
      dead = if (number < marks.length) marks(number) else null
      VarHandle.acquireFence()
      current = pages(number)
      VarHandle.acquireFence()
      used = usedWords(number)
      word = if (number == 0) 1 else 0
      if (current == null && used > 0) {
        val all = evicted()
        val local = if (all == null) null else all.page(number)
        if (local == null) throw new IllegalStateException(s"Page $number is neither in memory nor evicted.")
        current = local.read()
        dead = all.deadOn(number)
      }
      true
    } else {
      used = 0
      word = 0
      false
    }
  }
}
