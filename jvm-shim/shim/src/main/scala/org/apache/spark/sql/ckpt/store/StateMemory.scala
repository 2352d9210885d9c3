// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import java.util.{Collections, WeakHashMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.ckpt.compat.UnmanagedMemory

/** A store with state in memory. */
private[ckpt] trait MemoryUser {

  /** Bytes of heap, estimated while a batch is written. From any thread. */
  def memoryBytes: Long

  /** Moves state to the local disk, if all stores of the JVM exceed their budget together. Never waits. */
  def evict(): Unit
}

/**
 * Heap of all stores of a JVM, for Spark's memory manager. It polls if `spark.memory.unmanagedMemoryPollingInterval` is
 * set, and leaves that much less to execution and cache.
 *
 * One consumer for all stores, registered while there are any. Stores are held weakly, because Spark sometimes unloads
 * a store silently. Thread-safe.
 */
private[ckpt] object StateMemory extends UnmanagedMemory("spark-ckpt", "state") {
  private val stores: java.util.Set[MemoryUser] =
    Collections.newSetFromMap(new WeakHashMap[MemoryUser, java.lang.Boolean]())

  /** Adds a store. Registers each time: a stopped Spark may forget its consumers. */
  def add(store: MemoryUser): Unit = stores.synchronized {
    stores.add(store)
    register()
  }

  /** Removes a store. */
  def remove(store: MemoryUser): Unit = stores.synchronized {
    stores.remove(store)
    if (stores.isEmpty) unregister()
  }

  /** The counted stores. While a caller holds them, none is garbage-collected. */
  private[ckpt] def users: Seq[MemoryUser] = stores.synchronized(stores.asScala.toSeq)

  /** Makes all stores move state to the local disk that exceeds the budget. Never waits. */
  def evict(): Unit = users.foreach(_.evict())

  override def getMemBytesUsed: Long = users.map(_.memoryBytes).sum
}
