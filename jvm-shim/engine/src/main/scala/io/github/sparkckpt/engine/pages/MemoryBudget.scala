// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.engine.pages

import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}

/** Memory of all tables that share a budget: those of one JVM. Thread-safe. */
final class MemoryBudget {
  private val usedBytes = new AtomicLong
  private val evictableBytes = new AtomicLong
  private val openAccounts = new AtomicInteger

  /** Bytes of memory. */
  def used: Long = usedBytes.get()

  /** Bytes of the pages among them that can be evicted. */
  def evictable: Long = evictableBytes.get()

  /** Number of open accounts. */
  private[engine] def accounts: Int = openAccounts.get()

  /** Opens an account, for one table. */
  private[engine] def open(): MemoryAccount = {
    openAccounts.incrementAndGet()
    new MemoryAccount(this)
  }

  private[engine] def close(): Unit = openAccounts.decrementAndGet()

  private[engine] def add(used: Long, evictable: Long): Unit = {
    usedBytes.addAndGet(used)
    evictableBytes.addAndGet(evictable)
  }
}

object MemoryBudget {

  /** Of all stores of this JVM. */
  val here = new MemoryBudget
}

/** Share of one table in the used memory. Only its owner sets it; any thread may close it. */
private[engine] final class MemoryAccount(budget: MemoryBudget) {
  private var used = 0L
  private var evictable = 0L
  private var closed = false

  def set(used: Long, evictable: Long): Unit = synchronized {
    if (!closed) {
      budget.add(used - this.used, evictable - this.evictable)
      this.used = used
      this.evictable = evictable
    }
  }

  /** True if accounts of others have evictable pages. */
  def othersCanEvict: Boolean = synchronized(budget.evictable > evictable)

  /**
   * Bytes that the owner should evict under a limit for all. An owner evicts up to twice its share of the excess, so
   * that an active table does not pay for idle ones, and all of it above a twentieth.
   */
  def excess(limit: Long): Long = synchronized {
    val over = budget.used - limit
    if (closed || over <= 0) {
      0
    } else if (over > limit / 20) {
      over
    } else {
      math.min(over, (over * (2.0 * evictable / math.max(1L, budget.evictable))).toLong + 1)
    }
  }

  /** Idempotent. */
  def close(): Unit = synchronized {
    if (!closed) budget.close()
    set(0, 0)
    closed = true
  }
}
