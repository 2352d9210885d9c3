// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.lang.invoke.VarHandle
import java.util.Arrays

import io.github.sparkckpt.engine.segment.{SegmentFormat, StateTooLargeException}

import org.apache.spark.unsafe.Platform

/**
 * Memory for records, in pages. A record is addressed by an unsigned 32-bit number of 8-byte words: page number times
 * 2^13 plus the word in the page, so that 32 GiB can be addressed. Address 0 is never given out and stands for "none".
 *
 * Pages grow from 1 KiB to 64 KiB: thousands of tiny stores cost little, a page that a snapshot shares is copied
 * quickly, and no page is a humongous object for G1 (half a region or more), which would waste up to a region each.
 *
 * A record above 8 KiB has a page of its own, of any size. Such pages are addressed by the last 16 words of all page
 * numbers, which no shared page reaches: 8 million of them can be told apart, and they take no numbers from the others.
 *
 * Snapshots can share pages: see [[share]] and [[writable]]. A record that dies on a shared page can be marked beside
 * it, so that the page needs no copy: see [[marks]].
 *
 * A page can be evicted to a local file, and then never changes: records that die there are marked in memory. Its array
 * is null: see [[EvictedPages]].
 *
 * @param maxPages         limit of page numbers, lower in tests of the limit
 * @param maxPageWords largest page of several records, smaller in tests
 */
