package org.apache.spark.sql.ckpt.backend

import java.util.Arrays

import org.apache.spark.unsafe.Platform

/**
 * Memory for records, in pages. A record is addressed by an unsigned 32-bit number of 8-byte words: page
 * number times 2^13 plus the word in the page, so that 32 GiB can be addressed. Address 0 is never given
 * out and stands for "none".
 *
 * Pages grow from 1 KiB to 64 KiB: thousands of tiny stores cost little, a page that a snapshot shares is
 * copied quickly, and no page is a humongous object for G1 (half a region or more), which would waste up
 * to a region each. A record above 8 KiB has a page of its own.
 *
 * Pages can be shared with snapshots: see [[share]] and [[writable]].
 */
private[backend] final class RecordPages {
  import RecordPages._

  private var pages = new Array[Array[Byte]](2)
  private var usedWords = new Array[Int](2)
  private var birth = new Array[Int](2)
  private var pageCount = 0
  private var openPage = -1
  private val freeNumbers = new IntStack
  private var capacity = 0L

  // A page must be copied before it changes if a live snapshot is younger than the page.
  private var snapshotsTaken = 0
  private val liveSnapshots = new IntStack
  @volatile private var newestLive = 0

  /** Bytes that the pages take. */
  def bytes: Long = capacity

  /** Page numbers are below this. */
  def numbers: Int = pageCount

  /** The page of this number, null if it was freed. */
  def pageAt(number: Int): Array[Byte] = pages(number)

  /** Words handed out in the page of this number. */
  def usedAt(number: Int): Int = usedWords(number)

  /** The page that records are appended to. */
  def openNumber: Int = openPage

  /** The page of an address, for reading. */
  def page(address: Int): Array[Byte] = pages(address >>> PageShift)

  /** The page of an address, for changing records that a snapshot may hold. */
  def writable(address: Int): Array[Byte] = {
    val number = address >>> PageShift
    val page = pages(number)
    if (birth(number) < newestLive) {
      val copy = page.clone()
      pages(number) = copy
      birth(number) = snapshotsTaken
      copy
    } else {
      page
    }
  }

  /** Memory for a new record, not in any snapshot: it can be written through [[page]]. */
  def allocate(words: Int): Int = {
    if (words > OwnPageWords) {
      val number = newPage(words)
      usedWords(number) = words
      number << PageShift
    } else {
      if (openPage < 0 || usedWords(openPage) + words > (pages(openPage).length >>> 3)) {
        openPage = newPage(math.max(words + 1, nextPageWords))
        // Address 0 is "none".
        usedWords(openPage) = if (openPage == 0) 1 else 0
      }
      val word = usedWords(openPage)
      usedWords(openPage) = word + words
      (openPage << PageShift) | word
    }
  }

  /** Gives a page back. Nothing may refer to it any more. */
  def free(number: Int): Unit = {
    capacity -= pages(number).length
    pages(number) = null
    usedWords(number) = 0
    if (openPage == number) openPage = -1
    freeNumbers.push(number)
  }

  /**
   * A view of all records as they are now. From here on [[writable]] copies a page before it first
   * changes, until the view is closed.
   */
  def share(): SharedPages = liveSnapshots.synchronized {
    snapshotsTaken += 1
    liveSnapshots.push(snapshotsTaken)
    newestLive = snapshotsTaken
    val pagesNow = Arrays.copyOf(pages, pageCount)
    new SharedPages(this, snapshotsTaken, pagesNow, Arrays.copyOf(usedWords, pageCount))
  }

  /** Ends the sharing with one view; from any thread. */
  private[backend] def unshare(snapshot: Int): Unit = liveSnapshots.synchronized {
    liveSnapshots.remove(snapshot)
    newestLive = liveSnapshots.maximum
  }

  /** Walks the records that are there now. */
  def walk(linkWords: Int): RecordWalk = new RecordWalk(pages, usedWords, pageCount, linkWords)

  private def nextPageWords: Int =
    math.max(FirstPageWords, math.min(capacity >>> 3, LargestPageWords.toLong)).toInt

  private def newPage(words: Int): Int = {
    val number = if (freeNumbers.nonEmpty) freeNumbers.pop() else addNumber()
    // Page 0 never becomes an own page: its first word is address 0.
    if (number == 0 && words > OwnPageWords) {
      val other = newPage(words)
      freeNumbers.push(0)
      return other
    }
    pages(number) = new Array[Byte](words << 3)
    birth(number) = snapshotsTaken
    capacity += pages(number).length
    number
  }

  private def addNumber(): Int = {
    if (pageCount == MaxPages) {
      throw new StateTooLargeException(
        s"A column family of one partition needs more than $MaxPages pages (32 GiB) of memory: " +
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
}

private[backend] object RecordPages {
  final val PageShift = 13
  final val WordMask = (1 << PageShift) - 1

  /** Just below 64 KiB with the array's header, so that 16 pages fill a G1 region of 1 MiB. */
  final val LargestPageWords = (1 << PageShift) - 8
  final val FirstPageWords = 128

  /** Records longer than this have a page of their own: at most an eighth of a page is lost at its end. */
  final val OwnPageWords = 1024

  /** The last page number is kept free: address -1 means something else in write buffers. */
  final val MaxPages = (1 << (32 - PageShift)) - 1

  /** Longest record in bytes. */
  final val MaxRecordBytes = (1L << 31) - 64

  /** Where in its page the record of an address begins, in the terms of `Platform`. */
  def offset(address: Int): Long = Platform.BYTE_ARRAY_OFFSET + ((address & WordMask).toLong << 3)

  def checkRecordBytes(bytes: Long): Unit = {
    if (bytes > MaxRecordBytes) {
      throw new StateTooLargeException(
        s"A key with its value takes $bytes bytes; at most $MaxRecordBytes are possible.")
    }
  }
}

/** The pages of one moment, for one snapshot. */
private[backend] final class SharedPages(
    owner: RecordPages,
    id: Int,
    val pages: Array[Array[Byte]],
    val usedWords: Array[Int]) {

  /** Ends the sharing; from any thread. */
  def close(): Unit = owner.unshare(id)
}
