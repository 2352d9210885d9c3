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
package org.apache.spark.sql.ckpt.executor

import java.util.{Collections, WeakHashMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.memory.{MemoryMode, UnifiedMemoryManager, UnmanagedMemoryConsumer, UnmanagedMemoryConsumerId}

/** A store whose state takes memory. */
private[ckpt] trait MemoryUser {

  /** Bytes of heap; an estimate while a batch is written. From any thread. */
  def memoryBytes: Long
}

/**
 * The heap that the stores of a JVM take, for Spark's memory manager, which asks for it if
 * `spark.memory.unmanagedMemoryPollingInterval` is set and leaves that much less to execution and cache.
 *
 * One consumer for all stores, registered while there are any. Stores are held weakly: Spark unloads a store without
 * saying so in every case. Thread-safe.
 */
private[ckpt] object StateMemory extends UnmanagedMemoryConsumer {
  val Component = "spark-ckpt"

  private val stores: java.util.Set[MemoryUser] =
    Collections.newSetFromMap(new WeakHashMap[MemoryUser, java.lang.Boolean]())

  override val unmanagedMemoryConsumerId: UnmanagedMemoryConsumerId = UnmanagedMemoryConsumerId(Component, "state")

  override def memoryMode: MemoryMode = MemoryMode.ON_HEAP

  /** Counts a store from now on. Registers each time: a Spark that ends may forget its consumers. */
  def add(store: MemoryUser): Unit = stores.synchronized {
    stores.add(store)
    UnifiedMemoryManager.registerUnmanagedMemoryConsumer(this)
  }

  /** Does not count a store any more. */
  def remove(store: MemoryUser): Unit = stores.synchronized {
    stores.remove(store)
    if (stores.isEmpty) UnifiedMemoryManager.unregisterUnmanagedMemoryConsumer(this)
  }

  /** Stores that are counted. As long as a caller holds them, none is collected as garbage. */
  private[executor] def users: Seq[MemoryUser] = stores.synchronized(stores.asScala.toSeq)

  override def getMemBytesUsed: Long = users.map(_.memoryBytes).sum
}