private[engine] final class RecordPages(
    maxPages: Int = RecordPages.MaxPages,
    maxPageWords: Int = RecordPages.MaxPageWords) {
  import RecordPages._

  private var pages = new Array[Array[Byte]](2)
  private var usedWords = new Array[Int](2)
  private var birth = new Array[Int](2)
  private var pageCount = 0
  private var openPage = -1
  private var coldPage = -1
  private val freeNumbers = new IntStack

  // Pages of single records, by number.
  private var ownPages = NoPages
  private var ownBirth = NoBirths
  private var ownCount = 0
  private val freeOwn = new IntStack
  private var capacity = 0L

  // Null until a page is evicted.
  @volatile private var evicted: EvictedPages = _

  // A page must be copied before a change if a live snapshot is younger than the page.
  private var snapshotsTaken = 0
  private val liveSnapshots = new IntStack
  private val liveShares = new java.util.ArrayList[SharedPages]
  private val replaced = new ReplacedPages
  private var afterShares: Runnable = _
  @volatile private var newestLive = 0

  /** Marks of records that died on shared pages in memory. */
  val marks: DeadMarks = new DeadMarks

  /** Bytes of all pages in memory. */
  def bytes: Long = capacity

  /** Bytes of memory that only snapshots keep. From any thread. */
  def sharedBytes: Long = if (newestLive == 0) 0L else liveSnapshots.synchronized {
    var sum = replaced.bytes
    liveShares.forEach(shared => sum += shared.bytes)
    sum
  }

  /** Bytes of memory for evicted pages. */
  def evictedMemoryBytes: Long = if (evicted == null) 0L else evicted.memoryBytes

  /** Bytes of evicted pages in the file. */
  def localBytes: Long = if (evicted == null) 0L else evicted.bytes

  /** Upper bound of the numbers of pages of several records. */
  def numbers: Int = pageCount

  /** The page of this number, null if it was freed or evicted. */
  def pageAt(number: Int): Array[Byte] = pages(number)

  /** Allocated words of the page of this number. */
  def usedAt(number: Int): Int = usedWords(number)

  /** True if new records go to the page of this number. */
  def isOpen(number: Int): Boolean = number == openPage || number == coldPage

  /** Gives new records a new page. */
  def closeOpen(): Unit = {
    openPage = -1
    coldPage = -1
  }

  /** Upper bound of the numbers of pages of single records. */
  def ownNumbers: Int = ownCount

  /** The page of a single record, null if it was freed or evicted. */
  def ownAt(number: Int): Array[Byte] = ownPages(number)

  /** The evicted page of this number, null if there is none. */
  def localAt(number: Int): LocalPage = if (evicted == null) null else evicted.page(number)

  /** The page of an address, for reading; null if it is evicted. */
  def page(address: Int): Array[Byte] =
    if ((address & WordMask) < FirstOwnWord) pages(address >>> PageShift) else ownPages(ownNumber(address))

  /** The record of an address on an evicted page. */
  def localRecord(address: Int, linkWords: Int): Array[Byte] = {
    // The caller has found no page in memory: another thread may have evicted it just now.
    VarHandle.acquireFence()
    evicted.record(address, linkWords)
  }

  /** The page of an address, for changing records that a snapshot may hold. It must not be evicted. */
  def writable(address: Int): Array[Byte] =
    if ((address & WordMask) < FirstOwnWord) writable(pages, birth, address >>> PageShift)
    else writable(ownPages, ownBirth, ownNumber(address))

  private def writable(of: Array[Array[Byte]], births: Array[Int], number: Int): Array[Byte] =
    if (births(number) < newestLive) copied(of, births, number) else of(number)

  private def copied(of: Array[Array[Byte]], births: Array[Int], number: Int): Array[Byte] = {
    val copy = of(number).clone()
    leave(births(number), of(number))
    of(number) = copy
    births(number) = snapshotsTaken
    copy
  }

  /** A page leaves the table; snapshots may still have it. */
  private def leave(birth: Int, page: Array[Byte]): Unit =
    if (birth < newestLive) liveSnapshots.synchronized(replaced.add(birth, page.length))

  /** True if a live snapshot has the page of an address, a page of several records in memory. */
  def isShared(address: Int): Boolean = (address & WordMask) < FirstOwnWord && isPageShared(address >>> PageShift)

  /** True if a live snapshot has the page of this number. */
  def isPageShared(number: Int): Boolean = birth(number) < newestLive

  /** True if a snapshot is live. */
  def hasSnapshots: Boolean = newestLive > 0

  /** Memory for a new record, which no snapshot has: it can be written through [[page]]. */
  def allocate(words: Int): Int = {
    if (words > OwnPageWords) {
      allocateOwn(words)
    } else {
      if (!fits(openPage, words)) openPage = newPage(math.max(words + 1, nextPageWords))
      place(openPage, words)
    }
  }

  /** Memory for a record that is likely to stay as it is, apart from new ones. */
  def allocateCold(words: Int): Int = {
    if (!fits(coldPage, words)) coldPage = newPage(math.max(words + 1, nextPageWords))
    place(coldPage, words)
  }

  private def fits(number: Int, words: Int): Boolean =
    number >= 0 && usedWords(number) + words <= (pages(number).length >>> 3)

  private def place(number: Int, words: Int): Int = {
    val word = usedWords(number)
    usedWords(number) = word + words
    (number << PageShift) | word
  }

  /** Memory for a new record in a page of its own, which may be longer than the record. */
  def allocateOwn(words: Int): Int = {
    val number = if (freeOwn.nonEmpty) freeOwn.pop() else addOwnNumber()
    val page = new Array[Byte](words << 3)
    ownPages(number) = page
    ownBirth(number) = snapshotsTaken
    capacity += page.length
    ownAddress(number)
  }

  /** Frees the page of a record with its own page. Nothing may still refer to it. */
  def freeOwn(address: Int): Unit = {
    val number = ownNumber(address)
    if (ownPages(number) == null) {
      evicted.freeOwn(number)
    } else {
      capacity -= ownPages(number).length
      leave(ownBirth(number), ownPages(number))
      ownPages(number) = null
    }
    freeOwn.push(number)
  }

  /** Frees a page of several records. Nothing may still refer to it. */
  def free(number: Int): Unit = {
    // In this order for a walk in another thread (see RecordWalk): who finds no marks or no page expects no records.
    usedWords(number) = 0
    VarHandle.releaseFence()
    marks.remove(number)
    VarHandle.releaseFence()
    if (pages(number) == null) {
      evicted.free(number)
    } else {
      capacity -= pages(number).length
      leave(birth(number), pages(number))
      pages(number) = null
    }
    if (openPage == number) openPage = -1
    if (coldPage == number) coldPage = -1
    freeNumbers.push(number)
  }

  /** Moves a page of several records, which must not be open, to a local file. */
  def evict(number: Int, file: LocalFile): Unit = {
    val page = pages(number)
    makeEvicted(file)
    val local = evicted.add(number, page, usedWords(number) << 3)
    // The marks stay here as well: a reader may be on the page in memory.
    if (marks.on(number) != null) evicted.setDead(number, marks.on(number))
    // A walk that finds no page finds all of it in `evicted`.
    VarHandle.releaseFence()
    pages(number) = null
    capacity -= page.length
    liveSnapshots.synchronized(liveShares.forEach(_.evicted(number, page, local)))
  }

  /** Moves a page of a single record to a local file. */
  def evictOwn(number: Int, file: LocalFile, length: Int): Unit = {
    val page = ownPages(number)
    makeEvicted(file)
    val local = evicted.addOwn(number, page, length)
    VarHandle.releaseFence()
    ownPages(number) = null
    capacity -= page.length
    liveSnapshots.synchronized(liveShares.forEach(_.evictedOwn(number, page, local)))
  }

  private def makeEvicted(file: LocalFile): Unit = if (evicted == null) evicted = new EvictedPages(file)

  /** Empty evicted pages for a snapshot of this many pages. */
  private[engine] def emptyShare(count: Int, own: Int): EvictedPages = evicted.shareNone(count, own)

  /** Gives back all of the local file that no snapshot needs. Nothing may be read afterwards. */
  def close(): Unit = if (evicted != null) evicted.close()

  /** Marks a record on an evicted page of several records as dead. */
  def markDead(address: Int): Unit = {
    val number = address >>> PageShift
    evicted.markDead(number, address & WordMask, shared = birth(number) < newestLive)
    birth(number) = snapshotsTaken
  }

  /** A view of all present records. Until it is closed, [[writable]] copies each page before its first change. */
  def share(): SharedPages = liveSnapshots.synchronized {
    snapshotsTaken += 1
    liveSnapshots.push(snapshotsTaken)
    newestLive = snapshotsTaken
    replaced.opened(snapshotsTaken)
    val shared = new SharedPages(this, snapshotsTaken, Arrays.copyOf(pages, pageCount),
      Arrays.copyOf(usedWords, pageCount), marks.copied(), Arrays.copyOf(ownPages, ownCount),
      if (evicted == null) null else evicted.share(pageCount, ownCount))
    liveShares.add(shared)
    shared
  }

  /** Ends the sharing with one view; from any thread. */
  private[engine] def unshare(snapshot: Int, shared: SharedPages): Unit = liveSnapshots.synchronized {
    liveSnapshots.remove(snapshot)
    newestLive = liveSnapshots.maximum
    replaced.closed(snapshot)
    liveShares.remove(shared)
    if (newestLive == 0 && afterShares != null) {
      afterShares.run()
      afterShares = null
    }
  }

  /**
   * The table is given up: its pages live as long as snapshots have them.
   *
   * @param keeps takes their bytes; called only if there are snapshots
   * @param ends  called once there are none
   */
  private[engine] def afterSnapshots(keeps: Long => Unit, ends: Runnable): Unit = liveSnapshots.synchronized {
    if (newestLive == 0) ends.run()
    else {
      keeps(capacity + replaced.bytes)
      afterShares = ends
    }
  }

  /** Walk over the present records. */
  def walk(linkWords: Int): RecordWalk =
    new RecordWalk(pages, usedWords, marks.all, pageCount, ownPages, ownCount, () => evicted, linkWords)

  /** Walk over the records of a page. */
  def walkOf(number: Int, linkWords: Int): RecordWalk =
    new RecordWalk(pages, usedWords, marks.all, number + 1, ownPages, 0, () => evicted, linkWords, number)

  private def nextPageWords: Int =
    math.max(FirstPageWords, math.min((capacity + localBytes) >>> 3, maxPageWords.toLong)).toInt

  private def newPage(words: Int): Int = {
    val number = if (freeNumbers.nonEmpty) freeNumbers.pop() else addNumber()
    pages(number) = new Array[Byte](words << 3)
    birth(number) = snapshotsTaken
    capacity += pages(number).length
    // Address 0 is "none".
    usedWords(number) = if (number == 0) 1 else 0
    number
  }

  private def addNumber(): Int = {
    if (pageCount == maxPages) {
      throw new StateTooLargeException(
        s"A column family of one partition needs more than $maxPages pages (32 GiB) of memory: " +
          "use more partitions.")
    }
    if (pageCount == pages.length) {
      val length = pageCount * 2
      pages = Arrays.copyOf(pages, length)
      usedWords = Arrays.copyOf(usedWords, length)
      birth = Arrays.copyOf(birth, length)
    }
    pageCount += 1
    pageCount - 1
  }

  private def addOwnNumber(): Int = {
    val most = maxPages << OwnShift
    if (ownCount == most) {
      throw new StateTooLargeException(
        s"A column family of one partition has more than $most records of over ${OwnPageWords << 3} bytes: " +
          "use more partitions.")
    }
    if (ownCount == ownPages.length) {
      val length = math.max(4, ownCount + (ownCount >> 1))
      ownPages = Arrays.copyOf(ownPages, length)
      ownBirth = Arrays.copyOf(ownBirth, length)
    }
    ownCount += 1
    ownCount - 1
  }
}

