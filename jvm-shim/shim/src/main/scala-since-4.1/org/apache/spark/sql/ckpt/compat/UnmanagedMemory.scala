// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

import org.apache.spark.memory.{MemoryMode, UnifiedMemoryManager, UnmanagedMemoryConsumer, UnmanagedMemoryConsumerId}

/** Heap that Spark's memory manager does not allocate, but takes into account. */
private[ckpt] abstract class UnmanagedMemory(component: String, instance: String) extends UnmanagedMemoryConsumer {
  override val unmanagedMemoryConsumerId: UnmanagedMemoryConsumerId = UnmanagedMemoryConsumerId(component, instance)

  override def memoryMode: MemoryMode = MemoryMode.ON_HEAP

  protected def register(): Unit = UnifiedMemoryManager.registerUnmanagedMemoryConsumer(this)

  protected def unregister(): Unit = UnifiedMemoryManager.unregisterUnmanagedMemoryConsumer(this)
}
