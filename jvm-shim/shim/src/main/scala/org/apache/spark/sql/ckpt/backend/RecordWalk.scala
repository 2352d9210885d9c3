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

import org.apache.spark.unsafe.Platform

/**
 * Walk over a table's live records in the order of memory: of the table itself, which must not change meanwhile, or of
 * a snapshot. Records with a page of their own come last.
 *
 * @param pages pages by number, null if freed
 * @param usedWords used words of each page
 * @param ownPages pages of single records by number, null if freed
 * @param linkWords words of links in each record
 */
private[backend] final class RecordWalk(
    pages: Array[Array[Byte]],
    usedWords: Array[Int],
    numbers: Int,
    ownPages: Array[Array[Byte]],
    ownNumbers: Int,
    linkWords: Int) {

  private var number = -1
  private var page: Array[Byte] = _
  private var word = 0
  private var used = 0
  private var header = 0L
  private var own = 0

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
    if (found == 0) nextOwn() else found
  }

  private def nextOwn(): Int = {
    while (own < ownNumbers && ownPages(own) == null) own += 1
    if (own == ownNumbers) {
      0
    } else {
      header = Platform.getLong(ownPages(own), Platform.BYTE_ARRAY_OFFSET)
      own += 1
      RecordPages.ownAddress(own - 1)
    }
  }

  /** Key group of the record of the last [[next]]. */
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
