// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.lang.ref.WeakReference
import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.concurrent.duration.FiniteDuration
import scala.util.control.NonFatal

import io.github.sparkckpt.engine.backend.KeyedStateBackend
import io.github.sparkckpt.engine.restore.TableRetiredException

import org.apache.spark.internal.Logging
import org.apache.spark.sql.ckpt.common.OwnThreads
import org.apache.spark.sql.ckpt.compaction.{BaseSnapshots, SharedCore}

/**
 * Loads, in the background, what restarted stores have left in their files.
 *
 * @param core core that all background threads of the executor share
 */
private[ckpt] final class LaterLoads(core: SharedCore) extends Logging {
  private lazy val thread = OwnThreads.timer("spark-ckpt-later-load")

  /**
   * Loads the rest of a state, unless that is gone by then: while it waits behind others, only its owner keeps it
   * alive.
   *
   * @param after    time until then
   * @param isWanted false once the store was unloaded; must not keep the state alive
   */
  def add(store: String, backend: KeyedStateBackend, after: FiniteDuration, isWanted: () => Boolean): Unit = {
    val state = new WeakReference(backend)
    thread.schedule((() => loadIfWanted(store, state, isWanted)): Runnable, after.toNanos, NANOSECONDS)
  }

  private def loadIfWanted(store: String, state: WeakReference[KeyedStateBackend], isWanted: () => Boolean): Unit = {
    val backend = state.get()
    if (backend != null && isWanted() && backend.isPending) load(store, backend)
  }

  private def load(store: String, backend: KeyedStateBackend): Unit = {
    val turns = new core.Turns(() => false)
    try {
      turns.begin()
      backend.loadRest()
    } catch {
      // The state was given up.
      case _: TableRetiredException =>
      case NonFatal(e) => logWarning(s"rows of $store cannot be loaded; its next batch loads the state anew", e)
    } finally turns.end()
  }
}

private[ckpt] object LaterLoads {

  /** Of all stores of this JVM. */
  val here = new LaterLoads(BaseSnapshots.core)
}
