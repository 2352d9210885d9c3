// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.testing

import org.apache.spark.util.ManualClock

/**
 * Clock of a trigger that a test moves, and that tells whether the query waits for it. Thread-safe.
 *
 * @param startMs first time, in milliseconds since 1970 UTC
 */
private[testing] final class SteppingClock(startMs: Long) extends ManualClock(startMs) {
  private var waitsFor = Long.MinValue

  override def waitTillTime(targetTime: Long): Long = {
    synchronized {
      waitsFor = targetTime
      notifyAll()
    }
    super.waitTillTime(targetTime)
  }

  /** True if the query waits for a later time than now, so that it has nothing to do. */
  def isWaiting: Boolean = synchronized(waitsFor > getTimeMillis())

  /**
   * Waits until the query waits for a later time.
   *
   * @param timeoutMs longest wait
   * @param isOver    whether the query has ended
   * @return false after the timeout
   */
  def awaitIdle(timeoutMs: Long, isOver: () => Boolean): Boolean = synchronized {
    val until = System.nanoTime() + timeoutMs * 1000000L
    def left: Long = (until - System.nanoTime()) / 1000000L
    while (!isWaiting && !isOver() && left > 0) wait(math.min(left, SteppingClock.LookMs))
    isWaiting || isOver()
  }
}

private[testing] object SteppingClock {

  /** Milliseconds between looks for a query that has ended. */
  private val LookMs = 100L
}
