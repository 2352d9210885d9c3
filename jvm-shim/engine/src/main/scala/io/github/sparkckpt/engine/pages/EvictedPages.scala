// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.util.Arrays

/**
 * Pages of a table, or of a snapshot of it, that are in a local file, by the numbers of [[RecordPages]]. Records that
 * died after the eviction are marked here, a bit for each word. One thread changes it; others may read meanwhile.
 */
private[engine] final class EvictedPages(file: LocalFile) {
  import EvictedPages._

  private var pages = NoPages
  private var dead = NoBits
  private var own = NoPages
  private var count = 0
  private var fileBytes = 0L
  private var memory = 0L

  // Decays, so that a few long records do not matter for long.
  @volatile private var expectedRecord = 64

  def nonEmpty: Boolean = count > 0

  /** Bytes of the pages in the file. */
  def bytes: Long = fileBytes

  /** Bytes of memory. */
  def memoryBytes: Long = memory + (pages.length + own.length) * 4L + dead.length * 4L

  /** The page of this number, null if it is not evicted. */
  def page(number: Int): LocalPage = synchronized(if (number < pages.length) pages(number) else null)

  /** The page of a single record, null if it is not evicted. */
  def ownPage(number: Int): LocalPage = synchronized(if (number < own.length) own(number) else null)

  /** Marks of the records that died since the eviction of a page, a bit for each word; null if there are none. */
  def deadOn(number: Int): Array[Long] = synchronized(dead(number))

  /** The record of an address, in an array of its own. */
  def record(address: Int, linkWords: Int): Array[Byte] = {
    val isOwn = RecordPages.isOwn(address)
    val page = if (isOwn) ownPage(RecordPages.ownNumber(address)) else this.page(address >>> RecordPages.PageShift)
    if (isOwn) {
      page.record(0, linkWords, page.length)
    } else {
      val found = page.record(RecordPages.start(address), linkWords, expectedRecord)
      expectedRecord = math.max(expectedRecord - (expectedRecord >>> 4), found.length)
      found
    }
  }

  /** Writes a page. */
  def add(number: Int, bytes: Array[Byte], length: Int): LocalPage = {
    val page = file.write(bytes, length)
    set(number, page)
    page
  }

  /** Writes a page of a single record. */
  def addOwn(number: Int, bytes: Array[Byte], length: Int): LocalPage = {
    val page = file.write(bytes, length)
    setOwn(number, page)
    page
  }

  /** Takes a page that the table has evicted. */
  def adopt(number: Int, page: LocalPage): Unit = {
    page.retain()
    set(number, page)
  }

  def adoptOwn(number: Int, page: LocalPage): Unit = {
    page.retain()
    setOwn(number, page)
  }

  private def set(number: Int, page: LocalPage): Unit = synchronized {
    if (number >= pages.length) {
      val length = math.max(number + 1, pages.length * 2)
      pages = Arrays.copyOf(pages, length)
      dead = Arrays.copyOf(dead, length)
    }
    pages(number) = page
    added(page)
  }

  private def setOwn(number: Int, page: LocalPage): Unit = synchronized {
    if (number >= own.length) own = Arrays.copyOf(own, math.max(number + 1, own.length * 2))
    own(number) = page
    added(page)
  }

  private def added(page: LocalPage): Unit = {
    count += 1
    fileBytes += page.blocks.toLong << LocalFile.BlockShift
    memory += page.memoryBytes
  }

  /** Marks a record as dead. `shared` if a snapshot may have the present marks. */
  def markDead(number: Int, word: Int, shared: Boolean): Unit = {
    if (dead(number) == null) {
      dead(number) = new Array[Long](((pages(number).length >>> 3) + 63) >>> 6)
      memory += dead(number).length * 8L
    } else if (shared) {
      dead(number) = dead(number).clone()
    }
    dead(number)(word >>> 6) |= 1L << word
  }

  /** Takes marks of the records that died before the eviction of a page. */
  def setDead(number: Int, marks: Array[Long]): Unit = synchronized {
    dead(number) = Arrays.copyOf(marks, ((pages(number).length >>> 3) + 63) >>> 6)
    memory += dead(number).length * 8L
  }

  /** Gives up a page. */
  def free(number: Int): Unit = {
    removed(pages(number))
    pages(number) = null
    if (dead(number) != null) memory -= dead(number).length * 8L
    dead(number) = null
  }

  def freeOwn(number: Int): Unit = {
    removed(own(number))
    own(number) = null
  }

  private def removed(page: LocalPage): Unit = {
    count -= 1
    fileBytes -= page.blocks.toLong << LocalFile.BlockShift
    memory -= page.memoryBytes
    page.release()
  }

  /** The same pages, for a snapshot. */
  def share(pageCount: Int, ownCount: Int): EvictedPages = {
    val shared = shareNone(pageCount, ownCount)
    System.arraycopy(dead, 0, shared.dead, 0, math.min(pageCount, dead.length))
    var i = 0
    while (i < math.min(pageCount, pages.length)) {
      if (pages(i) != null) shared.adopt(i, pages(i))
      i += 1
    }
    i = 0
    while (i < math.min(ownCount, own.length)) {
      if (own(i) != null) shared.adoptOwn(i, own(i))
      i += 1
    }
    shared
  }

  /** No pages, for a snapshot with this many. */
  def shareNone(pageCount: Int, ownCount: Int): EvictedPages = {
    file.retain()
    val shared = new EvictedPages(file)
    shared.pages = new Array[LocalPage](pageCount)
    shared.dead = new Array[Array[Long]](pageCount)
    shared.own = new Array[LocalPage](ownCount)
    shared
  }

  /** Gives up all pages, and the file. */
  def close(): Unit = {
    pages.foreach(page => if (page != null) page.release())
    own.foreach(page => if (page != null) page.release())
    file.release()
  }
}

private[engine] object EvictedPages {
  private val NoPages = new Array[LocalPage](0)
  private val NoBits = new Array[Array[Long]](0)
}