private[engine] object RecordPages {
  final val PageShift = 13
  final val WordMask = (1 << PageShift) - 1

  /** Words at the end of each page number that address pages of single records. */
  final val OwnShift = 4
  final val FirstOwnWord = (1 << PageShift) - (1 << OwnShift)

  /** Just below 64 KiB with the array's header, so 16 pages fill a G1 region of 1 MiB. */
  final val MaxPageWords = FirstOwnWord
  final val FirstPageWords = 128

  /** Records longer than this have a page of their own: at most an eighth of a page is lost at its end. */
  final val OwnPageWords = 1024

  private[engine] val NoPages = new Array[Array[Byte]](0)
  private[engine] val NoMarks = new Array[Array[Long]](0)
  private val NoBirths = new Array[Int](0)

  /** The last page number stays free: addresses -1 and -2 have other meanings in write buffers. */
  final val MaxPages = (1 << (32 - PageShift)) - 1

  /** Longest page of a single record in bytes: a key, its value and room to grow. */
  final val MaxRecordBytes = (1L << 31) - 64

  /** Offset in bytes of the record of an address from the start of its page. */
  def start(address: Int): Int = {
    val word = address & WordMask
    if (word < FirstOwnWord) word << 3 else 0
  }

  /** True if the record of an address has a page of its own. */
  def isOwn(address: Int): Boolean = (address & WordMask) >= FirstOwnWord

  /** Number among the pages of single records. */
  def ownNumber(address: Int): Int =
    ((address >>> PageShift) << OwnShift) | (address & ((1 << OwnShift) - 1))

  /** The address of the record in a page of its own. */
  def ownAddress(number: Int): Int =
    ((number >>> OwnShift) << PageShift) | FirstOwnWord | (number & ((1 << OwnShift) - 1))

  /** Offset of the record of an address in its page, as in `Platform`. */
  def offset(address: Int): Long = {
    val word = address & WordMask
    if (word < FirstOwnWord) Platform.BYTE_ARRAY_OFFSET + (word.toLong << 3) else Platform.BYTE_ARRAY_OFFSET
  }

  /** Refuses a row that a file has, but no page can hold. */
  def checkRecordBytes(bytes: Long): Unit = if (bytes > MaxRecordBytes) throw tooLarge(bytes, MaxRecordBytes)

  /** Refuses a row that a batch writes, but no block of a file can hold: the batch could not be committed. */
  def checkRowBytes(bytes: Long): Unit = {
    val most = SegmentFormat.maxRowBytes
    if (bytes > most) throw tooLarge(bytes, most)
  }

  private def tooLarge(bytes: Long, most: Long) = new StateTooLargeException(
    s"A key with its value, which may be a list, takes $bytes bytes; at most $most are possible: divide the value " +
      "among several keys.")
}

