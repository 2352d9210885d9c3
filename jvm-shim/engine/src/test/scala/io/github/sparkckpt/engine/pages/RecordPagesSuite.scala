// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import scala.collection.mutable

import io.github.sparkckpt.engine.buffer.WriteBuffer
import io.github.sparkckpt.engine.segment.StateTooLargeException
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.unsafe.Platform

class RecordPagesSuite extends AnyFunSuite {
  private val Large = RecordPages.OwnPageWords + 1

  private def put(pages: RecordPages, address: Int, x: Long): Unit =
    Platform.putLong(pages.writable(address), RecordPages.offset(address), x)

  private def get(pages: RecordPages, address: Int): Long =
    Platform.getLong(pages.page(address), RecordPages.offset(address))

  test("large records take no page numbers from small ones, and there are 16 for each number") {
    val pages = new RecordPages(maxPages = 3)
    val addresses = mutable.Buffer[Int]()
    for (_ <- 0 until 48) addresses += pages.allocate(Large)
    val failure = intercept[StateTooLargeException](pages.allocate(Large))
    assert(failure.getMessage.contains("more than 48 records of over 8192 bytes"))
    var small = pages.allocate(1000)
    intercept[StateTooLargeException](while (true) {
      addresses += small
      small = pages.allocate(1000)
    })
    assert(addresses.size > 48 + 10)
    assert(addresses.toSet.size == addresses.size && !addresses.contains(0))
    addresses.zipWithIndex.foreach { case (address, i) => put(pages, address, i) }
    addresses.zipWithIndex.foreach { case (address, i) => assert(get(pages, address) == i) }
    val bytes = pages.bytes
    pages.freeOwn(addresses(20))
    assert(pages.bytes == bytes - Large * 8)
    assert(pages.allocate(Large + 1) == addresses(20))
    intercept[StateTooLargeException](pages.allocate(Large))
  }

  test("addresses of large records are of tens of gigabytes, and of no small record") {
    val most = RecordPages.MaxPages << RecordPages.OwnShift
    assert(most.toLong * RecordPages.OwnPageWords * 8 > (60L << 30))
    for (number <- Seq(0, 1, 15, 16, 17, 1000003, most - 1)) {
      val address = RecordPages.ownAddress(number)
      assert(RecordPages.isOwn(address) && RecordPages.ownNumber(address) == number)
      assert(RecordPages.offset(address) == Platform.BYTE_ARRAY_OFFSET)
      assert(address != WriteBuffer.Dropped && address != WriteBuffer.DroppedAndPut)
    }
    for (number <- Seq(0, 1, RecordPages.MaxPages - 1); word <- Seq(0, 1, RecordPages.MaxPageWords - 1)) {
      assert(!RecordPages.isOwn((number << RecordPages.PageShift) | word))
    }
  }

  test("a snapshot keeps large records as they were, changed or freed") {
    val pages = new RecordPages
    val (changed, freed) = (pages.allocate(Large), pages.allocate(Large))
    put(pages, changed, 1)
    put(pages, freed, 2)
    val shared = pages.share()
    put(pages, changed, 3)
    pages.freeOwn(freed)
    val again = pages.allocate(Large)
    put(pages, again, 4)
    assert(again == freed && get(pages, changed) == 3)
    assert(Platform.getLong(shared.page(changed), RecordPages.offset(changed)) == 1)
    assert(Platform.getLong(shared.page(freed), RecordPages.offset(freed)) == 2)
    shared.close()
  }
}
