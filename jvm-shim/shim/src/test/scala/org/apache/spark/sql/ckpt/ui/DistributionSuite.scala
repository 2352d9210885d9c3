// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.ui

import org.scalatest.funsuite.AnyFunSuite

class DistributionSuite extends AnyFunSuite {

  private def of(values: Long*) = new Distribution(values)

  test("without values there is none") {
    assert(Distribution.of(Nil).isEmpty)
  }

  test("a percentile is a value that occurs") {
    val hundred = of((1L to 100L).reverse: _*)
    assert(Seq(0.1, 50.0, 90.0, 99.0, 99.9, 100.0).map(hundred.percentile) == Seq(1, 50, 90, 99, 100, 100))
    assert((hundred.least, hundred.mean, hundred.most) == ((1, 50.5, 100)))
    assert(Seq(0.1, 50.0, 99.9).map(of(7).percentile) == Seq(7, 7, 7))
    assert(of(3, 1, 2).median == 2 && of(4, 1, 2, 3).median == 2)
  }

  test("skew is the largest value by the mean") {
    assert(of(5, 5, 5).skew == 1 && of(0, 0).skew == 1 && of(0, 0, 0, 8).skew == 4)
  }

  test("stragglers are above the 95th percentile and far above the median") {
    val calm = of(Seq.tabulate(100)(n => 100L + n): _*)
    assert(!calm.straggles(199) && !calm.straggles(223) && calm.straggles(224))
    val busy = of(Seq.fill(90)(10L) ++ Seq.fill(10)(1000L): _*)
    assert(!busy.straggles(999) && busy.straggles(1000))
    assert(!of(7).straggles(7) && !of(4, 4, 4).straggles(4) && !of(0).straggles(0))
  }

  test("a sum above the largest integer") {
    assert(of(Long.MaxValue, Long.MaxValue).mean >= Long.MaxValue.toDouble)
  }
}
