// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.bridge

import scala.concurrent.duration._

/**
 * Time since the last sign of life of a side process, by short looks. A look counts for no more than two intervals: if
 * this JVM itself stands still, in a garbage collection or with its whole machine, that is no silence of the process.
 *
 * Before its first sign of life a process imports its modules, for which it gets at least a minute.
 *
 * @param limit    silence after which a process counts as hanging
 * @param interval time between two looks
 * @param now      clock in nanoseconds
 */
private[bridge] final class Silence(limit: FiniteDuration, interval: FiniteDuration, now: () => Long) {
  @volatile private var heardSince = false
  private var hasSpoken = false
  private var silent = 0L
  private var last = now()

  /** There is a sign of life. From any thread. */
  def heard(): Unit = heardSince = true

  /** Silence at the last look. */
  def nanos: Long = silent

  /** Looks; true if the process hangs. By one thread. */
  def look(): Boolean = {
    val time = now()
    silent = if (heardSince) 0L else silent + math.min(time - last, 2 * interval.toNanos)
    hasSpoken |= heardSince
    heardSince = false
    last = time
    silent >= (if (hasSpoken) limit else limit.max(Silence.OfStart)).toNanos
  }
}

private[bridge] object Silence {
  private val OfStart = 1.minute
  private val MaxInterval = 5.seconds
  private val LooksWithin = 10

  /** Interval of looks for a limit. */
  def interval(limit: FiniteDuration): FiniteDuration = (limit / LooksWithin).min(MaxInterval)
}
