package org.apache.spark.sql.ckpt.backend

import org.apache.spark.unsafe.Platform

/**
 * Walks the live records of a table in the order of memory: of the table itself, which must not change
 * meanwhile, or of a snapshot.
 *
 * @param pages by number, null where there is none
 * @param usedWords how far each page is used
 * @param linkWords words of links in each record
 */
private[backend] final class RecordWalk(
    pages: Array[Array[Byte]],
    usedWords: Array[Int],
    numbers: Int,
    linkWords: Int) {

  private var number = -1
  private var page: Array[Byte] = _
  private var word = 0
  private var used = 0
  private var header = 0L

  /** Address of the next live record, 0 at the end. */
  def next(): Int = {
    var found = 0
    var more = true
    while (found == 0 && more) {
      if (word >= used) {
        more = nextPage()
      } else {
        val offset = RecordPages.offset(word)
        header = Platform.getLong(page, offset)
        if (!TableRecord.isDead(header)) found = (number << RecordPages.PageShift) | word
        word += TableRecord.words(header, page, offset, linkWords)
      }
    }
    found
  }

  /** Key group of the record that [[next]] gave. */
  def keyGroup: Int = TableRecord.keyGroup(header)

  private def nextPage(): Boolean = {
    if (number < numbers) number += 1
    if (number < numbers) {
      page = pages(number)
      used = usedWords(number)
      word = if (number == 0) 1 else 0
      true
    } else {
      used = 0
      word = 0
      false
    }
  }
}
