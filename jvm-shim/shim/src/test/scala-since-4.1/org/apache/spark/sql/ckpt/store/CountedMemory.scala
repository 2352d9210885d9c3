// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.ckpt.store

import org.apache.spark.memory.UnifiedMemoryManager

/** What Spark's memory manager counts of our stores. */
private[ckpt] object CountedMemory {
  def bytes: Long = UnifiedMemoryManager.getMemoryByComponentType("spark-ckpt")
}
