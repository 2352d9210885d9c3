// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

class LocalRecordsSuite extends AnyFunSuite {
  test("records are found until all are forgotten") {
    val records = new LocalRecords(() => 1L << 20)
    val r = new Random(2)
    val known = Seq.fill(5000)(r.nextInt() | 1).distinct.map(_ -> new Array[Byte](r.nextInt(20))).toMap
    known.foreach { case (address, record) => records.add(address, record, records.generation) }
    known.foreach { case (address, record) => assert(records.get(address) eq record) }
    assert(records.get(2) == null)
    records.clear()
    assert(known.keys.forall(records.get(_) == null))
  }

  test("memory is bounded") {
    val records = new LocalRecords(() => 100000)
    for (i <- 1 to 10000) {
      records.add(i, new Array[Byte](1000), records.generation)
      assert(records.get(i) != null && records.bytes < 110000)
    }
  }

  test("a record whose read began before all were forgotten is not kept") {
    val records = new LocalRecords(() => 1L << 20)
    val before = records.generation
    records.clear()
    records.add(3, new Array[Byte](8), before)
    assert(records.get(3) == null)
    records.add(3, new Array[Byte](16), records.generation)
    assert(records.get(3).length == 16)
  }
}
