// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.driver

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.streaming.Trigger

class QueryStatusSuite extends AnyFunSuite {
  import QueryStatus._

  test("a query with an error has failed, one that was never seen in a batch was cancelled") {
    assert(of(failed = true, None) == Failed)
    assert(of(failed = false, None) == Cancelled)
  }

  test("AvailableNow is at its end when nothing is left to do") {
    assert(isEnd(Trigger.AvailableNow(), constructed = false, reported = false))
    assert(!isEnd(Trigger.AvailableNow(), constructed = true, reported = true))
  }

  test("Once is at its end when its batch is done, or there was none to do") {
    assert(isEnd(Trigger.Once(), constructed = true, reported = true): @annotation.nowarn("cat=deprecation"))
    assert(isEnd(Trigger.Once(), constructed = false, reported = false): @annotation.nowarn("cat=deprecation"))
    assert(!isEnd(Trigger.Once(), constructed = true, reported = false): @annotation.nowarn("cat=deprecation"))
  }

  test("other triggers have no end of their own") {
    assert(!isEnd(Trigger.ProcessingTime(0), constructed = false, reported = true))
    assert(!isEnd(Trigger.Continuous(1000), constructed = false, reported = true))
  }
}
