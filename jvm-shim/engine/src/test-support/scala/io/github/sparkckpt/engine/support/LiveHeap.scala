// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.support

import org.scalatest.Assertions

/** Measures the heap that lives, for suites that compare it with what is counted. */
trait LiveHeap extends Assertions {

  /** Bytes of live objects: the least after several collections. */
  protected def liveHeap(): Long = {
    val runtime = Runtime.getRuntime
    def collected(): Long = {
      System.gc()
      runtime.totalMemory - runtime.freeMemory
    }
    // The serial collector leaves dead objects where they are, but for each fourth time.
    def least(): Long = Seq.fill(4)(collected()).min
    var last = least()
    var next = least()
    while (last - next > LiveHeap.Noise) {
      // Cleaners and references run in threads of their own.
      Thread.sleep(20)
      last = next
      next = least()
    }
    next
  }

  /** Waits until the heap no longer shrinks: threads, caches and timers of earlier suites end within seconds. */
  protected def awaitQuietHeap(): Unit = {
    var last = liveHeap()
    var quiet = 0
    while (quiet < LiveHeap.QuietLooks) {
      Thread.sleep(LiveHeap.LookMillis)
      val next = liveHeap()
      quiet = if (last - next > LiveHeap.Noise) 0 else quiet + 1
      last = next
    }
  }

  /** Fails unless what is counted is within a tenth of the bytes that live. */
  protected def assertCounted(counted: Long, live: Long, what: String): Unit =
    assert(math.abs(counted - live) <= live / 10, s"$what: $live bytes live, and $counted are counted")
}

private object LiveHeap {
  private final val Noise = 64L << 10
  private final val QuietLooks = 3
  private final val LookMillis = 2000L
}
