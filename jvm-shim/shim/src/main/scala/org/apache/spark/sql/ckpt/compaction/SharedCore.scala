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