/** The pages of one moment, for one snapshot. A page that is evicted meanwhile leaves memory here too. */
private[engine] final class SharedPages(
    owner: RecordPages,
    id: Int,
    private var pages: Array[Array[Byte]],
    usedWords: Array[Int],
    private var marks: Array[Array[Long]],
    private var ownPages: Array[Array[Byte]],
    private var local: EvictedPages) {

  /** Bytes of memory beside the pages. */
  val bytes: Long = pages.length * 8L + ownPages.length * 4L + marks.length * 4L +
    marks.count(_ != null) * DeadMarks.Words * 8L

  private var closed = false

  /** True if pages are in a local file: then only walks are quick. */
  def hasLocal: Boolean = synchronized(local != null && local.nonEmpty)

  /** The page of an address in memory. Only if no page is evicted meanwhile. */
  def page(address: Int): Array[Byte] =
    if (RecordPages.isOwn(address)) ownPages(RecordPages.ownNumber(address))
    else pages(address >>> RecordPages.PageShift)

  /** The record of an address on a page that was evicted meanwhile. */
  def localRecord(address: Int, linkWords: Int): Array[Byte] = synchronized(local).record(address, linkWords)

  /** A walk over the records. */
  def walk(linkWords: Int): RecordWalk =
    new RecordWalk(
      pages, usedWords, marks, pages.length, ownPages, ownPages.length, () => synchronized(local), linkWords)

  private[engine] def evicted(number: Int, page: Array[Byte], to: LocalPage): Unit = synchronized {
    if (!closed && number < pages.length && (pages(number) eq page)) {
      makeLocal().adopt(number, to)
      if (number < marks.length && marks(number) != null) local.setDead(number, marks(number))
      pages(number) = null
    }
  }

  private[engine] def evictedOwn(number: Int, page: Array[Byte], to: LocalPage): Unit = synchronized {
    if (!closed && number < ownPages.length && (ownPages(number) eq page)) {
      makeLocal().adoptOwn(number, to)
      ownPages(number) = null
    }
  }

  private def makeLocal(): EvictedPages = {
    if (local == null) local = owner.emptyShare(pages.length, ownPages.length)
    local
  }

  /** Ends the sharing; from any thread. */
  def close(): Unit = {
    owner.unshare(id, this)
    synchronized {
      closed = true
      if (local != null) local.close()
      // A holder of the snapshot keeps no pages.
      local = null
      pages = RecordPages.NoPages
      marks = RecordPages.NoMarks
      ownPages = RecordPages.NoPages
    }
  }
}
