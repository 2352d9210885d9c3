// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.compat

/** Memory that Spark's memory manager does not allocate. Spark takes it into account since 4.1. */
private[ckpt] abstract class UnmanagedMemory(component: String, instance: String) {
  def getMemBytesUsed: Long

  protected def register(): Unit = ()

  protected def unregister(): Unit = ()
}
