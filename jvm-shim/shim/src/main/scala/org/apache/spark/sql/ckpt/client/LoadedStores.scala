// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.client

import java.util.{Collections, WeakHashMap}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.ckpt.common.OwnThreads
import org.apache.spark.sql.ckpt.protocol.Notification

/** A store that frees memory on notifications. */
private[ckpt] trait NotifiedStore {

  /** Handles a notification, on the one thread that serves the stores of all queries: must not wait for a task. */
  def notified(notification: Notification): Unit
}

/**
 * Stores of each job in this JVM's memory, held weakly, because Spark sometimes unloads a store silently. Thread-safe.
 */
private[ckpt] final class LoadedStores {
  private val byJob = mutable.HashMap.empty[String, java.util.Set[NotifiedStore]]

  def add(job: String, store: NotifiedStore): Unit = synchronized {
    byJob.filterInPlace((_, stores) => !stores.isEmpty)
    byJob
      .getOrElseUpdate(job, Collections.newSetFromMap(new WeakHashMap[NotifiedStore, java.lang.Boolean]()))
      .add(store)
  }

  /** Forwards a notification to the stores of a job. */
  def tell(job: String, notification: Notification): Unit =
    of(job).foreach(store => OwnThreads.guard(s"the notification of $store")(store.notified(notification)))

  /** A copy: stores are notified without this lock. */
  private def of(job: String): Seq[NotifiedStore] = synchronized(byJob.get(job).toSeq.flatMap(_.asScala.toSeq))
}

private[ckpt] object LoadedStores {

  /** The shared instance of this JVM. */
  val here = new LoadedStores
}
