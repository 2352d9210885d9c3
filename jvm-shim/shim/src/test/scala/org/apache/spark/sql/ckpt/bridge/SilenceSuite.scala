// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import scala.concurrent.duration._

import org.scalatest.funsuite.AnyFunSuite

class SilenceSuite extends AnyFunSuite {
  private var now = 0L

  private def newSilence(limit: FiniteDuration = 120.seconds) = new Silence(limit, 5.seconds, () => now)

  /** Looks after a while; true if the process hangs. */
  private def after(time: FiniteDuration, silence: Silence): Boolean = {
    now += time.toNanos
    silence.look()
  }

  private def spoken(limit: FiniteDuration = 120.seconds): Silence = {
    val silence = newSilence(limit)
    silence.heard()
    assert(!after(5.seconds, silence))
    silence
  }

  test("a process without a sign of life hangs after the limit") {
    val silence = spoken()
    assert((1 until 24).forall(_ => !after(5.seconds, silence)))
    assert(silence.nanos == 115.seconds.toNanos)
    assert(after(5.seconds, silence))
  }

  test("any sign of life ends the silence") {
    val silence = spoken()
    for (_ <- 0 until 10) {
      assert((1 until 24).forall(_ => !after(5.seconds, silence)))
      silence.heard()
      assert(!after(5.seconds, silence) && silence.nanos == 0)
    }
  }

  test("time in which this JVM stands still is no silence of the process") {
    val silence = spoken()
    for (_ <- 0 until 10) assert(!after(1.hour, silence))
    assert(silence.nanos == 100.seconds.toNanos)
  }

  test("a process that imports its modules has at least a minute") {
    val silence = newSilence(limit = 10.seconds)
    assert((1 until 12).forall(_ => !after(5.seconds, silence)))
    silence.heard()
    assert(!after(5.seconds, silence) && !after(5.seconds, silence) && after(5.seconds, silence))
  }

  test("several looks are within a limit") {
    for (limit <- Seq(1.second, 10.seconds, 120.seconds, 365.days)) {
      val interval = Silence.interval(limit)
      assert(interval * 10 <= limit && interval <= 5.seconds && interval >= 100.millis)
    }
  }
}
