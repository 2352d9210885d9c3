// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.testing

import java.util.concurrent.atomic.AtomicBoolean

import org.scalatest.funsuite.AnyFunSuite

final class SteppingClockSuite extends AnyFunSuite {
  private val LongMs = 30000L

  private def started(body: => Unit): Thread = {
    val thread = new Thread(() => body)
    thread.setDaemon(true)
    thread.start()
    thread
  }

  test("it is idle once the query waits for a later time, and busy after a step until it waits again") {
    val clock = new SteppingClock(1000L)
    assert(!clock.isWaiting)
    val query = started {
      clock.waitTillTime(1001L)
      clock.waitTillTime(1002L)
      clock.waitTillTime(9000L)
    }
    assert(clock.awaitIdle(LongMs, () => false))
    clock.advance(1L)
    assert(clock.awaitIdle(LongMs, () => false))
    clock.advance(5000L)
    assert(clock.awaitIdle(LongMs, () => false))
    assert(clock.getTimeMillis() === 6001L)
    clock.advance(5000L)
    query.join(LongMs)
    assert(!query.isAlive)
    assert(!clock.isWaiting)
  }

  test("a query that never waits is not idle, and one that has ended is") {
    val clock = new SteppingClock(0L)
    assert(!clock.awaitIdle(50L, () => false))
    val hasEnded = new AtomicBoolean(false)
    val end = started(hasEnded.set(true))
    assert(clock.awaitIdle(LongMs, () => hasEnded.get()))
    end.join(LongMs)
  }
}
