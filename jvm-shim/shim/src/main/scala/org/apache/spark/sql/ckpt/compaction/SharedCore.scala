// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compaction

import java.util.concurrent.{Semaphore, TimeUnit}

/**
 * A core that the background threads of an executor share. One of them works at a time, and passes the core on between
 * blocks. A thread that has waited long enough works beside the others, since they may be waiting for a storage: it
 * becomes slow, but never hangs.
 *
 * @param workNanos least time that a thread works before it passes the core on
 * @param waitNanos longest time that it waits for the core each time
 */
private[ckpt] final class SharedCore(workNanos: Long, waitNanos: Long) {
  private val core = new Semaphore(1, true)

  /**
   * The turns of one thread.
   *
   * @param isUrgent true once a task waits for its work, which then waits for no other
   */
  final class Turns(isUrgent: () => Boolean) {
    private var isHeld = false
    private var since = 0L

    def begin(): Unit = {
      isHeld = !isUrgent() && core.tryAcquire(waitNanos, TimeUnit.NANOSECONDS)
      since = System.nanoTime()
    }

    /** Lets others work. */
    def pass(): Unit =
      if (isUrgent()) end()
      else if (System.nanoTime() - since >= workNanos) {
        end()
        begin()
      }

    def end(): Unit = if (isHeld) {
      isHeld = false
      core.release()
    }
  }
}
